"""Decides which camera is next if not all can be served: in proportion to their priorities, and none starves.

Start-time fair queueing (Goyal, Vin, Cheng, SIGCOMM 1996), with frames of equal cost. A camera has a tag, the virtual
time at which its next item is due; an item moves it on by a stride of 1/priority. The lowest tag is next; among equals
the higher priority, and then the camera that was served longer ago:

    a, priority 3   0   1/3   2/3   1   4/3 ...
    b, priority 1   0               1                     next: a b a a a b a a a b ...

The virtual time is the highest tag that was served. A camera that had nothing for a while saves up at most one round (a
time of 1: as many frames as its priority) of its unused share, which makes up for frames that come out of step with the
batches. So a camera that needs less than its share gets all it needs, and the others share the rest (max-min fair).
While two cameras both have items, their served items divided by their priorities differ by at most one round and their
two strides. Some camera is next as long as any has an item.

Whole numbers and no clock: the same calls make the same choices.
"""

from __future__ import annotations

from collections.abc import Mapping

_ROUND = 720_720
"""The stride of priority 1: divisible by all of 1 to 16."""


Rank = tuple[int, int, int]


class Shares:
    """The shares that the cameras of one reader have got. `priorities`: 1 for those that are not named."""

    def __init__(self, priorities: Mapping[str, int]) -> None:
        self.follow(priorities)
        self._tags: dict[str, int] = {}
        self._served: dict[str, int] = {}
        self._now = 0
        self._count = 0

    def follow(self, priorities: Mapping[str, int]) -> None:
        """From now on these are the priorities."""
        self._strides = {camera: _ROUND // priority for camera, priority in priorities.items()}

    def forget(self, camera: str) -> None:
        """The camera is gone; one that comes under its name is a new one."""
        self._tags.pop(camera, None)
        self._served.pop(camera, None)

    def rank(self, camera: str) -> Rank:
        """Of all that have something, the camera with the lowest rank is next."""
        return self._tag(camera), self._stride(camera), self._served.get(camera, 0)

    def charge(self, camera: str) -> None:
        """One item of this camera was taken."""
        tag = self._tag(camera)
        self._now = max(self._now, tag)
        self._tags[camera] = tag + self._stride(camera)
        self._count += 1
        self._served[camera] = self._count

    def _tag(self, camera: str) -> int:
        return max(self._tags.get(camera, self._now), self._now - _ROUND)

    def _stride(self, camera: str) -> int:
        return self._strides.get(camera, _ROUND)
