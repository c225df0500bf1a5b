"""The reports of a process to the supervisor, checked before they are believed: a child that sends nonsense harms only
itself.

ready      it has opened its stages             ended     a camera's last word has gone through it
heartbeat  four times a second                  failed    it gives up, and why
log        a line for the log                   event     the outbox has committed an event
revised    it goes on by another plan, or not   oversize  something was too large to be told (`Channel`)
opening    what of its opening takes long
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, TypeAdapter, ValidationError

from pipeline.errors import EXIT_DONE, WireError
from pipeline.messages import EndReason, Stamp
from pipeline.monitoring.camera_states import StateChange


class _Report(BaseModel):
    model_config = ConfigDict(frozen=True)


class Ready(_Report):
    """`endpoint` is empty if nobody sends to the process."""

    op: Literal["ready"]
    endpoint: str


class Opening(_Report):
    """Its work before it is ready, and for how many seconds from now that may take."""

    op: Literal["opening"]
    doing: str = Field(max_length=200)
    within_s: float = Field(ge=0, le=86_400)


class StageStats(_Report):
    """One stage of a process: since its start, and (batch and latencies) of its last calls."""

    items: int = 0
    busy_ns: int = 0
    batch: float | None = None
    latency_ms_p50: float | None = None
    latency_ms_p99: float | None = None


class Heartbeat(_Report):
    """A sign of life. Times in ns are CLOCK_MONOTONIC, 0 if there is none; ages are ms.

    `source_silent_since_ns`: since when a source that is to make a frame has given no sign of life;
    `source_opening`: that source has not made one since its start. `camera_changes`: each change since the last
    heartbeat, those of a camera in order; `camera_facts`: what is known of a camera by now. `troubles`: (stage, camera,
    why) of all that does not work at present, "" where no single camera is meant. `patient`: what it is
    `held` for may take as long as it needs (`pipeline.errors.Unavailable`).
    """

    op: Literal["heartbeat"] = "heartbeat"
    working_since_ns: int = 0
    source_silent_since_ns: int = 0
    source_opening: bool = False
    stages: dict[str, StageStats] = {}
    counts: list[tuple[str, str, int]] = []
    ages: dict[str, float] = {}
    files: list[str] = []
    frames_done: dict[str, Stamp] = {}
    cpu_s: float = 0.0
    queue: int = 0
    in_flight: int = 0
    slots: int = 0
    held: str = ""
    patient: bool = False
    troubles: list[tuple[str, str, str]] = []
    camera_changes: list[StateChange] = []
    camera_facts: dict[str, dict[str, str | int | FiniteFloat]] = {}


class Ended(_Report):
    """`status`: whose fault an error is, as an exit status; 0 if that is not known."""

    op: Literal["ended"]
    camera: str
    reason: EndReason
    error: str = ""
    status: int = EXIT_DONE


class Revised(_Report):
    """It goes on by the plan that was sent with this number; or does not, for the reason in `problem`."""

    op: Literal["revised"]
    number: int
    problem: str = ""


class Failed(_Report):
    """`status`: the exit status for the run."""

    op: Literal["failed"]
    status: int
    error: str


class Line(_Report):
    """A line of the log."""

    op: Literal["log"]
    level: str
    values: dict[str, Any]


class Committed(_Report):
    """An event, as its sinks get it. `again`: it was committed before, perhaps by a process that could not report
    it.
    """

    op: Literal["event"]
    body: bytes
    again: bool = False


class Oversize(_Report):
    """A report (its `of` says which) of so many bytes was not sent."""

    op: Literal["oversize"]
    of: str
    bytes: int


Report = Ready | Opening | Heartbeat | Ended | Revised | Failed | Line | Committed | Oversize
_READER: TypeAdapter[Report] = TypeAdapter(Annotated[Report, Field(discriminator="op")])


def read_report(message: Mapping[str, Any]) -> Report:
    """The report in a message. Raises WireError if it is none."""
    try:
        return _READER.validate_python(dict(message))
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, row['loc'])) or 'op'}: {row['msg']}" for row in error.errors()[:3])
        raise WireError(f"expected a report, got {str(message.get('op'))[:40]!r} with {wrong}") from None
