"""Spreads packets that come in portions over the time that they show. Pure: times are arguments, in seconds.

A segment of HLS holds some seconds, and is there at once. Without pacing the newest frame would be one that has been
waiting for its segment, and the time of arrival would say nothing.
"""

from __future__ import annotations

LONGEST_GAP_S = 1.0
"""Between two pictures. More was left out on the way: waiting for it would let the playlist run away once more."""


class Pacer:
    """Delays the packets of one connection. If it runs dry, it starts again: late packets are not hurried."""

    def __init__(self) -> None:
        self._origin_s: float | None = None
        self._last_s = 0.0

    def wait_s(self, media_s: float, now_s: float) -> float:
        """How long to keep back the packet with this time, 0 if it is due."""
        follows = 0 <= media_s - self._last_s <= LONGEST_GAP_S
        self._last_s = media_s
        if self._origin_s is None or not follows or self._origin_s + media_s < now_s:
            self._origin_s = now_s - media_s
        return max(0.0, self._origin_s + media_s - now_s)
