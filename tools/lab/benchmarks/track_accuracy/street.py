"""A real street: the people of a MOTChallenge sequence, as a pose model finds them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from camgraph.stages.vision.decoding.score_ranges import score_range
from camgraph.tools.lab.benchmarks.action_clips import format_of, pictures_of
from camgraph.tools.lab.benchmarks.track_accuracy.measures import Labelled
from camgraph.tools.lab.benchmarks.track_accuracy.sequences import Found, Sequence
from camgraph.tools.models.pose_estimators import multipose, session, yolo

_FPS = 25.0


def street(folder: Path, model: Path) -> Sequence:
    """TUD-Stadtmitte in ``folder`` by MoveNet MultiPose at the video's own size, or by a YOLO of poses at 640 x 640.

    The detections are those that `decode` passes on to `track`.
    """
    pictures = [picture for _, picture in pictures_of(folder / f"{folder.name}.mp4", _FPS)]
    kind, opened = format_of(model), session(model)
    weak = score_range(kind).weak
    estimate = yolo(opened, weak) if kind == "yolo_pose" else multipose(opened, max(pictures[0].shape), weak)
    found = [Found(*(np.asarray(part, np.float64) for part in estimate(picture))) for picture in pictures]
    times = [round(number * 1e9 / _FPS) for number in range(len(found))]
    name = f"{folder.name}, YOLO" if kind == "yolo_pose" else folder.name
    return Sequence(name, times, read_mot(folder / "gt.txt", len(found)), found, kind)


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
