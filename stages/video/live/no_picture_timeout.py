"""When a connection that brings packets, and no pictures, is given up. Pure: time is an argument.

A camera that changes its codec does not announce it on the open connection: from there on every packet is refused, or
none is a keyframe any more. One damaged packet is neither: a picture soon comes again.

A camera with minutes between its keyframes may be joined in the middle: then only waiting helps, because the next
connection would be joined in the middle, too.
"""

from __future__ import annotations

MOST_REFUSED = 15
LONGEST_REFUSED_S = 8.0
LONGEST_S = 30.0
"""Without a picture, although none need have been refused, and keyframes come."""
LONGEST_KEYLESS_S = 600.0
"""For the first keyframes: cameras exist that send one in 400 pictures, at one picture a second."""
WAITING_S = 10.0
"""After so long without a keyframe, people are told."""
_GROUPS = 1.5
"""How long to wait for a picture, in longest times between two keyframes."""

_AGAIN = "opened again, in case its codec has changed"
_NEVER = "opened again; not one picture has come since it was opened"


class NoPictureTimeout:
    """Decides, for one connection that is up since ``now_s``, when it has brought no picture for too long.

    At most ``max_fps`` pictures a second are wanted of it.
    """

    def __init__(self, max_fps: float | None, now_s: float) -> None:
        self._longest_s = max(LONGEST_S, 3 / max_fps if max_fps else 0.0)
        self._begun_s = self._picture_s = now_s
        self._refused_s: float | None = None
        self._any = False
        self._keyframe_s: float | None = None
        self._group_s: float | None = None
        """The longest time between two keyframes; None before there were two."""

    def keyframe(self, now_s: float) -> None:
        """A keyframe came, in whatever state."""
        if self._keyframe_s is not None:
            self._group_s = max(self._group_s or 0.0, now_s - self._keyframe_s)
        self._keyframe_s = now_s

    def why_waiting(self, now_s: float) -> str:
        """What the connection waits for, to be told to people; "" if it has brought a keyframe, or is young."""
        if self._keyframe_s is not None or now_s - self._begun_s <= WAITING_S:
            return ""
        return (
            f"the camera sends, but no keyframe has come for {WAITING_S:g} s: waiting up to "
            f"{LONGEST_KEYLESS_S:g} s; for shorter waits, lower the interval of keyframes (I-frames, GOP) in the camera"
        )

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
            longest_s = self._may_take_s()
            over = now_s - self._picture_s > longest_s
            return f"it sends, and no picture came of it for {longest_s:g} s: {self._then()}" if over else ""
        self._refused_s = now_s if self._refused_s is None else self._refused_s
        over = refused >= MOST_REFUSED or now_s - self._refused_s > LONGEST_REFUSED_S
        what = "what it sends can no longer be decoded" if self._any else "nothing that it sends can be decoded"
        return f"{what}: {self._then()}" if over else ""

    def _may_take_s(self) -> float:
        if self._group_s is None:
            return self._longest_s if self._any else max(LONGEST_KEYLESS_S, self._longest_s)
        return max(self._longest_s, round(_GROUPS * self._group_s, 1))

    def _then(self) -> str:
        return _AGAIN if self._any else _NEVER
