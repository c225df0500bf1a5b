"""What a tracker remembers of each track beside its motion."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from camgraph.stages.vision.tracking.appearance import mixed

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

NO_ID = 0
_SIZE_S = 0.8
"""Time constant of the mean of sizes: who bends down or is half hidden for a moment stays as large as before."""


class People(NamedTuple):
    """The people of a frame, N rows each: `boxes` (N, 4) xyxy, `keypoints` (N, K, 3), `looks` (N, D).

    `torsos` (N,) and `looks` may be NaN.
    """

    boxes: F64
    scores: F64
    classes: I64
    keypoints: F64
    heights: F64
    torsos: F64
    looks: F64

    def taken(self, rows: I64) -> People:
        """Only these, in this order."""
        return People._make(values[rows] for values in self)


@dataclass(frozen=True, slots=True)
class Memory:
    """Of N tracks, all arrays of N rows. Times are those of the stream.

    `seen`: in the last frame. `watched_ns`: for how long it was seen since it began. `heights` and `torsos` are means
    in pixels; torsos are NaN until one was known. `boxes` (N, 4) xyxy and `keypoints` (N, K, 3) are those last seen,
    when the middle of the predicted box was at `anchors` (N, 2). `first_places` (N, 2): the middles of the first boxes.
    `continues`: the ids of lost tracks that they are likely to go on. `looks` (N, D): what they look like, NaN until
    that was known.
    """

    ids: I64
    classes: I64
    began_ns: I64
    seen_ns: I64
    watched_ns: I64
    seen: NDArray[np.bool_]
    heights: F64
    torsos: F64
    boxes: F64
    keypoints: F64
    anchors: F64
    first_places: F64
    continues: I64
    looks: F64

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
            people.boxes,
            people.keypoints,
            middles,
            middles.copy(),
            np.full(count, NO_ID, np.int64),
            people.looks,
        )

    @classmethod
    def empty(cls) -> Self:
        """Of nobody."""
        none, nothing = np.empty(0), np.empty((0, 0))
        people = People(np.empty((0, 4)), none, np.empty(0, np.int64), np.empty((0, 0, 3)), none, none, nothing)
        return cls.begun(0, 0, people)

    def note(self, rows: I64, time_ns: int, dt_ns: int, people: People, anchors: F64) -> None:
        """`rows` (M,) were seen as these people, with these predicted middles; the others were not."""
        self.seen[:] = False
        if not len(rows):
            return
        self.seen[rows] = True
        passed_s = (time_ns - self.seen_ns[rows]) / 1e9
        part = 1 - np.exp(-passed_s / _SIZE_S)
        self.seen_ns[rows] = time_ns
        self.watched_ns[rows] += dt_ns
        self.heights[rows] += part * (people.heights - self.heights[rows])
        before, torsos = self.torsos[rows], people.torsos
        mean = before + part * (torsos - before)
        self.torsos[rows] = np.where(np.isnan(torsos), before, np.where(np.isnan(before), torsos, mean))
        self.boxes[rows] = people.boxes
        self.keypoints[rows] = people.keypoints
        self.anchors[rows] = anchors
        if people.looks.shape[1]:
            self.looks[rows] = mixed(self.looks[rows], people.looks, passed_s)

    def like(self, people: People) -> Self:
        """The same with room for what these people have. What was known of other joints or looks is forgotten."""
        changed: dict[str, Any] = {}
        if self.keypoints.shape[1:] != people.keypoints.shape[1:]:
            changed["keypoints"] = np.zeros((len(self), *people.keypoints.shape[1:]))
        if self.looks.shape[1:] != people.looks.shape[1:]:
            changed["looks"] = np.full((len(self), *people.looks.shape[1:]), np.nan)
        return replace(self, **changed) if changed else self

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
