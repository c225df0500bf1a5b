"""The reports of a process to the supervisor. They are checked, so a child that sends nonsense harms only itself.

ready      it has opened its stages             ended           a camera has ended in it
heartbeat  once a second or more                failed          it fails, with the reason
log        a line for the log                   event           the outbox has committed an event
revised    it has the new plan, or has not      oversize        a report was too large to send (`Channel`)
opening    the slow part of its opening         settings_taken  its stages go on with new settings
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, NonNegativeInt, TypeAdapter, ValidationError

from camgraph.pipeline.errors import EXIT_DONE, WireError
from camgraph.pipeline.messages import EndReason, Stamp
from camgraph.pipeline.monitoring.camera_states import StateChange
from camgraph.pipeline.monitoring.event_format import EventStatus, EventSummary
from camgraph.pipeline.monitoring.histogram import BUCKETS, Histogram


class _Report(BaseModel):
    model_config = ConfigDict(frozen=True)


class Ready(_Report):
    """`endpoint` is empty if no process sends to this one."""

    op: Literal["ready"]
    endpoint: str


class Opening(_Report):
    """The slow part of its opening, and for how many seconds from now it may take."""

    op: Literal["opening"]
    doing: str = Field(max_length=200)
    within_s: float = Field(ge=0, le=86_400)


class StageStats(_Report):
    """One stage of a process: totals since its start, and batch size and latencies of its last calls."""

    items: int = 0
    busy_ns: int = 0
    batch: float | None = None
    latency_ms_p50: float | None = None
    latency_ms_p99: float | None = None


class Durations(_Report):
    """A `Histogram` of the time since the last heartbeat."""

    counts: list[NonNegativeInt] = Field(min_length=BUCKETS, max_length=BUCKETS)
    sum_ns: NonNegativeInt


def durations_of(histograms: Mapping[str, Histogram]) -> dict[str, dict[str, Any]]:
    """The histograms that have counted something, as a heartbeat carries them."""
    return {name: {"counts": one.counts, "sum_ns": one.sum_ns} for name, one in histograms.items() if any(one.counts)}


class SinkBacklog(_Report):
    """What waits in the outbox for a sink, and for how long the oldest of it; None: not known.

    `given_up`: how many events were given up since the process of the outbox began.
    """

    waiting: int = 0
    oldest_s: float | None = None
    dead_letters: int = 0
    given_up: int = 0


_SINCE_THE_LAST = frozenset({"ages", "stage_calls", "frame_ages", "camera_changes"})
"""What a heartbeat has of the time since the last one: left out if there is none of it."""
_ALWAYS_SENT = frozenset({"op", "cpu_s"})


class Heartbeat(_Report):
    """A heartbeat. Times in ns are CLOCK_MONOTONIC, 0 for none; ages are ms. A process sends only the values that have
    changed since its last heartbeat; `after` makes the whole of them.

    `stage_calls`: stage -> its calls, `frame_ages`: camera -> the ages of its frames at the end of their processing,
    both since the last heartbeat. `source_silent_since_ns`: since when a source that should make a frame has been
    silent; `source_opening`: that source has not made one since its start. `queued`: cameras whose files wait for
    others. `camera_changes`: each change since the last heartbeat, those of a camera in order; `camera_facts`: the
    present facts about a camera; `stage_facts`: about a stage. `counters`: camera -> counter -> name -> number.
    `outbox`: sink -> what waits for it. `troubles`: (stage, camera, why) of all present troubles, "" for no single
    camera. `blocked_on`: the stage that waits for something outside, and why; `patient`: that may take as long as it
    needs (`pipeline.errors.Unavailable`).
    """

    op: Literal["heartbeat"] = "heartbeat"
    working_since_ns: int = 0
    source_silent_since_ns: int = 0
    source_opening: bool = False
    stages: dict[str, StageStats] = {}
    counts: list[tuple[str, str, int]] = []
    ages: dict[str, float] = {}
    stage_calls: dict[str, Durations] = {}
    frame_ages: dict[str, Durations] = {}
    files: list[str] = []
    frames_done: dict[str, Stamp] = {}
    queued: list[str] = []
    cpu_s: float = 0.0
    queue: int = 0
    in_flight: int = 0
    slots: int = 0
    blocked_on: str = ""
    patient: bool = False
    troubles: list[tuple[str, str, str]] = []
    camera_changes: list[StateChange] = []
    camera_facts: dict[str, dict[str, str | int | FiniteFloat]] = {}
    stage_facts: dict[str, dict[str, str | int | FiniteFloat]] = {}
    counters: dict[str, dict[str, dict[str, int]]] = {}
    outbox: dict[str, SinkBacklog] = {}

    @property
    def has_news(self) -> bool:
        """Whether anything but the processor time is news."""
        return not self.model_fields_set <= _ALWAYS_SENT

    def after(self, last: Heartbeat) -> Heartbeat:
        """The whole heartbeat: values that this one leaves out are as in the `last` whole one of the same process."""
        sent = self.model_fields_set | _SINCE_THE_LAST
        return self.model_copy(update={name: value for name, value in last if name not in sent})


class Ended(_Report):
    """`status`: the exit status of the error; 0 if unknown. `error_id`: its kind."""

    op: Literal["ended"]
    camera: str
    reason: EndReason
    error: str = ""
    status: int = EXIT_DONE
    error_id: str = ""


class Revised(_Report):
    """It has the plan of this number; or has not, for the reason in `problem`."""

    op: Literal["revised"]
    number: int
    problem: str = ""


class SettingsTaken(_Report):
    """Its stages go on with the settings that were sent with this number."""

    op: Literal["settings_taken"]
    number: int


class Failed(_Report):
    """`status`: the exit status for the run; `error_id`: the kind of error."""

    op: Literal["failed"]
    status: int
    error: str
    error_id: str = ""


class Line(_Report):
    """A line of the log."""

    op: Literal["log"]
    level: str
    values: dict[str, Any]


class Committed(_Report):
    """An event of this id, and what a run counts and shows of it (`pipeline.monitoring.event_format.EventSummary`).

    The id is beside the summary, because a body may have another one, or none. `again`: it was committed before,
    perhaps by a process that died before it reported it.
    """

    op: Literal["event"]
    id: str
    camera: str
    action: str
    begins: bool
    shown: EventStatus
    again: bool = False

    @property
    def summary(self) -> EventSummary:
        """Its summary."""
        return EventSummary(self.camera, self.action, self.begins, self.shown)


class Emitted(_Report):
    """An event that a sink gives to the outbox by itself. It is reported back when it is committed."""

    op: Literal["emit"]
    stage: str
    camera: str
    time_ns: int
    id: str
    incident: str
    phase: Literal["start", "update", "end", "single"]
    body: bytes


class Oversize(_Report):
    """A report of type `of` was not sent, because it has this many bytes."""

    op: Literal["oversize"]
    of: str
    bytes: int


Report = Ready | Opening | Heartbeat | Ended | Revised | SettingsTaken | Failed | Line | Committed | Emitted | Oversize
_READER: TypeAdapter[Report] = TypeAdapter(Annotated[Report, Field(discriminator="op")])


def read_report(message: Mapping[str, Any]) -> Report:
    """Return the report in a message. Raises WireError if it is none."""
    try:
        return _READER.validate_python(dict(message))
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, row['loc'])) or 'op'}: {row['msg']}" for row in error.errors()[:3])
        raise WireError(f"expected a report, got {str(message.get('op'))[:40]!r} with {wrong}") from None
