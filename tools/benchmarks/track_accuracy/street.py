"""A real street: the people of a MOTChallenge sequence, as a pose model finds them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from stages.vision.decoding.score_ranges import score_range
from tools.benchmarks.track_accuracy.measures import Labelled
from tools.benchmarks.track_accuracy.sequences import Found, Sequence

_FPS = 25.0
_IOU = 0.6
"""The overlap that `decode` uses for MultiPose."""


def street(folder: Path, model: Path) -> Sequence:
    """TUD-Stadtmitte in ``folder`` by MoveNet MultiPose at the video's own size."""
    found = list(detections(folder / f"{folder.name}.mp4", model))
    times = [round(number * 1e9 / _FPS) for number in range(len(found))]
    return Sequence(folder.name, times, read_mot(folder / "gt.txt", len(found)), found)


def read_mot(path: Path, frames: int | None = None) -> list[Labelled]:
    """The people of the first ``frames`` of a file of MOTChallenge, or of all: a gt.txt, or tracks of `sink_tracks`.

    Its columns are frame (from 1), id, left, top, width, height, flag or score, ...; rows of flag 0 are left out.
    """
    table = np.loadtxt(path, delimiter=",", ndmin=2)
    table = table[table[:, 6] != 0]
    boxes = np.concatenate((table[:, 2:4], table[:, 2:4] + table[:, 4:6]), axis=1)
    last = int(table[:, 0].max(initial=0)) if frames is None else frames
    per_frame = (np.flatnonzero(table[:, 0] == number) for number in range(1, last + 1))
    return [(table[rows, 1].astype(np.int64), boxes[rows]) for rows in per_frame]


def detections(video: Path, model: Path) -> Iterator[Found]:
    """The detections that `decode` passes on to `track`, frame by frame."""
    import av  # noqa: PLC0415 - heavy, and not needed for scenes
    import onnxruntime  # noqa: PLC0415

    from stages.vision.decoding.movenet_multipose import decode_multipose  # noqa: PLC0415

    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    least = score_range("movenet_multipose").weak
    with av.open(str(video)) as container:
        for frame in container.decode(video=0):
            picture = frame.to_ndarray(format="rgb24")
            room = [(0, -size % 32) for size in picture.shape[:2]]
            heads = session.run(names, {session.get_inputs()[0].name: np.pad(picture, [*room, (0, 0)])[None]})
            rows = {name: np.asarray(head)[0] for name, head in zip(names, heads, strict=True)}
            poses = decode_multipose(rows, min_score=least, iou=_IOU)
            yield Found(*(np.asarray(part, np.float64) for part in poses))
