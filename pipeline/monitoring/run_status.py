"""The status of a run, as all know it: the run that builds it, its commands, its service and programs.

    status = run.status()                        a RunStatus, built by `pipeline.monitoring.status`
    as_json(status)                              the plain values of `camgraph status --json`, in this order
    RunStatus.from_json(answer)                  read again from the answer of a run, perhaps of another version

The fields are the keys of the JSON, and their order is that of the keys. Every field has a default, because an older
run may lack the key. docs/operations.md says what the keys mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Annotated, Any, Self, TypeVar

from pydantic import Field, TypeAdapter

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.monitoring.bottleneck import Limit
from camgraph.pipeline.monitoring.camera_states import Fact
from camgraph.pipeline.monitoring.event_format import EventStatus
from camgraph.pipeline.monitoring.health import Health, Trouble

T = TypeVar("T")
_LARGEST = 1e15
"""No count or time of a run is as large; larger ones cannot be told in words."""


@dataclass(frozen=True, slots=True)
class CameraStatus:
    """One camera now. `age_ms`: the age of the newest frame, None before the first; `events`: the number of incidents.

    `why` and `since_s`: the reason and duration of `state`, if known; `losses`: how often the camera was away;
    `error`: why the camera ended early.
    """

    state: str = "starting"
    why: str = ""
    error_id: str = ""
    since_s: float | None = None
    losses: int = 0
    facts: Mapping[str, Fact] = field(default_factory=dict)
    error: str = ""
    fps: float = 0.0
    frames: int = 0
    through_s: float | None = None
    drops: int = 0
    drops_by_reason: Mapping[str, int] = field(default_factory=dict)
    skipped_by_reason: Mapping[str, int] = field(default_factory=dict)
    age_ms: float | None = None
    events: int = 0
    finished: Annotated[int, Field(exclude=True)] = 0
    """How many of the frames have been judged. No part of the JSON, as `RunStatus.progress`."""
    done: Annotated[float | None, Field(exclude=True)] = None
    """The share of a file that has been judged, 0 to 1. No part of the JSON either."""

    @property
    def incidents(self) -> int:
        """The programs' name of `events`."""
        return self.events


@dataclass(frozen=True, slots=True)
class StageStatus:
    """One stage now, over all of its processes.

    `busy`: the working share of the last seconds, 1.0 is one thread's worth. `state`: `running`, or the state of the
    stage's first process that is not running.
    """

    state: str = "running"
    processes: int = 1
    items: int = 0
    queue: int = 0
    batch: float | None = None
    latency_ms_p50: float | None = None
    latency_ms_p99: float | None = None
    fps: float = 0.0
    restarts: int = 0
    busy: float = 0.0
    blocked_on: str = ""
    facts: Mapping[str, Fact] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Totals:
    """The sums of all cameras of a run, removed ones included. `events`: incidents; `committed`: every event, so also
    the updates and ends of incidents.
    """

    frames: int = 0
    drops: int = 0
    events: int = 0
    committed: int = 0


@dataclass(frozen=True, slots=True)
class DurationsStatus:
    """A histogram. `counts`: one number for each bucket."""

    counts: Sequence[int] = ()
    sum_s: float = 0.0


@dataclass(frozen=True, slots=True)
class AllDurations:
    """`stages`: the time of each call; `cameras`: the age of each frame at the end of its processing.

    `bounds_s`: the upper bounds of all buckets but the last.
    """

    bounds_s: Sequence[float] = ()
    stages: Mapping[str, DurationsStatus] = field(default_factory=dict)
    cameras: Mapping[str, DurationsStatus] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """One process. `why`: the reason if it cannot be opened again. `drops`: camera -> reason -> number of frames."""

    pid: int = 0
    state: str = ""
    why: str = ""
    restarts: int = 0
    cpu_s: float = 0.0
    in_flight: int = 0
    slots: int = 0
    drops: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BacklogStatus:
    """The events that wait in the outbox for a sink: their number, and the age of the oldest if known.

    `given_up`: the number of events that the outbox gave up for this sink.
    """

    waiting: int = 0
    oldest_s: float | None = None
    dead_letters: int = 0
    given_up: int = 0


