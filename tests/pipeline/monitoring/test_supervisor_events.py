"""The supervisor's own events, kept for the outbox until it has them."""

from __future__ import annotations

import json
import time
from datetime import datetime
from typing import Any

from camgraph.pipeline.monitoring.camera_states import Change
from camgraph.pipeline.monitoring.supervisor_events import AGAIN_S, MOST_KEPT, SupervisorEvents


class Told:
    """An outbox's channel; what is committed is what a test says."""

    def __init__(self, own_events: SupervisorEvents) -> None:
        self.own_events = own_events
        self.bodies: list[dict[str, Any]] = []

    def send(self, op: str, **values: Any) -> bool:
        assert op == "emit"
        body = json.loads(values["body"])
        assert body["id"] == values["id"]
        assert values["phase"] == "single", "the outbox must not end what only a camera can"
        self.bodies.append(body)
        return True

    def commit_all(self) -> list[dict[str, Any]]:
        """Take one turn after the other, and commit all that comes; the events in their order."""
        events: list[dict[str, Any]] = []
        while len(self.own_events):
            self.bodies.clear()
            self.own_events.send(self, time.monotonic())
            assert self.bodies, "nothing is handed over, and something is kept"
            for body in self.bodies:
                events.append(body)
                self.own_events.committed(body["id"])
        return events


def lost(number: int, camera: str = "front") -> Change:
    return Change(camera, "stalled", "no packet for 3 s", "live", 9.0, time.monotonic_ns(), number)


def back(number: int, camera: str = "front") -> Change:
    return Change(camera, "live", "", "stalled", 2.5, time.monotonic_ns(), number, 2.5)


def both(own_events: SupervisorEvents, number: int, camera: str = "front") -> int:
    return own_events.camera("capture", lost(number, camera)) + own_events.camera("capture", back(number, camera))


def test_what_the_events_of_a_loss_say() -> None:
    own_events = SupervisorEvents("run", "lobby")
    both(own_events, 1)
    first, second = Told(own_events).commit_all()
    assert (first["type"], second["type"]) == ("camgraph.camera.lost", "camgraph.camera.back")
    assert first["data"]["incident"] == second["data"]["incident"]
    assert first["id"] != second["id"]
    assert (first["source"], first["subject"]) == ("camgraph/lobby", "front")
    reported = {"phase": "start", "camera": "front", "state": "stalled", "why": "no packet for 3 s"}
    assert first["data"] == {"incident": first["data"]["incident"], **reported}
    assert (second["data"]["phase"], second["data"]["state"], second["data"]["lost_s"]) == ("end", "live", 2.5)


def test_the_time_is_that_of_the_change_and_not_of_its_telling() -> None:
    own_events = SupervisorEvents("run", "lobby")
    own_events.camera("capture", Change("front", "lost", "", "live", 0, time.monotonic_ns() - 3600 * 10**9, 1))
    [event] = Told(own_events).commit_all()
    assert abs(time.time() - 3600 - datetime.fromisoformat(event["time"]).timestamp()) < 60


def test_next_event_of_camera_waits_for_commit() -> None:
    own_events = SupervisorEvents("run", "graph")
    outbox = Told(own_events)
    both(own_events, 1)
    both(own_events, 1, "yard")
    own_events.send(outbox, 1.0)
    assert [(body["subject"], body["data"]["phase"]) for body in outbox.bodies] == [
        ("front", "start"),
        ("yard", "start"),
    ]
    own_events.send(outbox, 1.0 + AGAIN_S / 2)
    assert len(outbox.bodies) == 2
    own_events.committed(outbox.bodies[0]["id"])
    own_events.send(outbox, 1.0 + AGAIN_S / 2)
    assert [(b["subject"], b["data"]["phase"]) for b in outbox.bodies[2:]] == [("front", "end"), ("yard", "start")]


def test_new_outbox_gets_uncommitted_events_again() -> None:
    own_events = SupervisorEvents("run", "graph")
    outbox = Told(own_events)
    own_events.camera("capture", lost(1))
    own_events.send(outbox, 1.0)
    own_events.send(outbox, 1.0, anew=True)
    assert [body["id"] for body in outbox.bodies] == 2 * [outbox.bodies[0]["id"]]


def test_other_losses_cameras_and_runs_have_other_ids() -> None:
    ids = set()
    for _ in range(2):
        own_events = SupervisorEvents("run", "graph")
        both(own_events, 1)
        both(own_events, 2)
        both(own_events, 1, "yard")
        own_events.lost("track", "front", 1, "signal 9")
        ids |= {event["id"] for event in Told(own_events).commit_all()}
    assert len(ids) == 14


def test_newest_losses_are_kept_whole() -> None:
    own_events = SupervisorEvents("run", "graph")
    outbox = Told(own_events)
    forgotten = own_events.camera("capture", lost(1))
    own_events.send(outbox, 1.0)  # it may be committed, though nobody has heard so
    handed = outbox.bodies[0]["id"]
    forgotten += own_events.camera("capture", back(1))
    forgotten += sum(both(own_events, number) for number in range(2, 500))
    newest = list(own_events.kept)[-1]
    both(own_events, 1, "yard")
    assert len(own_events) == MOST_KEPT + 2
    assert forgotten == 2 * 499 - MOST_KEPT
    events = [event for event in outbox.commit_all() if event["subject"] == "front"]
    assert events[0]["id"] == handed
    incidents = [event["data"]["incident"] for event in events]
    assert incidents[::2] == incidents[1::2], "each loss with its end"
    assert len(set(incidents)) == MOST_KEPT // 2
    assert events[-1]["id"] == newest


def test_kept_events_span_handed_over_to_newest() -> None:
    own_events = SupervisorEvents("run", "graph")
    outbox = Told(own_events)
    own_events.camera("capture", lost(1))
    own_events.send(outbox, 1.0)
    own_events.committed(outbox.bodies[0]["id"])
    own_events.camera("capture", back(1))
    own_events.send(outbox, 2.0)
    handed = outbox.bodies[-1]["id"]
    for number in range(2, 100):
        both(own_events, number)
    own_events.camera("capture", lost(100))
    assert len(own_events) == MOST_KEPT
    events = outbox.commit_all()
    assert events[0]["id"] == handed
    assert [event["data"]["phase"] for event in events] == ["end", "start"] * (MOST_KEPT // 2)


def test_of_a_stage_that_keeps_dying_the_newest_deaths_are_kept() -> None:
    own_events = SupervisorEvents("run", "graph")
    for incarnation in range(1, 500):
        own_events.lost("track", "front", incarnation, f"death {incarnation}")
    reasons = [event["data"]["reason"] for event in Told(own_events).commit_all()]
    assert reasons == [f"death {n}" for n in range(500 - MOST_KEPT, 500)]


def test_where_there_is_no_outbox_nothing_is_kept_for_it() -> None:
    own_events = SupervisorEvents("run", "graph", outbox=False)
    own_events.lost("track", "front", 1, "signal 9")
    both(own_events, 1)
    assert len(own_events) == 0
