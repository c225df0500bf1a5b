"""One frame for programs: its people, and its picture if the program asked for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from camgraph.joints import Joint, joint
from camgraph.stages.sinks.handover.parcel import PIXELS, Parcel, tracks_of

F32 = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class TrackedPerson:
    """One person in one frame.

    `id`: identifies the person within a camera and a run; no other person gets the same one. `continues`: the id
    of an earlier track that was lost and is likely the same person's; 0 if there is none. `box`: x1, y1, x2, y2 in
    pixels of the frame, x to the right, y down. `score` in [0, 1]. `keypoints` (K, 3) float32: x, y in pixels of the
    frame, confidence in [0, 1].
    """

    id: int
    continues: int
    box: tuple[float, float, float, float]
    score: float
    keypoints: F32 = field(repr=False)
    skeleton: str = "coco-17"

    def joint(self, name: str) -> Joint:
        """Return a joint by its name, such as `left_wrist`. Raises ValueError if the skeleton has none of this name."""
        return joint(self.keypoints, self.skeleton, name)


@dataclass(frozen=True, eq=False)
class TrackedFrame:
    """The people of one frame; N may be 0.

    `epoch`, `seq`: the frame's place in its camera's order (`epoch` grows when a live camera is opened again; `seq` of
    a video is the frame's number in it, from 0). `pts`: its time as the source gives it, in units of `time_base`
    (numerator, denominator) seconds; None if it gives none. `time_s`: the clock of all durations: media time since the
    first frame for files, monotonic arrival for live cameras. `wall_time`: UTC; None if it is unknown. `width`,
    `height`: the size of the frame in pixels. `ids` and `continues` (N,) int64, `boxes` (N, 4) float32 x1, y1, x2, y2
    in pixels of the frame, `scores` (N,) float32 in [0, 1], `classes` (N,) int64 (0 for people), `keypoints` (N, K, 3)
    float32 x, y, confidence, in the order that `skeleton` names (`coco-17`: nose, left eye, right eye, ...).
    `skipped`: how many frames of the camera your program was too slow for since the last one that it got.
    """

    camera: str
    epoch: int
    seq: int
    pts: int | None
    time_base: tuple[int, int]
    time_s: float
    wall_time: datetime | None
    width: int
    height: int
    ids: NDArray[np.int64] = field(repr=False)
    continues: NDArray[np.int64] = field(repr=False)
    boxes: F32 = field(repr=False)
    scores: F32 = field(repr=False)
    classes: NDArray[np.int64] = field(repr=False)
    keypoints: F32 = field(repr=False)
    skeleton: str
    skipped: int

    @property
    def people(self) -> tuple[TrackedPerson, ...]:
        """The people of the arrays, one object each."""
        rows = zip(
            self.ids.tolist(),
            self.continues.tolist(),
            self.boxes.tolist(),
            self.scores.tolist(),
            self.keypoints,
            strict=True,
        )
        return tuple(
            TrackedPerson(one, before, (b[0], b[1], b[2], b[3]), score, joints, self.skeleton)
            for one, before, b, score, joints in rows
        )


@dataclass(frozen=True, eq=False)
class Picture(TrackedFrame):
    """A frame's people and its picture.

    `pixels` (h, w, 3) uint8 BGR, which you may change. With `max_width` they can be smaller than the frame, but boxes
    and keypoints stay in pixels of the frame: multiply them by `scale`.
    """

    pixels: NDArray[np.uint8] = field(repr=False)

    @property
    def scale(self) -> float:
        """Width of the picture divided by width of the frame."""
        return float(self.pixels.shape[1] / self.width)


def frame_of(parcel: Parcel) -> TrackedFrame:
    """Return the frame in a parcel, a `Picture` if the parcel has pixels. Raises WireError."""
    tracks = tracks_of(parcel)
    stamp = tracks.stamp
    wall = datetime.fromtimestamp(stamp.wall_ns / 1e9, UTC) if stamp.clock not in ("", "file") else None
    known: dict[str, Any] = {
        "camera": stamp.camera,
        "epoch": stamp.epoch,
        "seq": stamp.seq,
        "pts": stamp.pts,
        "time_base": stamp.time_base,
        "time_s": stamp.time_ns / 1e9,
        "wall_time": wall,
        "width": tracks.frame_size[0],
        "height": tracks.frame_size[1],
        "ids": tracks.ids,
        "continues": tracks.continues,
        "boxes": tracks.boxes,
        "scores": tracks.scores,
        "classes": tracks.classes,
        "keypoints": tracks.keypoints,
        "skeleton": tracks.skeleton,
        "skipped": int(parcel.values["skipped"]),
    }
    pixels = parcel.arrays.get(PIXELS)
    return TrackedFrame(**known) if pixels is None else Picture(**known, pixels=pixels)
