"""Everything that a run has reported on its cameras, and when: by its log, its events and its status. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from camgraph.pipeline.stage import AWAY
from camgraph.tools.lab.proofs.trials.frames import Seen, seen_in
from camgraph.tools.measuring.processor_time import CpuTime

How = Literal["log", "event"]


@dataclass(frozen=True, slots=True)
class StateReport:
    """A change of a camera's state, as it was reported. Events report only `lost` states and `live`."""

    at_s: float
    camera: str
    how: How
    state: str


@dataclass(frozen=True, slots=True)
class CameraStatus:
    """One camera in one answer of `camgraph status`."""

    at_s: float
    state: str = ""
    losses: int = 0
    facts: Mapping[str, str | float] = field(default_factory=dict)
    drops: Mapping[str, int] = field(default_factory=dict)


class Record:
    """All reports so far. ``wall_s``: the wall clock less the monotonic one.

    ``running_s``: when the graph was ready; ``well_s``: since when all cameras are well unless they are harmed.
    """

    def __init__(self, wall_s: float) -> None:
        self.reported: list[StateReport] = []
        self.frames: dict[str, list[Seen]] = defaultdict(list)
        self.looks: dict[str, CameraStatus] = {}
        self.history: dict[str, list[CameraStatus]] = defaultdict(list)
        self.work: list[CpuTime] = []
        self.restarts: dict[str, int] = {}
        self.deaths: list[str] = []
        self.running_s = 0.0
        self.well_s = 0.0
        self._wall_s = wall_s

    def log_line(self, line: Mapping[str, Any], now_s: float) -> None:
        """One line of the log."""
        if line.get("event") == "camera_state":
            self.reported.append(StateReport(now_s, line["camera"], "log", line["state"]))
        elif line.get("event") == "running":
            self.running_s = now_s
        elif line.get("event") == "process_died":
            self.deaths.append(f"{line['process']}: {line['reason']}")

    def event(self, event: Mapping[str, Any], now_s: float) -> None:
        """One line of the sink."""
        data = event["data"]
        if event["type"].startswith("camgraph.camera."):
            self.reported.append(StateReport(now_s, data["camera"], "event", data.get("state", "ended")))
        elif found := seen_in(event, now_s, self._wall_s):
            self.frames[found[0]].append(found[1])

    def status(self, status: Mapping[str, Any], now_s: float) -> None:
        """One answer of `camgraph status`."""
        for name, camera in status["cameras"].items():
            keys = (camera["state"], camera["losses"], camera["facts"], camera["drops_by_reason"])
            self.looks[name] = CameraStatus(now_s, *keys)
            self.history[name].append(self.looks[name])
        self.restarts = {name: process["restarts"] for name, process in status["processes"].items()}

    def look(self, camera: str) -> CameraStatus:
        """The newest status of the camera."""
        return self.looks.get(camera, CameraStatus(0.0))

    def first(self, camera: str, how: How, states: Collection[str], after_s: float) -> float | None:
        """When one of these states was first reported that way since ``after_s``."""
        return next((t.at_s for t in self._since(camera, how, after_s) if t.state in states), None)

    def last_of(self, camera: str, states: Sequence[str], after_s: float) -> float | None:
        """When the log had reported all of these states in this order: the time of the last."""
        at_s: float | None = after_s
        for state in states:
            at_s = self.first(camera, "log", {state}, at_s) if at_s is not None else None
        return at_s

    def shown_lost(self, camera: str, losses: int, after_s: float) -> float | None:
        """When status first showed more losses than this: a camera that is back soon may never show as lost."""
        return next((one.at_s for one in self.history[camera] if one.at_s >= after_s and one.losses > losses), None)

    def is_spared(self, camera: str, since_s: float) -> bool:
        """Whether status has come since then and shows no new drops, but for `queue_full`."""
        *_, before = [CameraStatus(0.0), *(one for one in self.history[camera] if one.at_s < since_s)]
        now = self.look(camera)
        more = {reason for reason, n in now.drops.items() if n > before.drops.get(reason, 0)}
        return now.at_s >= since_s and more <= {"queue_full"}

    def states(self, camera: str, after_s: float) -> list[str]:
        """The lines of the log since then."""
        return [one.state for one in self._since(camera, "log", after_s)]

    def away(self, camera: str, after_s: float) -> list[StateReport]:
        """The lines of the log since then on a camera that is not live."""
        return [reported for reported in self._since(camera, "log", after_s) if reported.state in AWAY]

    def unpaired(self, camera: str) -> str:
        """How the losses differ from the events of their beginnings and ends; "" if they match."""
        returns = [
            one.state in ("live", "ended") for one in self.reported if one.camera == camera and one.how == "event"
        ]
        in_turn = all(back == bool(number % 2) for number, back in enumerate(returns))
        losses = self.look(camera).losses
        if in_turn and len(returns) == 2 * losses:
            return ""
        return f"{losses} losses, events: {' '.join('back' if back else 'lost' for back in returns)}"

    def frame_after(self, camera: str, filmed_s: float) -> float | None:
        """When the first frame came out that came after this moment."""
        return next((seen.at_s for seen in self.frames[camera] if seen.at_s > filmed_s), None)

    def frames_since(self, camera: str, since_s: float) -> int:
        """How many came out."""
        frames = self.frames[camera]
        return next((n for n, seen in enumerate(reversed(frames)) if seen.at_s < since_s), len(frames))

    def _since(self, camera: str, how: How, after_s: float) -> Iterable[StateReport]:
        return (t for t in self.reported if t.at_s >= after_s and t.camera == camera and t.how == how)
