"""The part of `docs/accuracy.md` and its pictures, from the measurements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.stages.vision.drawing import draw_people
from camgraph.tools.lab.benchmarks.pose_accuracy.conversion import SIZES, Agreement, Difference
from camgraph.tools.lab.benchmarks.pose_accuracy.sizes import AtSize
from camgraph.tools.lab.report_page import table_head, table_row
from camgraph.tools.models.pose_estimators import U8, Estimator
from camgraph.tools.models.pose_truth import Precision

PAGE = """\
Written by `python -m camgraph.tools.lab.benchmarks.pose_accuracy --data FOLDER --report docs/accuracy.md`; FOLDER
holds the test data. Run it again after you change a model, the conversion or a decoder. Everything is measured on the
CPU.

## Keypoints against known ones

This table shows average precision over object keypoint similarity (OKS), by pycocotools. {sets} These are few people:
a tenth more or less means little. The table shows that keypoints are in the right places, that left is left, and at
which size a model works best. Many people of coco8-pose fill their picture, which MultiPose handles badly (see
below).

{precision}

The YOLO weights of the test data went through int8, so they score below the originals; use them as a second opinion
on the same pictures.

![keypoints found in a frame of vtest.avi](pictures/accuracy-clip.jpg)

Orange is the person's left, blue the right. The licences of the photographs do not allow them here; the command draws
them into the folder `out/accuracy`.

## How large people may be

This table shows one clip with at most one person (each {every}th frame, least score {min_score}), scaled to several
sizes: in how many frames nobody, one and more people were found. If the person is taller than about 260 pixels in the
model's picture, MultiPose finds two halves, each with half the score, or nobody.

{by_size}

So choose the size of the model's picture (`size` of `preprocess`) so that people are 60 to 250 pixels tall in it.

## The conversion from TF.js

This is the largest absolute difference of each head from a reference conversion of the same weights, over {pictures}
pictures at {sizes}, in batches of 1 and 3:

{heads}

Regressions, sizes and offsets count in cells of 4 x 4 pixels. One picture of 768 x 576 took {ms:.0f} ms on one thread,
{ratio:.2f} times the reference's time in the same run.

## The decoder

The TF.js model ends in a decoder for six people of one picture. `tools/lab/published_decoder.py` runs its nodes
as they are; ours was compared with it on {people} published people of a score of at least {least_compared}, on the same
heads, at 768 x 576:

| of | largest difference |
|---|---|
| boxes, pixels | {box:.1e} |
| keypoints, pixels | {keypoint:.1e} |
| confidences that are the person's own | {confidence:.1e} |

{shared:.1%} of the confidences were not the person's own: if keypoints of several people (even of people who score
nearly nothing) fall into one cell, the published decoder gives all of them the largest confidence. Ours keeps each
person's own, so that a person's keypoints do not depend on the others.

Decoding took {decode_ms:.2f} ms for {decoded} people.
"""


@dataclass(frozen=True)
class Row:
    """One model at one size on one set of pictures."""

    truth: str
    model: str
    size: str
    precision: Precision


@dataclass(frozen=True)
class Measured:
    """All figures of the part."""

    sets: str
    rows: Sequence[Row]
    difference: Difference
    agreement: Agreement
    speed: tuple[float, float]
    decoding: tuple[float, int]
    by_size: Sequence[AtSize]
    every: int
    min_score: float
    least_compared: float


def page(measured: Measured) -> str:
    """The text between the marks."""
    ratio, ms = measured.speed
    decode_ms, decoded = measured.decoding
    rows = [(r.truth, r.model, r.size, *(f"{value:.3f}" for value in r.precision)) for r in measured.rows]
    sizes = [(s.long_side, s.nobody, s.one, s.more, f"{s.height:.0f}", f"{s.score:.2f}") for s in measured.by_size]
    return PAGE.format(
        sets=measured.sets,
        precision=_table(("pictures", "model", "size", "AP", "AP at 0.5", "AP at 0.75", "recall"), rows),
        by_size=_table(("long side", "nobody", "one", "more", "median height", "mean score"), sizes),
        heads=_table(("head", "difference"), [(n, f"{d:.1e}") for n, d in measured.difference.by_head.items()]),
        sizes=", ".join(f"{width} x {height}" for width, height in SIZES),
        pictures=measured.difference.pictures,
        ms=ms,
        ratio=ratio,
        decode_ms=decode_ms,
        decoded=decoded,
        every=measured.every,
        min_score=measured.min_score,
        least_compared=measured.least_compared,
        **measured.agreement._asdict(),
    )


def _table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    return "\n".join([*table_head(*titles), *(table_row(*row) for row in rows)])


def drawn(picture: U8, estimate: Estimator, *, enlarge: int = 1) -> U8:
    """A copy, larger by the factor `enlarge`, with the people that were found and their scores."""
    found = estimate(picture)
    copy = np.asarray(cv2.resize(picture, None, fx=enlarge, fy=enlarge, interpolation=cv2.INTER_CUBIC), np.uint8)
    labels = [f"{score:.2f}" for score in found.scores]
    keypoints = found.keypoints * np.array((enlarge, enlarge, 1), np.float32)
    draw_people(copy, found.boxes_xyxy * enlarge, keypoints, range(len(labels)), labels)
    return copy


def write_jpeg(path: Path, picture: U8, quality: int = 80) -> None:
    """Raises EnvironmentProblem if it cannot be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not cv2.imwrite(str(path), picture, [cv2.IMWRITE_JPEG_QUALITY, quality]):
        raise EnvironmentProblem(f"{path}: cannot write this picture")
