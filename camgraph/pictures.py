"""What is known of one frame: its people, and perhaps its picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.handover.parcel import PIXELS, Parcel, tracks_of

F32 = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class TrackedPerson:
    """One person in one frame.

    `id`: the same person in the same run and camera, never used again for another one. `box`: x1, y1, x2, y2 in pixels
    of the frame, x to the right, y down. `score` in [0, 1]. `keypoints` (K, 3) float32: x, y in pixels of the frame,
    confidence in [0, 1].
    """

    id: int
    box: tuple[float, float, float, float]
    score: float
    keypoints: F32 = field(repr=False)


@dataclass(frozen=True, eq=False)
class TrackedFrame:
    """The people of one frame; N may be 0.

    `epoch`, `seq`: the frame's place in its camera's order (`epoch` grows when a live camera is opened again).
    `time_s`: media time since the first frame for files, monotonic arrival for live cameras; the clock of all
    durations. `wall_time`: UTC, None where nobody knows it. `width`, `height`: of the frame, in pixels. `ids` (N,)
    int64, `boxes`
    (N, 4) float32 x1, y1, x2, y2 in pixels of the frame, `scores` (N,) float32 in [0, 1], `keypoints` (N, K, 3) float32
    x, y, confidence, in the order that `skeleton` names (`coco-17`: nose, left eye, right eye, left ear, ...).
    `skipped`: so many newer frames took each other's place since the camera's last one that you got: you were slow.
    """

    camera: str
    epoch: int
    seq: int
    time_s: float
    wall_time: datetime | None
    width: int
    height: int
    ids: NDArray[np.int64] = field(repr=False)
    boxes: F32 = field(repr=False)
    scores: F32 = field(repr=False)
    keypoints: F32 = field(repr=False)
    skeleton: str
    skipped: int

    @property
    def people(self) -> tuple[TrackedPerson, ...]:
        """The same, person by person."""
        rows = zip(self.ids.tolist(), self.boxes.tolist(), self.scores.tolist(), self.keypoints, strict=True)
        return tuple(TrackedPerson(one, (b[0], b[1], b[2], b[3]), score, joints) for one, b, score, joints in rows)


@dataclass(frozen=True, eq=False)
class Picture(TrackedFrame):
    """A frame's people and its picture.

    `pixels` (h, w, 3) uint8 BGR, yours to change; smaller than the frame where `max_width` says so, while boxes and
    keypoints stay in pixels of the frame: multiply them by `scale`.
    """

    pixels: NDArray[np.uint8] = field(repr=False)

    @property
    def scale(self) -> float:
        """Pixels of the picture per pixel of the frame."""
        return float(self.pixels.shape[1] / self.width)


def frame_of(parcel: Parcel) -> TrackedFrame:
    """The frame in a parcel, with its picture where it has one. Raises WireError."""
    tracks = tracks_of(parcel)
    stamp = tracks.stamp
    wall = datetime.fromtimestamp(stamp.wall_ns / 1e9, UTC) if stamp.clock not in ("", "file") else None
    known: dict[str, Any] = {
        "camera": stamp.camera,
        "epoch": stamp.epoch,
        "seq": stamp.seq,
        "time_s": stamp.time_ns / 1e9,
        "wall_time": wall,
        "width": tracks.frame_size[0],
        "height": tracks.frame_size[1],
        "ids": tracks.ids,
        "boxes": tracks.boxes,
        "scores": tracks.scores,
        "keypoints": tracks.keypoints,
        "skeleton": tracks.skeleton,
        "skipped": int(parcel.values["skipped"]),
    }
    pixels = parcel.arrays.get(PIXELS)
    return TrackedFrame(**known) if pixels is None else Picture(**known, pixels=pixels)
