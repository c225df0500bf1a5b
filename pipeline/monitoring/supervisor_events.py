"""Events beside those that stages make of frames: a stage has lost its state; a camera is lost, is back, or is no
longer wanted; a sink has something to add.

They go to the outbox like all events, and are sent again until the outbox reports that it has committed them: it may
die in between, and recognises a repeated one by its id. The events of one camera's losses are sent one after the other,
which keeps their order. If the outbox accepts none for long, only the newest are kept.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Protocol

from camgraph.pipeline.errors import ProblemText
from camgraph.pipeline.monitoring.camera_states import Change, LossOver
from camgraph.pipeline.monitoring.event_format import Origin, event_format
from camgraph.pipeline.plan import ProcessPlan

AGAIN_S = 1.0
MOST_KEPT = 32
"""How many events of one camera (or one stage and camera) are kept at most."""


class Sender(Protocol):
    """The way to the outbox."""

    def send(self, op: str, **values: Any) -> bool: ...


class Mortal(Protocol):
    """The facts about a process that decide what is lost with it."""

    @property
    def plan(self) -> ProcessPlan: ...

    @property
    def incarnation(self) -> int: ...

    @property
    def ended(self) -> Collection[str]: ...

    @property
    def stateful_stages(self) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class _Kept:
    """An event and its subject: (stage, camera), with "" for the stage if it is about the camera itself."""

    about: tuple[str, str]
    event: dict[str, Any]


class SupervisorEvents:
    """Events that the outbox has not committed yet. `run`: the run's name; `graph`: its graph's.

    Without an `outbox` in the graph, nothing is kept.
    """

    def __init__(self, run: str, graph: str, *, outbox: bool = True) -> None:
        self._outbox = outbox
        # Part of each id, because sinks may read the events of several runs of this name.
        self._run = f"{run}/{secrets.token_hex(8)}"
        self._graph = graph
        self._format = event_format()
        self._kept: dict[str, _Kept] = {}
        self._again_at = 0.0

    def lost_by(self, process: Mortal, reason: str) -> list[ProblemText]:
        """The stages of a dead process have lost their state: keep their events, and return one text a stage.

        Cameras that have ended had no state left.
        """
        cameras = [camera for camera in process.plan.cameras if camera not in process.ended]
        stages = process.stateful_stages if cameras else []
        for stage in stages:
            for camera in cameras:
                self.lost(stage, camera, process.incarnation, reason)
        return [
            ProblemText(f"{stage} lost its state ({reason}) and began anew", error_id="state-lost") for stage in stages
        ]

    def lost(self, stage: str, camera: str, incarnation: int, reason: str) -> None:
        """A stage has lost its state of a camera, because its process died in this incarnation."""
        event_id = self._digest("restarted", stage, camera, incarnation)
        origin = Origin(event_id, self._graph, time.time_ns())
        body = self._format.stage_restarted(origin, stage=stage, camera=camera, reason=reason)
        self._keep((stage, camera), _emitted(stage, camera, (event_id, event_id), body, incarnation=incarnation))

    def camera(self, stage: str, change: Change | LossOver) -> int:
        """A loss of a camera of this source begins, or is over. Returns how many older events were dropped for it."""
        incident = self._digest("camera", change.camera, change.loss)
        begins = isinstance(change, Change) and change.lost_s is None
        event_id = self._digest("camera", change.camera, change.loss, "start" if begins else "end")
        wall_ns = time.time_ns() - (time.monotonic_ns() - change.at_ns)
        body = self._format.camera_changed(Origin(event_id, self._graph, wall_ns), incident, change)
        # Incarnation 0: no process died, so the outbox has no incidents to end.
        return self._keep(
            ("", change.camera), _emitted(stage, change.camera, (event_id, incident), body, incarnation=0)
        )

    def emitted(self, stage: str, camera: str, event: dict[str, Any]) -> None:
        """A sink gives the outbox an event (`pipeline.stage.Context.emit`) and waits until it is committed."""
        if event["id"] not in self._kept:
            self._keep((stage, str(event["id"])), {"sender": stage, "camera": camera, "incarnation": 0, **event})

    def _digest(self, *parts: object) -> str:
        return hashlib.sha256(json.dumps([self._run, *parts]).encode()).hexdigest()[:32]

    # ---- the kept events

    def _keep(self, about: tuple[str, str], event: dict[str, Any]) -> int:
        if not self._outbox:
            return 0
        self._kept[event["id"]] = _Kept(about, event)
        self._again_at = 0.0
        same = [event_id for event_id, kept in self._kept.items() if kept.about == about]
        victims = [] if len(same) <= MOST_KEPT else self._loss_among(same) if about[0] == "" else same[:1]
        for event_id in victims:
            del self._kept[event_id]
        return len(victims)

    def _loss_among(self, ids: list[str]) -> list[str]:
        """The beginning and end of the oldest loss that was not sent yet: the first event may be on its way."""
        over = str(self._kept[ids[0]].event["incident"]) != str(self._kept[ids[1]].event["incident"])
        return ids[1:3] if over else ids[2:4]

    def send(self, outbox: Sender, now: float, *, anew: bool = False) -> None:
        """Send the uncommitted events if it is time: at once to an outbox that began `anew`, and each second."""
        if not self._kept or not (anew or now >= self._again_at):
            return
        self._again_at = now + AGAIN_S
        begun: set[tuple[str, str]] = set()
        for kept in self._kept.values():
            if kept.about[0] or kept.about not in begun:
                outbox.send("emit", **kept.event)
            begun.add(kept.about)

    def committed(self, event_id: str) -> bool:
        """The outbox has committed the event of this id, of any sender. If it is a kept one, the next may go.

        True if it was a kept one.
        """
        known = self._kept.pop(event_id, None)
        if known:
            self._again_at = 0.0
        return known is not None

    @property
    def kept(self) -> list[str]:
        """The ids of the uncommitted events."""
        return list(self._kept)

    def __len__(self) -> int:
        return len(self._kept)


def _emitted(sender: str, camera: str, ids: tuple[str, str], body: bytes, *, incarnation: int) -> dict[str, Any]:
    """The message to the outbox. `ids`: of the event, and of its incident."""
    event = {"sender": sender, "camera": camera, "id": ids[0], "incident": ids[1], "phase": "single"}
    return {**event, "incarnation": incarnation, "time_ns": 0, "body": body}
