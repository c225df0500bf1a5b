"""Measures the tracker against the ground truth of a MOTChallenge sequence.

    python -m tools.benchmarks.track_accuracy VIDEO GT [--model MULTIPOSE.onnx]

Prints MOTA, IDF1, identity switches, fragments, and the boxes missed and false. MOTA and switches as in CLEAR MOT
(Bernardin and Stiefelhagen, 2008): a pair of the frame before stays while it overlaps by half; IDF1 as in Ristani
et al. (2016): the best one-to-one mapping of whole identities.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from stages.vision.tracking import Tracker, TrackerOptions
from stages.vision.tracking.matching import match, similarity

F64 = NDArray[np.float64]
Ids = NDArray[np.int64]
Labelled = tuple[Ids, F64]
"""The identities (N,) and boxes (N, 4) xyxy of one frame."""

HALF = 0.5
MIN_SCORE, IOU = 0.2, 0.6
"""As the stage that decodes MultiPose has them by default."""


@dataclass
class Accuracy:
    """Sums over the frames of a sequence."""

    truths: int = 0
    found: int = 0
    hits: int = 0
    switches: int = 0
    fragments: int = 0
    identities: int = 0
    id_hits: int = 0
    _last: dict[int, int] = field(default_factory=dict, repr=False)
    _before: dict[int, int] = field(default_factory=dict, repr=False)
    _interrupted: set[int] = field(default_factory=set, repr=False)

    @property
    def mota(self) -> float:
        wrong = (self.truths - self.hits) + (self.found - self.hits) + self.switches
        return 1 - wrong / max(1, self.truths)

    @property
    def idf1(self) -> float:
        return 2 * self.id_hits / max(1, self.truths + self.found)

    def add(self, truth: Labelled, found: Labelled) -> None:
        """Count one frame; frames come in order."""
        likeness = similarity(truth[1], found[1])
        for row, true_id in enumerate(truth[0]):
            column = np.flatnonzero(found[0] == self._before.get(int(true_id), -1))
            if len(column) and likeness[row, column[0]] >= HALF:
                likeness[row, column[0]] += 10.0
        pairs = match(likeness, least=HALF)
        now = {int(truth[0][t]): int(found[0][f]) for t, f in zip(pairs.tracks, pairs.boxes, strict=True)}
        self._count(now, [int(i) for i in truth[0]], len(found[0]))

    def _count(self, now: Mapping[int, int], truths: Sequence[int], found: int) -> None:
        self.truths += len(truths)
        self.found += found
        self.hits += len(now)
        self.switches += sum(self._last.get(true_id, own) != own for true_id, own in now.items())
        self.fragments += sum(true_id in self._interrupted for true_id in now)
        self._interrupted = (self._interrupted | (set(self._before) & set(truths))) - set(now)
        self._last.update(now)
        self._before = dict(now)


def identity_hits(truths: Sequence[Labelled], founds: Sequence[Labelled]) -> int:
    """The boxes that are right under the best one-to-one mapping of true identities to found ones."""
    true_ids = {int(i): row for row, i in enumerate(sorted({int(i) for ids, _ in truths for i in ids}))}
    own_ids = {int(i): row for row, i in enumerate(sorted({int(i) for ids, _ in founds for i in ids}))}
    together = np.zeros((len(true_ids), len(own_ids)))
    for (ids, boxes), (own, own_boxes) in zip(truths, founds, strict=True):
        rows, columns = np.nonzero(similarity(boxes, own_boxes) >= HALF)
        for row, column in zip(rows, columns, strict=True):
            together[true_ids[int(ids[row])], own_ids[int(own[column])]] += 1
    return int(together[linear_sum_assignment(together, maximize=True)].sum())


def measure(truths: Sequence[Labelled], founds: Sequence[Labelled]) -> Accuracy:
    """The accuracy of `founds` (one entry a frame) against `truths`."""
    result = Accuracy()
    for truth, found in zip(truths, founds, strict=True):
        result.add(truth, found)
    result.identities = len({int(i) for ids, _ in founds for i in ids})
    result.id_hits = identity_hits(truths, founds)
    return result


def read_truth(path: Path, frames: int, every: int = 1) -> list[Labelled]:
    """Of every n-th frame, `frames` of them.

    `path` is a MOT15 gt.txt: frame (from 1), id, left, top, width, height, flag, ...; rows of flag 0 are left out.
    """
    table = np.loadtxt(path, delimiter=",", ndmin=2)
    table = table[table[:, 6] != 0]
    boxes = np.concatenate((table[:, 2:4], table[:, 2:4] + table[:, 4:6]), axis=1)
    per_frame = (np.flatnonzero(table[:, 0] == number) for number in range(1, frames * every + 1, every))
    return [(table[rows, 1].astype(np.int64), boxes[rows]) for rows in per_frame]


def detections(video: Path, model: Path, every: int = 1) -> Iterator[tuple[F64, F64]]:
    """Boxes (N, 4) and scores (N,) of every n-th frame by MoveNet MultiPose at the video's own size."""
    import av  # noqa: PLC0415 - heavy, and not needed with cached detections
    import onnxruntime  # noqa: PLC0415

    from stages.vision.decoding.movenet_multipose import decode_multipose  # noqa: PLC0415

    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    with av.open(str(video)) as container:
        for frame in islice(container.decode(video=0), 0, None, every):
            picture = frame.to_ndarray(format="rgb24")
            room = [(0, -size % 32) for size in picture.shape[:2]]
            heads = session.run(names, {session.get_inputs()[0].name: np.pad(picture, [*room, (0, 0)])[None]})
            rows = {name: np.asarray(head)[0] for name, head in zip(names, heads, strict=True)}
            poses = decode_multipose(rows, min_score=MIN_SCORE, iou=IOU)
            yield poses.boxes_xyxy.astype(np.float64), poses.scores.astype(np.float64)


def followed(found: Sequence[tuple[F64, F64]], fps: float, options: TrackerOptions) -> list[Labelled]:
    """The tracker's tracks for the detections of a video."""
    tracker = Tracker(options)
    result = []
    for index, (boxes, scores) in enumerate(found):
        seen = tracker.follow(round(index * 1e9 / fps), boxes, scores)
        result.append((seen.ids, boxes[seen.rows]))
    return result


@click.command()
@click.argument("video", type=click.Path(exists=True, path_type=Path))
@click.argument("truth", type=click.Path(exists=True, path_type=Path))
@click.option("--model", type=click.Path(exists=True, path_type=Path), required=True, help="MoveNet MultiPose")
@click.option("--fps", default=25.0, show_default=True, help="The video's frame rate")
@click.option("--every", default=1, show_default=True, help="Look at every n-th frame only")
def main(video: Path, truth: Path, model: Path, fps: float, every: int) -> None:
    """Follow the people of VIDEO and compare with TRUTH, a gt.txt."""
    found = list(detections(video, model, every))
    truths = read_truth(truth, len(found), every)
    result = measure(truths, followed(found, fps / every, TrackerOptions()))
    click.echo(
        f"frames {len(truths)}  MOTA {result.mota:.3f}  IDF1 {result.idf1:.3f}  switches {result.switches}  "
        f"fragments {result.fragments}  missed {result.truths - result.hits}  false {result.found - result.hits}  "
        f"identities {result.identities}"
    )


if __name__ == "__main__":
    main()
