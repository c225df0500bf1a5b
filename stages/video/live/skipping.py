"""Chooses packets that need not be decoded, if fewer pictures are wanted than come. Pure.

    key    keyframes alone, if enough of them come and in time: by far the cheapest (docs/decoding.md)
    base   pictures that others refer to, if leaving out the rest is enough
    all    everything is decoded, and pictures are chosen

The structure of the stream is learnt from its first keyframes, and again whenever it changes. A packet is left out only
if no wanted picture needs it. The change from `key` or `base` to `all` is at a keyframe.
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import Literal

from camgraph.stages.video.timeline import SECOND_NS

Level = Literal["key", "base", "all"]

GROUPS_LEARNT = 3
TOLERANCE = 1.02
"""Cameras keep their rates no better than that."""


class Skipping:
    """Chooses, for one connection, the packets that are decoded. `max_fps` None: all of them."""

    def __init__(self, max_fps: float | None) -> None:
        self._max_fps = max_fps
        # Of each group from keyframe to keyframe: when it began, and how many pictures others refer to.
        self._groups: deque[tuple[int, int]] = deque(maxlen=GROUPS_LEARNT + 1)
        self.level: Level = "all"

    def decodes(self, keyframe_ns: int | None, *, disposable: bool) -> bool:
        """Whether to decode the next packet, in order of decoding.

        `keyframe_ns`: the time of a keyframe in ns, from any origin; None for other packets. `disposable`: no
        other packet needs it.
        """
        if self._max_fps is None:
            return True
        if keyframe_ns is not None:
            self._groups.append((keyframe_ns, 0))
            self.level = self._level()
        if self._groups and not disposable:
            begun, referred = self._groups[-1]
            self._groups[-1] = begun, referred + 1
        return keyframe_ns is not None or self.level == "all" or (self.level == "base" and not disposable)

    def _level(self) -> Level:
        """The cheapest level at which pictures come at least as often as they are wanted."""
        if len(self._groups) <= GROUPS_LEARNT:
            return "all"
        assert self._max_fps is not None
        begins = [begun for begun, _ in self._groups]
        longest = max(later - earlier for earlier, later in pairwise(begins))
        if longest * self._max_fps <= SECOND_NS * TOLERANCE:
            return "key"
        referred = sum(count for _, count in list(self._groups)[:-1])
        return "base" if referred * SECOND_NS * TOLERANCE >= self._max_fps * (begins[-1] - begins[0]) else "all"
