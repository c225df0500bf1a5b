"""What children say is checked, added up over their lives, and kept for the outbox until it has it."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.pipeline.errors import WireError
from camgraph.pipeline.messages import Stamp
from camgraph.pipeline.monitoring.cumulative_counters import CumulativeCounters
from camgraph.pipeline.monitoring.metrics import MOST_FILES
from camgraph.pipeline.monitoring.reports import Ended, Heartbeat, StageStats, read_report
from camgraph.pipeline.monitoring.supervisor_events import AGAIN_S, SupervisorEvents
from camgraph.pipeline.transport.wire import pack, unpack

NESTED = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 63) - 1) | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
OPS = st.sampled_from(["ready", "heartbeat", "ended", "failed", "log", "event", "oversize", "links"])


def test_a_report_survives_the_way_through_the_channel() -> None:
    stamp = Stamp("a", 0, 7, 1, 2, 3, 4, (1, 10))
    sent = {"op": "heartbeat", "counts": [("frames", "a", 3)], "frames_done": {"a": stamp}, "new": 1}
    heartbeat = read_report(unpack(pack(sent)))
    assert isinstance(heartbeat, Heartbeat)
    assert heartbeat.counts == [("frames", "a", 3)]
    assert heartbeat.frames_done == {"a": stamp}


def test_an_end_without_a_status_is_one_of_nobodys_fault() -> None:
    end = read_report({"op": "ended", "camera": "a", "reason": "error", "error": "gone"})
    assert isinstance(end, Ended)
    assert end.status == 0


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ({"op": "x"}, "got 'x'"),
        ({"op": "ready"}, "endpoint: Field required"),
        ({"op": "heartbeat", "counts": [["frames", "a"]]}, "heartbeat.counts.0"),
        ({"op": "heartbeat", "stages": {"infer": 1}}, "heartbeat.stages.infer"),
        ({"op": "ended", "camera": "a", "reason": "tired"}, "ended.reason"),
        ({"op": "heartbeat", "camera_changes": [["a", "tired", "", 1]]}, "heartbeat.camera_changes.0.1"),
        ({"op": "heartbeat", "camera_changes": [["a", "live", ""]]}, "heartbeat.camera_changes.0.3"),
        ({"op": "heartbeat", "camera_facts": {"a": {"fps": float("nan")}}}, "heartbeat.camera_facts.a.fps"),
        ({"op": "heartbeat", "camera_facts": {"a": {"size": [1, 2]}}}, "heartbeat.camera_facts.a.size"),
        ({"op": "failed", "status": "bad", "error": ""}, "failed.status"),
        ({"op": "log", "level": "info", "values": [1]}, "log.values"),
    ],
)
def test_what_is_no_report_is_refused_with_its_place(message: dict[str, Any], why: str) -> None:
    with pytest.raises(WireError, match=why):
        read_report(message)


@given(st.dictionaries(st.text(), NESTED, max_size=5), OPS)
def test_whatever_a_child_sends_is_a_report_or_refused(values: dict[str, Any], op: str) -> None:
    with contextlib.suppress(WireError):
        assert read_report({**values, "op": op}).op == op


def heartbeat(items: int, frames: int, *files: str, name: str = "infer") -> Heartbeat:
    stages = {name: StageStats(items=items, busy_ns=10 * items, batch=2.0)}
    return Heartbeat(stages=stages, counts=[("frames", "a", frames)], files=list(files))


def test_nothing_that_is_counted_falls_with_a_death() -> None:
    counters = CumulativeCounters()
    counters.note(heartbeat(5, 7, "one"))
    counters.note(heartbeat(6, 8, "one", "two"))
    counters.died()
    assert counters.this_life == 0
    assert counters.stages["infer"] == StageStats(items=6, busy_ns=60, batch=2.0)
    assert counters.counts == {("frames", "a"): 8}
    counters.note(heartbeat(1, 2, "three"))
    assert counters.this_life == 3
    assert (counters.stages["infer"].items, counters.stages["infer"].busy_ns) == (7, 70)
    assert counters.counts == {("frames", "a"): 10}
    assert counters.files == ["one", "two", "three"]


def test_a_death_before_the_first_heartbeat_costs_no_count() -> None:
    counters = CumulativeCounters()
    counters.note(heartbeat(5, 7))
    counters.died()
    counters.died()
    assert counters.stages["infer"].items == 5
    assert counters.counts == {("frames", "a"): 7}


@given(st.lists(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=4), max_size=5))
def test_totals_are_those_of_the_last_words_of_all_lives(lives: list[list[tuple[int, int]]]) -> None:
    counters = CumulativeCounters()
    for life in lives:
        for items, frames in life:
            counters.note(heartbeat(items, frames))
        counters.died()
    total = sum(life[-1][0] for life in lives)
    assert (counters.stages["infer"].items if lives else 0) == total
    assert counters.counts["frames", "a"] == sum(life[-1][1] for life in lives)


def test_newest_files_are_kept_over_all_lives() -> None:
    counters = CumulativeCounters()
    for life in range(3):
        counters.note(heartbeat(1, 1, *(f"{life}/{n}" for n in range(MOST_FILES // 2))))
        counters.note(heartbeat(1, 1, *(f"{life}/{n}" for n in range(1, MOST_FILES // 2 + 1))))
        counters.died()
    assert len(counters.files) == MOST_FILES
    assert counters.files[-1] == f"2/{MOST_FILES // 2}"
    assert not [file for file in counters.files if file.startswith("0/")]


class Told:
    """An outbox's channel."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    def send(self, op: str, **values: Any) -> bool:
        assert op == "emit"
        assert json.loads(values["body"])["id"] == values["id"]
        self.ids.append(values["id"])
        return True


def test_an_event_is_told_again_until_it_is_committed() -> None:
    own_events, outbox = SupervisorEvents("run", "graph"), Told()
    own_events.send(outbox, 1.0)
    assert outbox.ids == []
    own_events.lost("track", "a", 1, "signal 9")
    own_events.send(outbox, 1.0)
    own_events.send(outbox, 1.0 + AGAIN_S / 2)
    assert len(outbox.ids) == 1
    own_events.send(outbox, 1.0 + AGAIN_S / 2, anew=True)
    own_events.send(outbox, 1.0 + 2 * AGAIN_S)
    assert len(outbox.ids) == 3
    assert len(set(outbox.ids)) == 1
    own_events.committed("of somebody else")
    assert len(own_events) == 1
    own_events.committed(outbox.ids[0])
    own_events.send(outbox, 9.0, anew=True)
    assert len(outbox.ids) == 3


def test_each_death_of_a_stage_is_an_event_of_its_own() -> None:
    own_events, outbox = SupervisorEvents("run", "graph"), Told()
    for camera in ("a", "b"):
        for incarnation in (1, 2):
            own_events.lost("track", camera, incarnation, "signal 9")
    own_events.send(outbox, 1.0)
    assert len(set(outbox.ids)) == 4
