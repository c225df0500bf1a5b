"""What a tracker remembers of each track beside its motion."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

NO_ID = 0
_SIZE_S = 0.8
"""Time constant of the mean of sizes: who bends down or is half hidden for a moment stays as large as before."""


class People(NamedTuple):
    """The people of a frame, N rows each: `boxes` (N, 4) xyxy, `keypoints` (N, K, 3); `torsos` (N,) may be NaN."""

    boxes: F64
    scores: F64
    classes: I64
    keypoints: F64
    heights: F64
    torsos: F64

    def taken(self, rows: I64) -> People:
        """Only these, in this order."""
        boxes, scores, classes, keypoints, heights, torsos = self
        return People(boxes[rows], scores[rows], classes[rows], keypoints[rows], heights[rows], torsos[rows])


@dataclass(frozen=True, slots=True)
class Memory:
    """Of N tracks, all arrays of N rows. Times are those of the stream.

    `seen`: in the last frame. `watched_ns`: for how long it was seen since it began. `heights` and `torsos` are means
    in pixels; torsos are NaN until one was known. `keypoints` (N, K, 3) are those last seen, when the middle of the
    predicted box was at `anchors` (N, 2). `first_places` (N, 2): the middles of the first boxes. `continues`: the ids
    of lost tracks that they are likely to go on.
    """

    ids: I64
    classes: I64
    began_ns: I64
    seen_ns: I64
    watched_ns: I64
    seen: NDArray[np.bool_]
    heights: F64
    torsos: F64
    keypoints: F64
    anchors: F64
    first_places: F64
    continues: I64

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def begun(cls, time_ns: int, watched_ns: int, people: People) -> Self:
        """Tracks of people who were seen once."""
        count, middles = len(people.boxes), (people.boxes[:, :2] + people.boxes[:, 2:]) / 2
        return cls(
            np.full(count, NO_ID, np.int64),
            people.classes.astype(np.int64),
            np.full(count, time_ns, np.int64),
            np.full(count, time_ns, np.int64),
            np.full(count, watched_ns, np.int64),
            np.ones(count, bool),
            people.heights,
            people.torsos,
            people.keypoints,
            middles,
            middles.copy(),
            np.full(count, NO_ID, np.int64),
        )

    @classmethod
    def empty(cls) -> Self:
        """Of nobody."""
        none = np.empty(0)
        return cls.begun(0, 0, People(np.empty((0, 4)), none, np.empty(0, np.int64), np.empty((0, 0, 3)), none, none))

    def note(self, rows: I64, time_ns: int, dt_ns: int, people: People, anchors: F64) -> None:
        """`rows` (M,) were seen as these people, with these predicted middles; the others were not."""
        self.seen[:] = False
        self.seen[rows] = True
        part = 1 - np.exp((self.seen_ns[rows] - time_ns) / 1e9 / _SIZE_S)
        self.seen_ns[rows] = time_ns
        self.watched_ns[rows] += dt_ns
        self.heights[rows] += part * (people.heights - self.heights[rows])
        before, torsos = self.torsos[rows], people.torsos
        mean = before + part * (torsos - before)
        self.torsos[rows] = np.where(np.isnan(torsos), before, np.where(np.isnan(before), torsos, mean))
        self.keypoints[rows] = people.keypoints
        self.anchors[rows] = anchors

    def with_points(self, points: int) -> Self:
        """The same with keypoints of so many joints: of none that are known if there were others."""
        if self.keypoints.shape[1] == points:
            return self
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return type(self)(**{**values, "keypoints": np.zeros((len(self), points, 3))})

    def taken(self, rows: I64) -> Self:
        """Only these tracks, in this order."""
        return type(self)(*(getattr(self, field.name)[rows] for field in fields(self)))

    def joined(self, other: Self) -> Self:
        """These tracks, then those."""
        return type(self)(
            *(np.concatenate((getattr(self, field.name), getattr(other, field.name))) for field in fields(self))
        )


def heights_of(boxes: F64) -> F64:
    """(N, 4) xyxy -> (N,); at least a pixel."""
    return np.maximum(boxes[:, 3] - boxes[:, 1], 1.0)
