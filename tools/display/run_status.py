"""The status of a running graph, and the summary at its end: plain values for display."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter

from camgraph.pipeline.errors import UserError

T = TypeVar("T")
_LARGEST = 1e15
"""No count or time of a run is as large; larger ones cannot be told in words."""


@dataclass(frozen=True, slots=True)
class CameraStatus:
    """One camera now. `age_ms`: of its newest frame, None before the first; `events`: how many incidents it had.

    `why` and `since_s`: of its state, if known; `losses`: how often it was away; `error`: why it ended early. `done`:
    the share of a file that has been read, 0 to 1, if known.
    """

    state: str = "starting"
    why: str = ""
    since_s: float | None = None
    losses: int = 0
    fps: float = 0.0
    frames: int = 0
    drops: int = 0
    age_ms: float | None = None
    events: int = 0
    error: str = ""
    done: float | None = None

    @property
    def incidents(self) -> int:
        return self.events


@dataclass(frozen=True, slots=True)
class StageStatus:
    """One stage now, over all of its processes.

    `busy`: the share of the last seconds that it worked, 1.0 is one thread's worth. `state`: `running`, or how the
    first of its processes is that is not.
    """

    processes: int = 1
    queue: int = 0
    batch: float | None = None
    latency_ms_p50: float | None = None
    latency_ms_p99: float | None = None
    fps: float = 0.0
    restarts: int = 0
    busy: float = 0.0
    state: str = "running"


@dataclass(frozen=True, slots=True)
class TroubleStatus:
    """A trouble, by the name of a stage or process, and for how long."""

    where: str = ""
    why: str = ""
    since_s: float = 0.0


@dataclass(frozen=True, slots=True)
class HealthStatus:
    """The health of a run (`healthy`, `degraded`, `down`), and the reason; "" for runs of an older camgraph."""

    level: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class EventStatus:
    """One of the last events."""

    time: str = ""
    camera: str = ""
    action: str = ""
    phase: str = ""
    people: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Totals:
    """Of all cameras of a run, also those that went. `events`: incidents; `committed`: with their updates and ends."""

    frames: int = 0
    drops: int = 0
    events: int = 0
    committed: int = 0

    @classmethod
    def from_json(cls, data: Mapping[str, Any], cameras: Iterable[CameraStatus | CameraSummary]) -> Totals:
        """Make it from a run's answer; without the list of cameras, the run has those that its status shows."""
        if isinstance(data.get("totals"), Mapping):
            return _made(cls, data["totals"])
        rows = [(one.frames, one.drops, one.incidents) for one in cameras]
        frames, drops, events = (sum(column) for column in zip(*rows, strict=True)) if rows else (0, 0, 0)
        return cls(frames, drops, events, events)


@dataclass(frozen=True, slots=True)
class ProgressStatus:
    """How far a run of files has come: `done` is 0 to 1, `left_s` None until the pace is known."""

    done: float = 0.0
    left_s: float | None = None


@dataclass(frozen=True, slots=True)
class BacklogStatus:
    """The events that wait in the outbox for a sink, the age of the oldest if known, and those that were given up."""

    waiting: int = 0
    oldest_s: float | None = None
    dead_letters: int = 0
    given_up: int = 0


