"""Heartbeats: when they are due, what is in them, and that a change of a camera is never lost on the way."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from camgraph.pipeline.execution.source_thread import Silence
from camgraph.pipeline.monitoring.metrics import Counters
from camgraph.pipeline.monitoring.reports import Heartbeat, read_report
from camgraph.pipeline.testing import stamp
from camgraph.pipeline.worker import heartbeats
from camgraph.pipeline.worker.heartbeats import Heartbeats
from camgraph.pipeline.worker.message_path import MessagePath


class Clock:
    """Seconds, moved by hand. `worked_s`: the processor time of the process."""

    def __init__(self) -> None:
        self.now_s, self.worked_s = 100.0, 7.0

    def monotonic(self) -> float:
        return self.now_s

    def process_time(self) -> float:
        return self.worked_s


class Process:
    """The parts that have something to report. A test sets them, and reads the heartbeats that were sent."""

    def __init__(self, *, only_sources: bool = False, hang_s: float = 10.0) -> None:
        self.sent: list[dict[str, Any]] = []
        self.listens = True
        self.counters = Counters()
        self.retry = SimpleNamespace(waits_for="", patient=False, troubles=[])
        self.relay = SimpleNamespace(waits_for="", troubles=[], backlog={})
        self.sources = SimpleNamespace(silence=Silence(), frames_done={}, queued=[])
        path: Any = {
            "chain": SimpleNamespace(runners={}, ages_ms=dict, take_calls=dict, take_ages=dict),
            "ring": SimpleNamespace(in_use=3),
            "sender": SimpleNamespace(in_flight=5),
            "sources": self.sources,
            "receiver": None if only_sources else SimpleNamespace(mailboxes=SimpleNamespace(waiting=lambda: 2)),
            "input_loop": None if only_sources else SimpleNamespace(working_since_ns=40),
            "relay": None if only_sources else self.relay,
        }
        shared: Any = SimpleNamespace(counters=self.counters, retry=self.retry)
        self.heartbeats = Heartbeats(MessagePath(**path), self, shared, hang_s=hang_s)  # type: ignore[arg-type]

    def send(self, op: str, **values: Any) -> bool:
        self.sent.append({"op": op, **values})
        return self.listens

    def reported(self) -> Heartbeat:
        """Send a heartbeat now, and return it as the supervisor reads it."""
        self.heartbeats.send()
        report = read_report(self.sent[-1])
        assert isinstance(report, Heartbeat)
        return report


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(heartbeats, "time", clock)
    return clock


def test_four_heartbeats_a_second_however_often_the_loop_turns(clock: Clock) -> None:
    process = Process()
    for _ in range(1000):
        process.counters.add("frames", "front")
        process.heartbeats.send_in_time()
        clock.now_s += 0.002
    assert len(process.sent) == pytest.approx(8, abs=1)


@pytest.mark.parametrize(("hang_s", "heartbeats_of_4_s"), [(10.0, 4), (3600.0, 4), (1.0, 16)])
def test_one_heartbeat_a_second_while_nothing_happens(clock: Clock, hang_s: float, heartbeats_of_4_s: int) -> None:
    process = Process(hang_s=hang_s)
    for _ in range(2000):
        clock.worked_s += 0.0001
        process.heartbeats.send_in_time()
        clock.now_s += 0.002
    assert len(process.sent) == pytest.approx(heartbeats_of_4_s, abs=1)


@pytest.mark.parametrize("hang_s", [10.0, 1.0])
def test_a_process_at_rest_is_not_searched_for_news(clock: Clock, hang_s: float) -> None:
    process, looks = Process(hang_s=hang_s), list[float]()
    process.counters.camera_changes = lambda: looks.append(clock.now_s) or []  # type: ignore[method-assign, func-returns-value]
    for _ in range(40):
        process.heartbeats.send_in_time(at_rest=True)
        clock.now_s += process.heartbeats.longest_wait_ms / 1000
    assert len(looks) == len(process.sent) == 20
    assert max(b - a for a, b in pairwise(looks)) <= min(1.0, 0.25 * hang_s) + 0.001


def test_news_are_told_at_the_next_beat(clock: Clock) -> None:
    process = Process()
    process.heartbeats.send_in_time()
    for happens in (
        lambda: process.counters.camera_is("front", "lost", "gone"),
        lambda: process.counters.add("frames", "front"),
        lambda: setattr(process.retry, "waits_for", "log: full"),
    ):
        clock.now_s += 0.251
        before = len(process.sent)
        process.heartbeats.send_in_time()
        assert len(process.sent) == before, "nothing has happened"
        happens()
        clock.now_s += 0.251
        process.heartbeats.send_in_time()
        assert len(process.sent) == before + 1


def test_a_delayed_loop_sends_one_heartbeat_for_all_missed(clock: Clock) -> None:
    process = Process()
    process.heartbeats.send_in_time()
    clock.now_s += 60.0
    for _ in range(3):
        process.heartbeats.send_in_time()
    assert len(process.sent) == 2


def test_a_heartbeat_has_the_state_of_every_part(clock: Clock) -> None:
    process = Process()
    process.sources.silence = Silence(since_ns=9, opening=True)
    process.sources.frames_done = {"front": stamp(4, "front")}
    process.counters.add("frames", "front", 6)
    heartbeat = process.reported()
    assert (heartbeat.queue, heartbeat.in_flight, heartbeat.slots, heartbeat.working_since_ns) == (2, 5, 3, 40)
    assert (heartbeat.source_silent_since_ns, heartbeat.source_opening) == (9, True)
    assert heartbeat.frames_done == {"front": stamp(4, "front")}
    assert heartbeat.counts == [("frames", "front", 6)]


def test_a_process_of_sources_has_no_queue_and_no_batch() -> None:
    heartbeat = Process(only_sources=True).reported()
    assert (heartbeat.queue, heartbeat.working_since_ns, heartbeat.blocked_on) == (0, 0, "")


def test_processor_time_counts_from_the_opened_stages_on(clock: Clock) -> None:
    process = Process()
    process.heartbeats.begin()
    clock.worked_s += 1.5
    assert process.reported().cpu_s == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("stage", "outbox", "patient", "expected"),
    [
        ("", "", False, ("", False)),
        ("log: full", "", False, ("log: full", False)),
        ("api: not asked", "", True, ("api: not asked", True)),
        ("", "outbox: full", False, ("outbox: full", False)),
        ("api: not asked", "outbox: full", True, ("api: not asked", False)),
    ],
)
def test_a_process_is_patient_only_if_just_a_reader_blocks_it(
    stage: str, outbox: str, patient: bool, expected: tuple[str, bool]
) -> None:
    process = Process()
    process.retry.waits_for, process.retry.patient = stage, patient
    process.relay.waits_for = outbox
    heartbeat = process.reported()
    assert (heartbeat.blocked_on, heartbeat.patient) == expected


def test_troubles_of_retries_stages_and_the_outbox_are_all_named() -> None:
    process = Process()
    process.retry.troubles = [("log", "", "full")]
    process.relay.troubles = [("outbox", "", "slow")]
    process.counters.trouble("lamp", "does not answer", "front")
    assert process.reported().troubles == [
        ("log", "", "full"),
        ("lamp", "front", "does not answer"),
        ("outbox", "", "slow"),
    ]


def test_camera_changes_of_a_dropped_heartbeat_are_resent() -> None:
    process = Process()
    process.counters.camera_is("front", "live", "")
    process.listens = False
    process.heartbeats.send()
    process.counters.camera_is("front", "lost", "gone")
    process.listens = True
    assert [change.state for change in process.reported().camera_changes] == ["live", "lost"]
    assert process.reported().camera_changes == [], "each is reported once"


def test_a_heartbeat_has_only_what_has_changed(clock: Clock) -> None:
    process = Process()
    process.counters.add("frames", "front", 6)
    first = process.reported()
    assert "counts" in first.model_fields_set
    assert process.reported().model_fields_set == {"op"}
    process.counters.add("frames", "front")
    process.counters.camera_shows("front", {"codec": "h264"})
    changed = process.reported()
    assert changed.model_fields_set == {"op", "counts", "camera_facts"}
    whole = changed.after(first)
    assert (whole.counts, whole.queue, whole.slots) == ([("frames", "front", 7)], 2, 3)


def test_what_is_empty_again_is_a_change(clock: Clock) -> None:
    process = Process()
    process.counters.trouble("lamp", "does not answer", "front")
    first = process.reported()
    process.counters.trouble("lamp", "", "front")
    assert process.reported().after(first).troubles == []


def test_a_heartbeat_after_a_dropped_one_is_whole(clock: Clock) -> None:
    process = Process()
    first = process.reported()
    process.listens = False
    process.counters.add("frames", "front")
    process.heartbeats.send()
    process.listens = True
    assert process.reported().model_fields_set == first.model_fields_set
