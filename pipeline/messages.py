"""The base of all typed messages, the marks, and the Event as the pipeline knows it.

A message is a stamp (whose frame it is), small scalar fields, and named arrays. A subclass names its wire
type and version and says how it comes apart and is put together again; `pipeline.transport.wire` does the bytes and
`pipeline.shm.slots` the memory. Concrete types with pictures in them live in `stages.messages`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Scalar = None | bool | int | float | str | bytes
Fields = Mapping[str, "Scalar | list[Scalar]"]


Clock = Literal["", "ntp", "wall", "start_at", "metadata", "name", "file"]
"""Whose a time of day is: unknown, the camera's, this machine's; of a file that began as the graph, its metadata or its
name says; or of a file without a date, counted from 1970."""
_CLOCKS: frozenset[object] = frozenset(get_args(Clock))
_WHOLE: set[type] = {int}


class Stamp(NamedTuple):
    """Whose frame this is, and when.

    `time_ns` is the only clock of tracking, rules and durations: media time since the first frame for files, monotonic
    arrival for live cameras; it never runs backwards within an epoch. `captured_ns` is CLOCK_MONOTONIC at capture, for
    ages. `wall_ns` is UTC since 1970 by `clock`; it jumps if that clock is set or replaced. `pts` counts in units of
    `time_base` (numerator, denominator). `alone` marks a moment by itself, such as a photograph: nothing in it goes on
    in the next frame.
    """

    camera: str
    epoch: int
    seq: int
    time_ns: int
    captured_ns: int
    wall_ns: int
    pts: int | None = None
    time_base: tuple[int, int] = (1, 1_000_000_000)
    clock: Clock = ""
    alone: bool = False

    @property
    def place(self) -> tuple[int, int]:
        """In its camera's order."""
        return self.epoch, self.seq

    @classmethod
    def from_wire(cls, values: Any) -> Stamp:
        """Make a stamp of the list that msgpack returns. Raises ValueError or TypeError if it is none."""
        camera, epoch, seq, time_ns, captured_ns, wall_ns, pts, (numerator, denominator), clock, alone = values
        numbers = (epoch, seq, time_ns, captured_ns, wall_ns, 0 if pts is None else pts, numerator, denominator)
        named = type(camera) is str and clock in _CLOCKS and type(alone) is bool
        if not named or set(map(type, numbers)) != _WHOLE:
            raise ValueError(f"no stamp: {values!r:.200}")
        return cls(camera, epoch, seq, time_ns, captured_ns, wall_ns, pts, (numerator, denominator), clock, alone)


@dataclass(frozen=True, eq=False)
class Message:
    """Base of all messages. Receivers get their arrays read-only.

    Every message says when (`stamp`); a subclass adds fields and arrays and implements the three methods. A stage
    whose input is this class takes messages of any type and sees their stamps alone.
    """

    TYPE: ClassVar[str] = ""
    VERSION: ClassVar[int] = 1

    stamp: Stamp

    def fields(self) -> Fields:
        """The small scalar fields, by name."""
        return {}

    def arrays(self) -> Mapping[str, Array]:
        """The arrays, by name."""
        return {}

    @classmethod
    def build(cls, stamp: Stamp, fields: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        """Put a message together again. Raises WireError if fields or shapes do not fit the type."""
        return cls(stamp)


EndReason = Literal["end", "error", "removed", "stopped"]


@dataclass(frozen=True, eq=False)
class End(Message):
    """A camera's last word on an edge. Needs no credit and is never dropped.

    `error` is free of secrets. `status` is the exit status that it stands for, and `error_id` its kind
    (`pipeline.errors`); 0 and "" without an error.
    """

    TYPE: ClassVar[str] = "end"

    reason: EndReason = "end"
    error: str = ""
    status: int = 0
    error_id: str = ""

    def fields(self) -> Fields:
        return {"reason": self.reason, "error": self.error, "status": self.status, "error_id": self.error_id}

    @classmethod
    def build(cls, stamp: Stamp, fields: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        return cls(stamp, fields["reason"], fields["error"], fields["status"], fields["error_id"])


@dataclass(frozen=True, eq=False)
class Tombstone(Message):
    """This frame makes nothing (more) on this edge: it was judged empty, filtered or dropped (`reason`).

    Keeps a join from waiting in vain, and an ordered sink from waiting for a camera that has nothing to say.
    """

    TYPE: ClassVar[str] = "tombstone"

    reason: str = ""

    def fields(self) -> Fields:
        return {"reason": self.reason}

    @classmethod
    def build(cls, stamp: Stamp, fields: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        return cls(stamp, fields["reason"])


EventPhase = Literal["start", "update", "end", "single"]
EVENT_PHASES: tuple[str, ...] = get_args(EventPhase)


def own_id(event_id: str) -> str:
    """An event's id as its body has it: without the words that say that the event comes once more."""
    return event_id.rpartition(" ")[2]


@dataclass(frozen=True, eq=False)
class Event(Message):
    """An event as the pipeline knows it: an id, the incident it belongs to, and bytes.

    `id` is the same for the same event in every run. Events that an earlier run left reach sinks under the id `before N
    ID`, and requeued ones under `again N ID`, with an unchanged body. `incident` groups the start, updates and end of
    one happening; `phase` lets the outbox end incidents that their producer left open. `body` is one line of JSON,
    without the newline. `committed_ns` is when the outbox committed it (UTC since 1970; of a requeued event when it was
    requeued), 0 before that: never part of the body, which is the same in every run.
    """

    TYPE: ClassVar[str] = "event"
    VERSION: ClassVar[int] = 2

    id: str = ""
    incident: str = ""
    phase: EventPhase = "single"
    body: bytes = b""
    committed_ns: int = 0

    @property
    def own_id(self) -> str:
        """See `pipeline.messages.own_id`."""
        return own_id(self.id)

    @property
    def requeued(self) -> bool:
        """Whether a person wants the sink to have it once more, though it may have had it."""
        return self.id.startswith("again ")

    def fields(self) -> Fields:
        return {
            "id": self.id,
            "incident": self.incident,
            "phase": self.phase,
            "body": self.body,
            "committed_ns": self.committed_ns,
        }

    @classmethod
    def build(cls, stamp: Stamp, fields: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        return cls(stamp, fields["id"], fields["incident"], fields["phase"], fields["body"], fields["committed_ns"])


MOST_REPEATED = 1024
"""After a death, so many events at most come to a sink again: it is not given more while none of them is noted as
delivered."""

LONGEST_BODY = 4_000_000
"""Bytes of an event's body: with its id and all else it travels as one message (`pipeline.transport.wire.MAX_BODY`)."""

MARKS: tuple[type[Message], ...] = (End, Tombstone)


def frozen(array: Array) -> Array:
    """A read-only view of `array`."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view
