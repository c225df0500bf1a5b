"""The summary of a run at its end: of each camera, of those that left, of all together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from camgraph.pipeline.monitoring.run_status import RunStatus, Totals
from camgraph.pipeline.plan import RunPlan
from camgraph.pipeline.stage import DROPPED
from camgraph.stages.events import CAMERA_TYPES


@dataclass(frozen=True, slots=True)
class CameraSummary:
    """One camera at the end. `events`: action -> how often it started; `error`: why it ended early."""

    frames: int = 0
    drops: int = 0
    events: Mapping[str, int] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, slots=True)
class Summary:
    """A run at its end. `files`: its outputs; `untaken`: the number of events that no sink of the graph takes.

    `departed`: cameras that went before the end, taken together. `limit`: the stage that limited the run and a remedy,
    "" if it kept up.
    """

    graph: str = ""
    duration_s: float = 0.0
    cameras: Mapping[str, CameraSummary] = field(default_factory=dict)
    files: Sequence[str] = ()
    untaken: int = 0
    departed: CameraSummary | None = None
    totals: Totals = field(default_factory=Totals)
    limit: str = ""


def summary_of(status: RunStatus, plan: RunPlan) -> Summary:
    """The summary of a run with this last status."""
    takes_all = any(not makers for makers in plan.event_filters.values())
    return Summary(
        graph=status.graph,
        duration_s=status.uptime_s,
        cameras={
            name: CameraSummary(camera.frames, camera.drops, status.actions.get(name, {}), camera.error)
            for name, camera in status.cameras.items()
        },
        files=[path for path in status.files if Path(path).exists()],  # not one that was taken away meanwhile
        untaken=0 if takes_all else _camera_events(status.actions),
        departed=_departed(status),
        totals=status.totals,
        limit=status.limit,
    )


def _camera_events(actions: Mapping[str, Mapping[str, int]]) -> int:
    """The number of events of cameras: no stage makes them, and only sinks that take all events get them."""
    return sum(n for of_one in actions.values() for name, n in of_one.items() if name.startswith(CAMERA_TYPES))


def _departed(status: RunStatus) -> CameraSummary | None:
    """The totals of cameras that have left the run; None if none of them left anything."""
    here = {"", *status.cameras}
    left = [(name, n) for name, camera, n in status.counts if camera not in here]
    frames = sum(n for name, n in left if name == "frames")
    drops = sum(n for name, n in left if name.startswith(DROPPED))
    actions = (Counter(actions) for camera, actions in status.actions.items() if camera not in here)
    events = sum(actions, Counter[str]())
    return CameraSummary(frames, drops, dict(events)) if frames or drops or events else None
