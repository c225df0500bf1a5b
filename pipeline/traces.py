"""Traces: where the time of an event went, from the packet to the sinks.

    capture ── prepare ── infer ── people ── tracks ── actions      the steps of its frame, known once the event is made
                                                        └─ commit ── deliver log ── deliver mail      after it

Each message carries the steps of its frame. Where an event is made, they become spans; the outbox and the sinks add
theirs (`pipeline/monitoring/tracer.py`). The trace has the id of the event, so each process knows it without being
told: a line of the log that names an event names its trace. Of which events there are traces follows from the id as
well (`share`).

Without `tracing` in the graph no message carries anything, and nothing here runs.
"""

from __future__ import annotations

import copy
import hashlib
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from camgraph.pipeline.messages import Message

MOST_STEPS = 64
_ID = re.compile(r"[0-9a-f]{32}")
_STEPS = "_steps"


class Step(NamedTuple):
    """What a stage did with a frame. Times are UTC, in ns since 1970."""

    stage: str
    begun_ns: int
    ended_ns: int


def steps_of(payload: Message | Mapping[str, Message]) -> tuple[Step, ...]:
    """The steps of a message so far, or of all that meet in a join."""
    if isinstance(payload, Message):
        found: tuple[Step, ...] = payload.__dict__.get(_STEPS, ())
        return found
    every = dict.fromkeys(step for message in payload.values() for step in steps_of(message))
    return tuple(sorted(every, key=lambda step: step.begun_ns))


def with_steps(message: Message, steps: Sequence[Step]) -> Message:
    """`message`, which carries these steps from now on; a copy of one that carries others."""
    if _STEPS in message.__dict__:
        message = copy.copy(message)
    message.__dict__[_STEPS] = tuple(steps)[-MOST_STEPS:]
    return message


def captured(frame: Message, stage: str) -> Message:
    """A frame that its source has just made, with that as its first step."""
    now_ns, age_ns = time.time_ns(), time.monotonic_ns() - frame.stamp.captured_ns
    return with_steps(frame, [Step(stage, now_ns - max(0, age_ns), now_ns)])


def steps_from_wire(rows: Any) -> tuple[Step, ...]:
    """Raises ValueError if they are none."""
    if not isinstance(rows, list) or len(rows) > MOST_STEPS:
        raise ValueError("no steps")
    for row in rows:
        if not isinstance(row, list) or [type(value) for value in row] != [str, int, int]:
            raise ValueError(f"no step: {row!r:.100}")
    return tuple(Step(*row) for row in rows)


def trace_id(event_id: str) -> str:
    """32 hex digits: the event's id, which is such a number already; of another one, a hash."""
    is_one = _ID.fullmatch(event_id) and int(event_id, 16)
    return event_id if is_one else hashlib.sha256(event_id.encode()).hexdigest()[:32]


def root_span(event_id: str) -> str:
    """16 hex digits: the span of the whole event, in which the others lie."""
    begin = trace_id(event_id)[:16]
    return begin if int(begin, 16) else "0" * 15 + "1"


def is_sampled(event_id: str, share: float) -> bool:
    """Whether this event is among the `share` of those that are traced."""
    return int(trace_id(event_id)[-8:], 16) < share * 2**32


def traceparent(event_id: str, share: float) -> str:
    """As W3C Trace Context has it, for the event, and for programs that continue its trace."""
    return f"00-{trace_id(event_id)}-{root_span(event_id)}-{'01' if is_sampled(event_id, share) else '00'}"
