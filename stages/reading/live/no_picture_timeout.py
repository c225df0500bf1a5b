"""When a connection that brings packets, and no pictures, is given up. Pure: time is an argument.

A camera that changes its codec does not announce it on the open connection: from there on every packet is refused, or
none is a keyframe any more. One damaged packet is neither: a picture soon comes again.
"""

from __future__ import annotations

MOST_REFUSED = 15
LONGEST_REFUSED_S = 8.0
LONGEST_S = 30.0
"""Without a picture, although none need have been refused: cameras exist that send a keyframe in 20 s."""

_AGAIN = "opened again, in case its codec has changed"
_NEVER = "opened again; not one picture has come since it was opened"


class NoPictureTimeout:
    """Decides, for one connection that is up since ``now_s``, when it has brought no picture for too long.

    At most ``max_fps`` pictures a second are wanted of it.
    """

    def __init__(self, max_fps: float | None, now_s: float) -> None:
        self._longest_s = max(LONGEST_S, 3 / max_fps if max_fps else 0.0)
        self._picture_s = now_s
        self._refused_s: float | None = None
        self._any = False

    def picture(self, now_s: float) -> None:
        """A picture came."""
        self._picture_s = now_s
        self._any = True

    def why_over(self, refused: int, now_s: float) -> str:
        """Why the connection is given up, "" while it is not.

        ``refused``: packets in a row, up to now, that were refused with no picture in between.
        """
        if not refused:
            self._refused_s = None
            over = now_s - self._picture_s > self._longest_s
            return f"it sends, and no picture came of it for {self._longest_s:g} s: {self._then()}" if over else ""
        self._refused_s = now_s if self._refused_s is None else self._refused_s
        over = refused >= MOST_REFUSED or now_s - self._refused_s > LONGEST_REFUSED_S
        what = "what it sends can no longer be decoded" if self._any else "nothing that it sends can be decoded"
        return f"{what}: {self._then()}" if over else ""

    def _then(self) -> str:
        return _AGAIN if self._any else _NEVER
