"""How many frames a second a camera brings, measured again and again."""

from __future__ import annotations

from dataclasses import dataclass

FRAMES = 100
"""So many frames tell it, or those of `SECONDS` if they come so slowly."""
SECONDS = 20.0
_LEAST_FRAMES = 10
_PAUSE_S = 5.0
"""A camera that was away meanwhile tells nothing: the measurement begins anew."""


@dataclass(slots=True)
class FrameRate:
    """The rate of one camera. `last_ns`: the time of its last frame; the first frame begins a measurement."""

    last_ns: int
    _first_ns: int = 0
    _frames: int = 0

    def note(self, time_ns: int) -> float | None:
        """Take the next frame in; returns the frames a second whenever one more measurement is complete."""
        if not self._frames or time_ns - self.last_ns > _PAUSE_S * 1e9:
            self._first_ns, self._frames = time_ns, 0
        self._frames += 1
        self.last_ns = time_ns
        seconds, frames = (time_ns - self._first_ns) / 1e9, self._frames
        if not seconds or not (frames >= FRAMES or (seconds >= SECONDS and frames >= _LEAST_FRAMES)):
            return None
        self._first_ns, self._frames = time_ns, 1
        return (frames - 1) / seconds
