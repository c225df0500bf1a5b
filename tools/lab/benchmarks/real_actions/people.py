"""Whom a model finds in a clip: found once, kept in a folder, and thinned out to lower frame rates.

A file of the folder is called CLIP-MODEL-RATE.npz. Of N people in T frames it holds `times_ns` and `counts` (T,),
`size` (width, height), `boxes_xyxy` (N, 4), `scores` (N,) and `keypoints` (N, 17, 3), in pixels, frame after frame.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from camgraph.pipeline.messages import Stamp
from camgraph.stages.messages import People
from camgraph.stages.vision.decoding.score_ranges import ScoreRange, score_range
from camgraph.tools.commands.watching.size import choose_sides, of_files
from camgraph.tools.lab.benchmarks.action_clips import Watched, format_of, pictures_of
from camgraph.tools.models.pose_estimators import Estimator, Poses, multipose, session, yolo

KEPT_SCORE = 0.05
"""People below the weak score of a model are kept, too: a try may ask for another one."""


@dataclass(frozen=True)
class Finder:
    """A model, and the folder that keeps whom it has found."""

    model: Path
    cache: Path
    threads: int = 1

    @functools.cached_property
    def format(self) -> str:
        """Which of the known formats the model's outputs have. Read once: the model must be opened for it."""
        return format_of(self.model)

    @property
    def scores(self) -> ScoreRange:
        return score_range(self.format)

    def kept(self, clip: Path, fps: float) -> Path:
        """The file of a clip at a frame rate."""
        return self.cache / f"{clip.stem}-{self.model.stem}-{fps:g}.npz"

    def is_kept(self, clip: Path, fps: float) -> bool:
        return self.kept(clip, fps).is_file()

    def find(self, clip: Path, fps: float) -> Watched:
        """The people of a clip at up to so many frames a second; looked for if they are not kept."""
        if not self.is_kept(clip, fps):
            _keep(self._looked_for(clip, fps), self.kept(clip, fps))
        return _read(self.kept(clip, fps), fps)

    def _looked_for(self, clip: Path, fps: float) -> Watched:
        estimate = self._estimator(clip)
        times, found, size = [], [], (0, 0)
        for time_ns, picture in pictures_of(clip, fps):
            times.append(time_ns)
            found.append(estimate(picture))
            size = (picture.shape[1], picture.shape[0])
        return Watched(times, found, size, fps)

    def _estimator(self, clip: Path) -> Estimator:
        """As `camgraph watch` would look at this clip."""
        model = session(self.model, self.threads)
        if self.format == "yolo_pose":
            return yolo(model, KEPT_SCORE)
        return multipose(model, choose_sides(self.model, of_files({"clip": clip}))["clip"].side, KEPT_SCORE)


def _keep(seen: Watched, path: Path) -> None:
    """Written under another name first: a run that is stopped leaves no half file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(one, name) for one in seen.found]) for name in Poses._fields
    }
    arrays |= {"times_ns": seen.times_ns, "counts": [len(one.scores) for one in seen.found], "size": seen.size}
    part = path.with_name(f"{path.name}.part.npz")
    np.savez_compressed(part, allow_pickle=False, **{name: np.asarray(values) for name, values in arrays.items()})
    part.replace(path)


def _read(path: Path, fps: float) -> Watched:
    with np.load(path) as stored:
        ends = np.cumsum(stored["counts"])[:-1]
        parts = [np.split(stored[name], ends) for name in Poses._fields]
        people = [Poses(*one) for one in zip(*parts, strict=True)]
        width, height = stored["size"].tolist()
        return Watched(stored["times_ns"].tolist(), people, (width, height), fps)


def thinned(seen: Watched, fps: float) -> Watched:
    """The frames that a camera of so many a second would have brought."""
    rows, next_ns = [], seen.times_ns[0] if seen.times_ns else 0
    for row, time_ns in enumerate(seen.times_ns):
        if time_ns >= next_ns - 1_000_000:
            next_ns = max(next_ns + round(1e9 / fps), time_ns)
            rows.append(row)
    return Watched([seen.times_ns[row] for row in rows], [seen.found[row] for row in rows], seen.size, fps)


def people_of(seen: Watched, least_score: float) -> Iterator[People]:
    """As the stage `decode` sends them; the first frame is at 0 s."""
    first_ns = seen.times_ns[0] if seen.times_ns else 0
    for number, (time_ns, found) in enumerate(zip(seen.times_ns, seen.found, strict=True)):
        at, rows = time_ns - first_ns, np.flatnonzero(found.scores >= least_score)
        stamp = Stamp("clip", 0, number, at, at, at, at)
        boxes, scores, joints = (part[rows].astype(np.float32) for part in found)
        yield People(stamp, boxes, scores, joints, seen.size, np.zeros(len(rows), np.int64))
