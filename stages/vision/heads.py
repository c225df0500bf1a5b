"""Where heads are, so that they can be hidden: areas that are rather too large than too small.

head seen surely         a square around its joints, as large as they and the shoulders say
not seen surely          the whole person
person lost a moment ago the last area, wider from frame to frame
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
Area = tuple[float, float, float, float]
"""x1, y1, x2, y2."""

_JOINTS, _HEAD, _SHOULDERS = 17, slice(0, 5), slice(5, 7)
"""Of coco-17: nose, eyes and ears; the shoulders."""
_SUSPECTED, _SURE = 0.1, 0.3
"""A head is seen if one joint of it is sure; then those that are only suspected belong to it, too."""
_MARGIN = 1.6
"""From the joint that is farthest from the middle to the edge: joints end below the hair and above the chin."""
_NECK = 0.45
"""Of the way from the middle of the head to that of the shoulders."""
_LEAST = 0.11
"""Of the longer side of the person: heads of which one joint is seen."""
_LOST_NS = 1_000_000_000
_WIDER, _SPEED = 0.25, 0.7
"""Who is lost has moved on: on each side a part of the area's size, and sizes of the person a second. People walk 0.8
of their heights a second; with the rest of the area, that is enough for their heads."""


def head_areas(boxes: F32, joints: F32) -> list[Area]:
    """The areas of the heads of people with these `boxes` (N, 4) xyxy and `joints` (N, K, 3) x, y, confidence.

    The joints are those of coco-17; with any other number of them (K), each area is the whole person.
    """
    return [_area(box, own) for box, own in zip(boxes.astype(float), joints.astype(float), strict=True)]


def _area(box: NDArray[np.float64], joints: NDArray[np.float64]) -> Area:
    x1, y1, x2, y2 = box.tolist()
    if len(joints) != _JOINTS or not len(_seen(joints[_HEAD], _SURE)):
        return x1, y1, x2, y2
    head, shoulders = _seen(joints[_HEAD]), _seen(joints[_SHOULDERS])
    middle = head.mean(axis=0)
    radius = max(_MARGIN * float(np.abs(head - middle).max()), _LEAST * max(x2 - x1, y2 - y1))
    if len(shoulders):
        radius = max(radius, _MARGIN * _NECK * float(np.linalg.norm(shoulders.mean(axis=0) - middle)))
    x, y = middle.tolist()
    return x - radius, y - radius, x + radius, y + radius


def _seen(joints: NDArray[np.float64], least: float = _SUSPECTED) -> NDArray[np.float64]:
    """The places (M, 2) of the joints of this confidence."""
    return joints[(joints[:, 2] >= least) & np.isfinite(joints).all(axis=1), :2]


class _Sight(NamedTuple):
    """The head of somebody when they were last seen, and how large they are: the longer side of the box."""

    time_ns: int
    area: Area
    size: float

    def at(self, time_ns: int) -> Area:
        """Where the head may be by now."""
        if time_ns == self.time_ns:
            return self.area
        x1, y1, x2, y2 = self.area
        moved = _SPEED * self.size * abs(time_ns - self.time_ns) / 1e9
        wide, high = moved + _WIDER * (x2 - x1), moved + _WIDER * (y2 - y1)
        return x1 - wide, y1 - high, x2 + wide, y2 + high

    def is_recent(self, time_ns: int) -> bool:
        return abs(time_ns - self.time_ns) <= _LOST_NS


class PeopleInFrame(NamedTuple):
    """People of one frame: `boxes` (N, 4) and `joints` (N, K, 3), as `head_areas` takes them."""

    boxes: F32
    joints: F32

    def sights(self, time_ns: int) -> list[_Sight]:
        sizes = (self.boxes[:, 2:] - self.boxes[:, :2]).max(axis=1, initial=0.0).tolist()
        return [_Sight(time_ns, *one) for one in zip(head_areas(self.boxes, self.joints), sizes, strict=True)]


@dataclass(slots=True)
class Heads:
    """The heads of one camera, frame after frame."""

    _tracks: dict[int, _Sight] = field(default_factory=dict)
    """Id -> the last sight."""
    _others: list[_Sight] = field(default_factory=list)

    def seen(self, ids: Sequence[int], people: PeopleInFrame, others: PeopleInFrame, time_ns: int) -> list[Area]:
        """The areas of all heads of a frame, also of people who were lost a second ago or less.

        `others` have no identity. They count as seen again if there is any head where theirs may be.
        """
        self._tracks |= zip(ids, people.sights(time_ns), strict=True)
        self._tracks = {one: sight for one, sight in self._tracks.items() if sight.is_recent(time_ns)}
        found = others.sights(time_ns)
        middles = [_middle(sight.area) for sight in (*self._tracks.values(), *found) if sight.time_ns == time_ns]
        lost = [one for one in self._others if one.is_recent(time_ns) and not _holds(one.at(time_ns), middles)]
        self._others = [*found, *lost]
        return [sight.at(time_ns) for sight in (*self._tracks.values(), *self._others)]


def _middle(area: Area) -> tuple[float, float]:
    x1, y1, x2, y2 = area
    return (x1 + x2) / 2, (y1 + y2) / 2


def _holds(area: Area, points: Iterable[tuple[float, float]]) -> bool:
    x1, y1, x2, y2 = area
    return any(x1 <= x <= x2 and y1 <= y <= y2 for x, y in points)