@dataclass(frozen=True, slots=True)
class ProgressStatus:
    """How far a run of files has come: `done` is 0 to 1, `left_s` None until the pace is known."""

    done: float = 0.0
    left_s: float | None = None


@dataclass(frozen=True, slots=True)
class RunStatus:
    """A running graph now. `events`: the last ones, oldest first. `phase`: starting, running, stopping or over.

    `counts`: (name, camera, number) of everything that stages count. `actions`: camera -> action -> incidents.
    `counters`: camera -> counter -> name -> number. `outbox`: sink -> what waits for it.
    """

    graph: str = ""
    uptime_s: float = 0.0
    phase: str = "running"
    health: Health = field(default_factory=Health)
    troubles: tuple[Trouble, ...] = ()
    bottleneck: Annotated[Limit | None, Field(alias="limit")] = None
    cameras: Mapping[str, CameraStatus] = field(default_factory=dict)
    stages: Mapping[str, StageStatus] = field(default_factory=dict)
    events: tuple[EventStatus, ...] = ()
    actions: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    totals: Totals = field(default_factory=Totals)
    durations: AllDurations = field(default_factory=AllDurations)
    counts: Sequence[tuple[str, str, int]] = ()
    files: Sequence[str] = ()
    memory_mb: float = 0.0
    processes: Mapping[str, ProcessStatus] = field(default_factory=dict)
    counters: Mapping[str, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)
    outbox: Mapping[str, BacklogStatus] = field(default_factory=dict)
    outbox_folder: str = ""
    switches: Mapping[str, bool] = field(default_factory=dict)
    worked_s: float = 0.0
    progress: Annotated[ProgressStatus | None, Field(exclude=True)] = None
    """None for a run without an end. No part of the JSON: only the process that shows a run of files knows it."""

    @property
    def limit(self) -> str:
        """The stage that limits the run and a remedy, "" if the run keeps up."""
        return self.bottleneck.text if self.bottleneck else ""

    @property
    def backlogs(self) -> Mapping[str, BacklogStatus]:
        """The programs' name of `outbox`."""
        return self.outbox

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read the answer of a run. Keys of a newer run are passed over, keys that an older run lacks have defaults.

        Raises UserError for an answer of another form.
        """
        status = read(cls, data)
        return status if "totals" in data else replace(status, totals=_totals_of(status.cameras.values()))

    @classmethod
    def before_start(cls, graph: str, cameras: Iterable[str]) -> Self:
        """The status of a run whose processes do not exist yet."""
        return cls(graph=graph, phase="starting", cameras={camera: CameraStatus() for camera in cameras})


def _totals_of(cameras: Iterable[CameraStatus]) -> Totals:
    """The totals of an older run, which has no cameras but those in its status."""
    rows = [(one.frames, one.drops, one.events) for one in cameras]
    frames, drops, events = (sum(column) for column in zip(*rows, strict=True)) if rows else (0, 0, 0)
    return Totals(frames, drops, events, events)


def as_json(value: Any) -> dict[str, Any]:
    """The plain values of a dataclass such as `RunStatus`, for JSON: its keys are in the order of the fields."""
    adapter = _adapter(type(value))  # type: ignore[arg-type]  # types are hashable
    plain: dict[str, Any] = adapter.dump_python(value, by_alias=True, warnings=False)
    return plain


def read(kind: type[T], data: Mapping[str, Any]) -> T:
    """Read the answer of a run. Raises UserError if the answer has another form than this version knows."""
    try:
        _check_numbers(data)
        found: T = _adapter(kind).validate_python(data)  # type: ignore[arg-type]  # types are hashable
    except ValueError as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(
            f"the answer of the run cannot be read ({why}): is it from another version of camgraph than this command?",
            error_id="run-unreadable",
        ) from None
    return found


def _check_numbers(value: Any) -> None:
    if isinstance(value, int | float) and not abs(value) < _LARGEST:
        raise ValueError(f"expected a number below {_LARGEST:g}")
    if isinstance(value, Mapping):
        for part in value.values():
            _check_numbers(part)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
