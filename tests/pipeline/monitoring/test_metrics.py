"""The counts of a process and the reports of its sources must reach the supervisor, whatever types a stage uses."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from camgraph.pipeline.monitoring.metrics import Counters, reason_line
from camgraph.pipeline.monitoring.reports import Heartbeat, read_report
from camgraph.pipeline.transport.wire import pack, unpack


def test_integers_of_any_type_are_counted_and_travel() -> None:
    counters = Counters()
    counters.add("seen", "a", np.ones(3, np.int64).sum())
    counters.add(np.str_("seen"), "a", np.uint8(4))
    counters.add("seen", "a")
    assert unpack(pack(counters.snapshot())) == [["seen", "a", 8]]


@pytest.mark.parametrize("wrong", [1.5, np.float32(2), "3", None])
def test_what_is_no_whole_number_is_the_mistake_of_who_counts_it(wrong: Any) -> None:
    counters = Counters()
    with pytest.raises(TypeError):
        counters.add("seen", "a", wrong)
    assert counters.snapshot() == []


def test_what_is_said_of_cameras_travels_and_is_said_once() -> None:
    counters = Counters()
    counters.camera_is("a", "live", "")
    counters.camera_is("b", "lost", "no route")
    counters.camera_is("a", "stalled", "no packet")
    facts = {"codec": "h264", "width": np.int64(1280), "fps": np.float32(12.5), "clock_s": float("inf")}
    counters.camera_shows("a", facts)
    changes = counters.camera_changes()
    sent = {"op": "heartbeat", "camera_changes": changes, "camera_facts": counters.camera_facts}
    heartbeat = read_report(unpack(pack(sent)))
    assert isinstance(heartbeat, Heartbeat)
    assert [change[:3] for change in heartbeat.camera_changes if change[0] == "a"] == [
        ("a", "live", ""),
        ("a", "stalled", "no packet"),
    ]
    assert [change[:3] for change in heartbeat.camera_changes if change[0] == "b"] == [("b", "lost", "no route")]
    shown = heartbeat.camera_facts["a"]
    assert json.dumps(shown) == '{"codec": "h264", "width": 1280, "fps": 12.5, "clock_s": "inf"}'
    assert counters.camera_changes() == []


def test_facts_of_a_stage_travel_as_those_of_a_camera() -> None:
    counters = Counters()
    counters.stage_shows("infer", {"provider": "CPUExecutionProvider", "device": 0})
    counters.stage_shows("infer", {"device": np.int64(1)})
    heartbeat = read_report(unpack(pack({"op": "heartbeat", "stage_facts": counters.stage_facts})))
    assert isinstance(heartbeat, Heartbeat)
    assert heartbeat.stage_facts == {"infer": {"provider": "CPUExecutionProvider", "device": 1}}


def test_unsent_changes_precede_newer_ones() -> None:
    counters = Counters()
    counters.camera_is("a", "lost", "1")
    counters.camera_is("b", "gone", "2")
    untold = counters.camera_changes()
    counters.camera_is("a", "live", "3")
    counters.keep_camera_changes(untold)
    changes = counters.camera_changes()
    assert [change[2] for change in changes if change[0] == "a"] == ["1", "3"]
    assert [change[2] for change in changes if change[0] == "b"] == ["2"]


def test_flapping_camera_is_bounded_and_displaces_none() -> None:
    counters = Counters()
    counters.camera_is("quiet", "lost", "cable")
    for n in range(10_000):
        counters.camera_is("loud", "live" if n % 2 else "lost", str(n))
        if n % 7 == 0:
            counters.keep_camera_changes(counters.camera_changes())
    changes = counters.camera_changes()
    assert len(changes) < 100
    assert [change[2] for change in changes if change[0] == "quiet"] == ["cable"]
    loud = [int(change[2]) for change in changes if change[0] == "loud"]
    assert loud == list(range(10_000 - len(loud), 10_000))


def test_a_state_that_there_is_not_is_the_mistake_of_who_says_it() -> None:
    with pytest.raises(ValueError, match="expected one of connecting, live"):
        Counters().camera_is("a", "tired", "")


def test_facts_are_bounded() -> None:
    counters = Counters()
    for n in range(1000):
        counters.camera_shows("a", {f"fact {n}": "long " * 1000})
    assert len(pack(counters.camera_facts)) < 20_000


def test_a_reason_holds_no_password_also_where_it_is_cut() -> None:
    url = "rtsp://viewer:secr3t@10.0.0.1/main"
    counters = Counters()
    for padding in range(250, 310):
        counters.camera_is("a", "lost", "x" * padding + " " + url)
        counters.camera_shows("a", {"url": "x" * padding + " " + url})
        assert "secr3t" not in str(counters.camera_changes()) + str(counters.camera_facts)
    for word in (f" {url}", f"rtsp://viewer:{'secr3t' * 9000}@10.0.0.1"):
        for padding in range(19_950, 20_010):
            assert "secr3t" not in reason_line("x" * 9 + " " * padding + word)
    assert reason_line("first\nsecond\t third ") == "first second third"