@dataclass(frozen=True, slots=True)
class Status:
    """A running graph now. `events`: the last ones, oldest first. `phase`: starting, running, stopping or over.

    `limit`: the stage that limits the run and a remedy, "" if it keeps up. `progress`: None for a run without an end.
    """

    graph: str = ""
    uptime_s: float = 0.0
    progress: ProgressStatus | None = None
    phase: str = "running"
    health: HealthStatus = HealthStatus()
    troubles: Sequence[TroubleStatus] = ()
    limit: str = ""
    cameras: Mapping[str, CameraStatus] = field(default_factory=dict)
    stages: Mapping[str, StageStatus] = field(default_factory=dict)
    events: Sequence[EventStatus] = ()
    memory_mb: float = 0.0
    totals: Totals = Totals()
    switches: Mapping[str, bool] = field(default_factory=dict)
    counters: Mapping[str, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)
    """Camera -> counter -> name -> number."""
    backlogs: Mapping[str, BacklogStatus] = field(default_factory=dict)
    """Sink -> what waits for it."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Status:
        """Made of a run's answer. Keys of a newer run are passed over, those that an older one lacks have defaults.

        Raises UserError for an answer of another form.
        """
        return _readable(lambda: cls._made(data))

    @classmethod
    def _made(cls, data: Mapping[str, Any]) -> Status:
        cameras = {name: _made(CameraStatus, values) for name, values in data.get("cameras", {}).items()}
        return cls(
            graph=str(data.get("graph", "")),
            uptime_s=_checked(float, data.get("uptime_s", 0)),
            progress=_made(ProgressStatus, data["progress"]) if data.get("progress") else None,
            phase=str(data.get("phase", "running")),
            health=_made(HealthStatus, data.get("health") or {}),
            troubles=tuple(_made(TroubleStatus, trouble) for trouble in data.get("troubles", ())),
            limit=_limit(data),
            cameras=cameras,
            stages={name: _made(StageStatus, values) for name, values in data.get("stages", {}).items()},
            events=tuple(
                _made(EventStatus, {**event, "people": tuple(event.get("people", ()))})
                for event in data.get("events", ())
            ),
            memory_mb=_checked(float, data.get("memory_mb", 0)),
            totals=Totals.from_json(data, cameras.values()),
            switches=_checked(dict[str, bool], data.get("switches", {})),
            counters=_checked(dict[str, dict[str, dict[str, int]]], data.get("counters", {})),
            backlogs={sink: _made(BacklogStatus, values) for sink, values in data.get("outbox", {}).items()},
        )


@dataclass(frozen=True, slots=True)
class CameraList:
    """The cameras of a run, and the requirements for a further one (`pipeline.supervision.requests`).

    `source`: the kind of the graph's source; `defaults`: the settings that a further camera starts with; `graph_file`:
    "" if there is none. `busy`: a change has not come to its end. `problems`: camera -> why it was refused; `refused`:
    process -> why it does not open with its new settings.
    """

    source: str = ""
    base_folder: str = ""
    defaults: Mapping[str, Any] = field(default_factory=dict, repr=False)
    graph_file: str = ""
    busy: bool = False
    coming: Sequence[str] = ()
    leaving: Sequence[str] = ()
    paused: Sequence[str] = ()
    by_command: Sequence[str] = ()
    problems: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    cameras: Mapping[str, CameraStatus] = field(default_factory=dict)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> CameraList:
        """Made of a run's answer, as `Status.from_json`."""

        def made() -> CameraList:
            cameras = {name: _made(CameraStatus, values) for name, values in data.get("cameras", {}).items()}
            return _made(cls, {**data, "cameras": cameras})

        return _readable(made)


@dataclass(frozen=True, slots=True)
class Reloaded:
    """The changes that a changed graph file makes to a run: names of cameras and processes.

    `restarted`: processes that begin anew with other settings; `going_on`: those that take them while they live.
    """

    added: Sequence[str] = ()
    removed: Sequence[str] = ()
    changed: Sequence[str] = ()
    kept: Sequence[str] = ()
    restarted: Sequence[str] = ()
    going_on: Sequence[str] = ()

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Reloaded:
        """Made of a run's answer, as `Status.from_json`."""
        return _readable(lambda: _made(cls, data))

    @property
    def changes_something(self) -> bool:
        """False if the file matches the run already."""
        return bool(self.added or self.removed or self.changed or self.restarted or self.going_on)


@dataclass(frozen=True, slots=True)
class CameraSummary:
    """One camera at the end. `events`: action -> how often it started; `error`: why it ended early."""

    frames: int = 0
    drops: int = 0
    events: Mapping[str, int] = field(default_factory=dict)
    error: str = ""

    @property
    def incidents(self) -> int:
        return sum(self.events.values())


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
    totals: Totals = Totals()
    limit: str = ""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Summary:
        """Made of plain values, as `Status.from_json`."""
        cameras = {name: _made(CameraSummary, values) for name, values in data.get("cameras", {}).items()}
        return cls(
            graph=str(data.get("graph", "")),
            duration_s=float(data.get("duration_s", 0)),
            cameras=cameras,
            files=tuple(map(str, data.get("files", ()))),
            untaken=int(data.get("untaken", 0)),
            departed=_made(CameraSummary, data["departed"]) if data.get("departed") else None,
            totals=Totals.from_json(data, cameras.values()),
            limit=_limit(data),
        )


def _limit(data: Mapping[str, Any]) -> str:
    return str((data.get("limit") or {}).get("text", ""))


def _made(kind: type[T], values: Mapping[str, Any]) -> T:
    known = {entry.name for entry in fields(kind)}  # type: ignore[arg-type]  # T is one of the dataclasses above
    return _checked(kind, {name: value for name, value in values.items() if name in known})


def _checked(kind: type[T], value: Any) -> T:
    """Raises ValueError for a value of another type."""
    _check_numbers(value)
    checked: T = _adapter(kind).validate_python(value)  # type: ignore[arg-type]  # types are hashable
    return checked


def _check_numbers(value: Any) -> None:
    if isinstance(value, int | float) and not abs(value) < _LARGEST:
        raise ValueError(f"expected a number below {_LARGEST:g}")
    if isinstance(value, Mapping):
        for part in value.values():
            _check_numbers(part)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _readable(made: Callable[[], T]) -> T:
    """What `made` returns. Raises UserError if the answer of a run has another form than this version knows."""
    try:
        return made()
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(
            f"the answer of the run cannot be read ({why}): is it from another version of camgraph than this command?",
            error_id="run-unreadable",
        ) from None
