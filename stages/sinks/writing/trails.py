"""The ways that people's feet have gone in the last seconds, to be drawn behind them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from camgraph.pipeline.messages import Stamp
from camgraph.stages.messages import Tracks
from camgraph.stages.vision.drawing import Trail

STEP_NS = 80_000_000
"""Points that are nearer in time replace each other: a smooth line needs no more, and memory stays small."""
GAP_NS = 500_000_000
"""Where somebody is unseen for longer, and for more than one frame, nobody knows the way: the line is broken."""


class _Point(NamedTuple):
    time_ns: int
    x: float
    y: float
    begins: bool
    """Whether no line leads to it."""


@dataclass(slots=True)
class _Way:
    """Of one id."""

    seen_ns: int
    points: deque[_Point] = field(default_factory=deque)

    def go(self, now_ns: int, x: float, y: float, *, begins: bool) -> None:
        points = self.points
        # The newest point stands where the person is; it moves on until it is a step from the one before.
        if (
            not begins
            and len(points) > 1
            and not points[-1].begins
            and points[-1].time_ns - points[-2].time_ns < STEP_NS
        ):
            points.pop()
        points.append(_Point(now_ns, x, y, begins))
        self.seen_ns = now_ns

    def trail(self, track_id: int, now_ns: int, length_ns: int) -> Trail:
        rows = [(p.x, p.y, (now_ns - p.time_ns) / length_ns, p.begins) for p in self.points]
        table = np.array(rows, np.float32).reshape(-1, 4)
        return Trail(track_id, table[:, :2], table[:, 2], table[:, 3] > 0)


@dataclass(slots=True)
class _Camera:
    epoch: int
    before_ns: int = -1
    """The time of the frame before."""
    ways: dict[int, _Way] = field(default_factory=dict)


class Trails:
    """Remembers the ways of all cameras. One id's way never goes on as another's, also if that one `continues` it."""

    def __init__(self, length_s: float) -> None:
        """`length_s`: how far it looks back; 0 remembers nothing."""
        self._length_ns = round(length_s * 1e9)
        self._cameras: dict[str, _Camera] = {}

    def follow(self, tracks: Tracks) -> list[Trail]:
        """Remember a frame, the next of its camera; returns the trails to draw on it, also of people who have left."""
        stamp = tracks.stamp
        if not self._length_ns or stamp.alone:
            return []
        camera = self._camera(stamp)
        for track_id, (left, _, right, bottom) in zip(tracks.ids.tolist(), tracks.boxes.tolist(), strict=True):
            way = camera.ways.get(track_id)
            lost = way is None or (way.seen_ns != camera.before_ns and stamp.time_ns - way.seen_ns > GAP_NS)
            way = camera.ways.setdefault(track_id, _Way(stamp.time_ns))
            way.go(stamp.time_ns, (left + right) / 2, bottom, begins=lost)
        camera.before_ns = stamp.time_ns
        return list(self._trails(camera, stamp.time_ns))

    def forget(self, camera: str) -> None:
        """The camera has ended."""
        self._cameras.pop(camera, None)

    def _camera(self, stamp: Stamp) -> _Camera:
        known = self._cameras.get(stamp.camera)
        if known is None or known.epoch != stamp.epoch:
            known = self._cameras[stamp.camera] = _Camera(stamp.epoch)
        return known

    def _trails(self, camera: _Camera, now_ns: int) -> Iterator[Trail]:
        for track_id, way in list(camera.ways.items()):
            while way.points and way.points[0].time_ns <= now_ns - self._length_ns:
                way.points.popleft()
            if way.points:
                yield way.trail(track_id, now_ns, self._length_ns)
            else:
                del camera.ways[track_id]
