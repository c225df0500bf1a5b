"""When which picture of a clip is due: the media clock of a camera. Time is an argument, in nanoseconds."""

from __future__ import annotations

from dataclasses import dataclass

from camgraph.tools.scenes.simulator.clip import Clip, ClipFrame
from camgraph.tools.scenes.simulator.rtp import CLOCK_HZ

SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Due:
    """One picture to send: its place in the clip, when it is due, and when its light was caught."""

    place: int
    frame: ClipFrame
    due_ns: int
    caught_ns: int


class Timeline:
    """A clip in a loop, with a time stamp for each picture that continues from round to round."""

    def __init__(self, clip: Clip, start_ns: int) -> None:
        self.clip = clip
        self._start_ns = start_ns
        self._next = 0

    @property
    def due_ns(self) -> int:
        """When the next picture is due."""
        return self._start_ns + self._after_ns(self._next)

    def take(self) -> Due:
        """The next picture."""
        place = self._next % len(self.clip.frames)
        frame = self.clip.frames[place]
        caught_ns = self._start_ns + self._after_ns(self._next + frame.shown_after)
        due = Due(place, frame, self.due_ns, caught_ns)
        self._next += 1
        return due

    def followed_by(self, clip: Clip) -> Timeline:
        """Another clip from the next picture on. With B-frames it begins later, so that no time stamp comes twice."""
        begun = Timeline(clip, self.due_ns)
        begun._start_ns += begun._after_ns(clip.delay)
        return begun

    def _after_ns(self, frames: int) -> int:
        return frames * SECOND_NS * self.clip.fps.denominator // self.clip.fps.numerator


def ticks_of(duration_ns: int) -> int:
    """A duration in steps of the 90 kHz clock of RTP."""
    return (duration_ns * CLOCK_HZ + SECOND_NS // 2) // SECOND_NS
