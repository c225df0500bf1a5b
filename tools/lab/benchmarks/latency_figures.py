"""The way of a picture from the camera to the event, in parts: arithmetic on stamps.

    caught --sent--captured--begun--done--made--received
      the simulator's  | FFmpeg's parser gives the packet out
                         | decoding, prepare, waiting for the model
                                 | the model
                                      | from its outputs to an event
                                            | committed, and handed to the sink

All are CLOCK_MONOTONIC of one machine, in nanoseconds. Only the simulator knows `caught` and `sent`. A frame is matched
with its record there by its time of day, which comes from the camera's sender reports.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from camgraph.tools.lab.camera_run import Inference
from camgraph.tools.scenes.simulator.accounts import FrameSent

NEAR_NS = 2_000_000
"""A frame's time of day and the camera's own account of it differ by no more: steps of RTP's clock, and rounding."""

PARTS = ("caught to sent", "sent to captured", "captured to inference", "inference", "to the event", "to the sink")


class ReceivedEvent(NamedTuple):
    """An event as it arrived at the receiver."""

    key: tuple[str, int, int]
    wall_ns: int
    clock: str
    made_ns: int
    received_ns: int


class FramePath(NamedTuple):
    """The way of one frame, from its light to its event. ``keyframe``: it refers to no other, and is slow to decode."""

    camera: str
    caught_ns: int
    sent_ns: int
    captured_ns: int
    begun_ns: int
    done_ns: int
    made_ns: int
    received_ns: int
    keyframe: bool

    @property
    def parts_ms(self) -> tuple[float, ...]:
        """In the order of `PARTS`."""
        times = (
            self.caught_ns, self.sent_ns, self.captured_ns, self.begun_ns, self.done_ns, self.made_ns, self.received_ns
        )  # fmt: skip
        return tuple((later - earlier) / 1e6 for earlier, later in itertools.pairwise(times))

    @property
    def inference_ms(self) -> float:
        return (self.done_ns - self.begun_ns) / 1e6

    @property
    def from_capture_ms(self) -> float:
        """From when the picture was there until its event was made."""
        return (self.made_ns - self.captured_ns) / 1e6

    @property
    def added_ms(self) -> float:
        """The part of it that is not the model."""
        return self.from_capture_ms - self.inference_ms

    @property
    def whole_ms(self) -> float:
        return (self.received_ns - self.caught_ns) / 1e6


def paths(
    received: Iterable[ReceivedEvent], ran: Iterable[Inference], sent: Mapping[str, Sequence[FrameSent]]
) -> list[FramePath]:
    """The paths of all events whose frames are known to both sides: those whose wall clock is the camera's."""
    by_key = {one.key: one for one in ran}
    logs = {camera: sorted(frames, key=_wall_ns) for camera, frames in sent.items()}
    found = []
    for event in received:
        one = by_key.get(event.key)
        frame = nearest(logs.get(event.key[0], ()), event.wall_ns) if event.clock == "ntp" else None
        if one and frame:
            begun = (frame.caught_ns, frame.sent_ns, one.captured_ns, one.begun_ns, one.done_ns)
            found.append(FramePath(event.key[0], *begun, event.made_ns, event.received_ns, frame.keyframe))
    return found


def nearest(frames: Sequence[FrameSent], wall_ns: int) -> FrameSent | None:
    """The frame (of those in order of time) that was caught then; None if there is none within `NEAR_NS`."""
    at = bisect.bisect_left(frames, wall_ns, key=_wall_ns)
    near = min(frames[max(0, at - 1) : at + 1], key=lambda frame: abs(frame.wall_ns - wall_ns), default=None)
    return near if near and abs(near.wall_ns - wall_ns) <= NEAR_NS else None


def _wall_ns(frame: FrameSent) -> int:
    return frame.wall_ns
