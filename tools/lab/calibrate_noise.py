"""Measures on real clips how noisy a pose model is: the figures of `pose_model.py`.

    python -m camgraph.tools.lab.calibrate_noise MODEL.onnx CLIP ... [--frames 150] [--side 640] [--truth gt.txt]

Four things are done with the frames of each clip: they are read as they are (noise from frame to frame, confidences,
scores, boxes inside others, left and right exchanged); shrunk to a half, a third and a quarter (small people, against
the same people at full size); cut off at the hips of the tallest person (joints beyond the border); and covered from
the hips down, or on the right half (hidden joints, scores of people who are half seen).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import av
import click
import cv2
import numpy as np
from numpy.typing import NDArray

from camgraph.pipeline.messages import Message
from camgraph.pipeline.single_stage import opened, stamp
from camgraph.pipeline.stage import Stage, Upstream
from camgraph.stages.messages import Frame, People
from camgraph.stages.people.decode import Decode, DecodeSettings
from camgraph.stages.people.infer import Infer, InferSettings
from camgraph.stages.people.preprocess import Preprocess
from camgraph.tools.lab import noise_figures as figures
from camgraph.tools.lab.noise_figures import CERTAIN, FramePoses
from camgraph.tools.scenes.animator.pose_model import logit

F64 = NDArray[np.float64]
U8 = NDArray[np.uint8]
Detect = Callable[[U8], FramePoses]

MIN_SCORE = 0.1
TALL_PX = 150.0
"""People from this height on, in the model's pixels, are near enough that their size does not matter."""
EVERY = 6
"""Every so many frames are shrunk, cut and covered."""
SHRUNK = (2, 3, 4)


@contextmanager
def detector(model: Path) -> Iterator[Detect]:
    """The model with the stages around it, as a graph would run them."""
    folder = model.parent
    wanted = InferSettings.model_validate({"model": str(model)})
    decoding = {"min_score": MIN_SCORE}
    upstream = Upstream({"infer": Infer.describe(wanted)})
    followed = Decode.follow(DecodeSettings.model_validate(decoding), folder, upstream)
    with ExitStack() as stack:
        picture = {"size": "native", **Infer.wants(wanted, folder)}
        prepare = stack.enter_context(opened(Preprocess, picture, folder=folder, stage="prepare"))
        infer = stack.enter_context(opened(Infer, {"model": str(model)}, folder=folder, stage="infer"))
        decode = stack.enter_context(opened(Decode, {**decoding, **followed}, folder=folder, stage="decode"))

        chain: list[Stage[Any]] = [prepare, infer, decode]

        def detect(pixels: U8) -> FramePoses:
            message: Message = Frame.of_bgr(stamp(), np.ascontiguousarray(pixels))
            for stage in chain:
                [message] = stage.process([message])
            assert isinstance(message, People)
            return FramePoses(message.boxes, message.scores, message.keypoints)

        yield detect


@dataclass
class Trials:
    """What shrinking, cutting and covering showed; rows of figures."""

    small: list[tuple[float, float, float, float]] = field(default_factory=list)
    """Height in the model's pixels, score then, score before, median shift of the joints in the model's pixels."""
    lost_small: list[tuple[float, bool]] = field(default_factory=list)
    outside: list[float] = field(default_factory=list)
    """Confidences of joints beyond the border."""
    outside_places: list[float] = field(default_factory=list)
    """How far below the border they are reported, as a part of how far they are."""
    hidden: list[float] = field(default_factory=list)
    hidden_shift: list[float] = field(default_factory=list)
    """How far hidden joints are from where they were, as a part of the height."""
    covered_scores: list[tuple[float, float]] = field(default_factory=list)
    """The loss of the score's logit of people of whom the lower or the right half is covered, and that share (0.5)."""
    covered_lost: list[bool] = field(default_factory=list)
    box_end: list[float] = field(default_factory=list)
    """Where the box ends below the cover's edge, 0 at the edge and 1 at the person's feet."""


def pictures(clip: Path, count: int) -> Iterator[U8]:
    """The first frames, BGR."""
    with av.open(str(clip)) as container:
        for frame in islice(container.decode(video=0), count):
            yield np.asarray(frame.to_ndarray(format="bgr24"), np.uint8)


def rate(clip: Path) -> float:
    with av.open(str(clip)) as container:
        return float(container.streams.video[0].average_rate or 25)


def whole(found: FramePoses, size: tuple[int, int]) -> NDArray[np.int64]:
    """Rows of people who are certain, entire, upright and tall, away from the borders."""
    if not len(found.boxes):
        return np.zeros(0, np.int64)
    tall = found.boxes[:, 3] - found.boxes[:, 1]
    sure = (found.keypoints[:, 5:, 2].min(axis=1) > CERTAIN) & (found.scores > 0.5)
    inside = (found.boxes[:, 0] > 2) & (found.boxes[:, 2] < size[0] - 2) & (found.boxes[:, 3] < size[1] - 2)
    upright = tall > 1.6 * (found.boxes[:, 2] - found.boxes[:, 0])
    return np.flatnonzero(sure & inside & upright & (tall > 80))


def same(box: F64, found: FramePoses, least: float = 0.3) -> int | None:
    """The row of the person whose box overlaps most, None if that is less than ``least``."""
    if not len(found.boxes):
        return None
    low, high = np.maximum(found.boxes[:, :2], box[:2]), np.minimum(found.boxes[:, 2:], box[2:])
    overlap = np.clip(high - low, 0, None).prod(axis=1)
    both = (found.boxes[:, 2:] - found.boxes[:, :2]).prod(axis=1) + (box[2:] - box[:2]).prod() - overlap
    best = int((overlap / both).argmax())
    return best if overlap[best] / both[best] >= least else None


def shrink(picture: U8, base: FramePoses, detect: Detect, scale: float, trials: Trials) -> None:
    """``scale``: the model's pixels for each of the picture, at full size."""
    height, width = picture.shape[:2]
    for factor in SHRUNK:
        canvas = np.full_like(picture, 114)
        small = cv2.resize(picture, (width // factor, height // factor), interpolation=cv2.INTER_AREA)
        canvas[: small.shape[0], : small.shape[1]] = small
        found = detect(canvas)
        found = FramePoses(
            found.boxes * factor, found.scores, found.keypoints * np.array([factor, factor, 1], np.float32)
        )
        for row in whole(base, (width, height)):
            box = base.boxes[row].astype(float)
            tall = float(box[3] - box[1]) * scale / factor
            match = same(box, found, 0.5)
            trials.lost_small.append((tall, match is None))
            if match is not None:
                shift = np.linalg.norm(found.keypoints[match, 5:, :2] - base.keypoints[row, 5:, :2], axis=1)
                moved = float(np.median(shift)) * scale / factor
                trials.small.append((tall, float(found.scores[match]), float(base.scores[row]), moved))


def cut(picture: U8, base: FramePoses, detect: Detect, trials: Trials) -> None:
    """The picture ends below the hips of the tallest person."""
    rows = whole(base, (picture.shape[1], picture.shape[0]))
    if not len(rows):
        return
    row = rows[np.argmax(base.boxes[rows, 3] - base.boxes[rows, 1])]
    keypoints = base.keypoints[row]
    edge = int(keypoints[[11, 12], 1].mean() + 0.04 * (base.boxes[row, 3] - base.boxes[row, 1]))
    found = detect(picture[:edge])
    seen = base.boxes[row].astype(float)
    seen[3] = edge
    match = same(seen, found)
    if match is None:
        return
    beyond = np.flatnonzero(keypoints[:, 1] > edge + 4)
    trials.outside += found.keypoints[match, beyond, 2].tolist()
    share = (found.keypoints[match, beyond, 1] - edge) / (keypoints[beyond, 1] - edge)
    trials.outside_places += share.tolist()


def cover(picture: U8, base: FramePoses, detect: Detect, trials: Trials, rng: np.random.Generator) -> None:
    """Something stands before the lower half of the tallest person, then before the right half."""
    rows = whole(base, (picture.shape[1], picture.shape[0]))
    if not len(rows):
        return
    row = rows[np.argmax(base.boxes[rows, 3] - base.boxes[rows, 1])]
    box = base.boxes[row].astype(float)
    tall, wide = box[3] - box[1], box[2] - box[0]
    middle = (box[:2] + box[2:]) / 2
    below = np.array([box[0] - wide, middle[1], box[2] + wide, box[3] + 0.05 * tall])
    beside = np.array([middle[0], box[1] - 0.1 * tall, box[2] + 0.5 * wide, box[3] + 0.1 * tall])
    for hidden in (below, beside):
        x1, y1, x2, y2 = (max(0, int(v)) for v in hidden)
        changed = picture.copy()
        patch = changed[y1:y2, x1:x2]
        grain = rng.normal(0, 6, patch.shape[:2])[..., None] + np.array([92.0, 104.0, 110.0])
        patch[:] = np.clip(grain, 0, 255).astype(np.uint8)
        found = detect(changed)
        seen = box.copy()
        if hidden is below:
            seen[3] = y1
        else:
            seen[2] = x1
        match = same(seen, found)
        trials.covered_lost.append(match is None)
        if match is None:
            continue
        trials.covered_scores.append((float(logit(base.scores[row]) - logit(found.scores[match])), 0.5))
        keypoints = base.keypoints[row]
        inside = (keypoints[:, 0] > x1) & (keypoints[:, 0] < x2) & (keypoints[:, 1] > y1 + 3) & (keypoints[:, 1] < y2)
        trials.hidden += found.keypoints[match, inside, 2].tolist()
        shift = np.linalg.norm(found.keypoints[match, inside, :2] - keypoints[inside, :2], axis=1) / tall
        trials.hidden_shift += shift.tolist()
        if hidden is below:
            trials.box_end.append(float((found.boxes[match, 3] - y1) / (box[3] - y1)))


def model_scale(size: tuple[int, int], model_side: int | None) -> float:
    """The model's pixels for each of the picture; one to one for a model that takes any size."""
    return 1.0 if model_side is None else min(1.0, model_side / max(size))


def report(
    tracks: Sequence[figures.Track], founds: Sequence[FramePoses], fps: float, trials: Trials, scale: float
) -> Iterator[str]:
    """Lines for people to read."""
    tall = TALL_PX / scale
    yield f"tracks {len(tracks)}, frames {len(founds)}, people {sum(len(found.boxes) for found in founds)}"
    noise = figures.joint_noise(tracks, tall)
    yield "jump from frame to frame, part of the height: " + _named(noise, "{:.4f}")
    lags, changes = figures.structure(tracks, fps)
    deviation, white, tau = figures.memory(lags, changes)
    yield f"still joints: deviation {deviation:.4f}, white {white:.2f}, alike over {tau:.2f} s"
    yield "  half the mean square change, by lag: " + ", ".join(
        f"{lag:.2f} s {np.sqrt(value):.4f}" for lag, value in zip(lags, changes, strict=True)
    )
    medians, spread = figures.confidences(tracks, tall)
    yield "confidence: " + _named(medians, "{:.3f}") + f"; spread of the logit {spread:.2f}"
    score, score_spread, score_tau = figures.score_figures(tracks, fps, tall)
    yield f"score {score:.3f}, spread of the logit {score_spread:.2f}, alike over {score_tau:.2f} s"
    yield f"box edge {figures.box_noise(tracks, tall):.4f} of the height"
    yield f"nested {figures.nested_share(founds):.4f}, exchanged {figures.swap_share(tracks):.4f}"
    yield from _trial_lines(trials)


def _trial_lines(trials: Trials) -> Iterator[str]:
    small, lost = np.array(trials.small), np.array(trials.lost_small, float)
    for low, high in ((0, 40), (40, 60), (60, 90), (90, 130), (130, 200), (200, 400)):
        rows = small[(small[:, 0] >= low) & (small[:, 0] < high)] if len(small) else small
        tried = lost[(lost[:, 0] >= low) & (lost[:, 0] < high)] if len(lost) else lost
        if len(tried):
            text = f"height {low}-{high} px: {len(tried)} people, lost {tried[:, 1].mean():.2f}"
            if len(rows):
                loss = np.median(logit(rows[:, 2]) - logit(rows[:, 1]))
                text += f", score's logit lower by {loss:.2f}, joints off by {np.median(rows[:, 3]):.2f} px"
            yield text
    if trials.outside:
        quantiles = np.quantile(trials.outside, (0.1, 0.5, 0.9))
        yield f"beyond the border ({len(trials.outside)} joints): confidence {quantiles.round(3).tolist()}"
        yield f"  placed at {np.quantile(trials.outside_places, (0.1, 0.5, 0.9)).round(2).tolist()} of the way"
    if trials.hidden:
        quantiles = np.quantile(trials.hidden, (0.1, 0.5, 0.9))
        yield f"hidden ({len(trials.hidden)} joints): confidence {quantiles.round(3).tolist()}"
        yield f"  off by {np.quantile(trials.hidden_shift, (0.1, 0.5, 0.9)).round(3).tolist()} of the height"
        losses = np.quantile([value for value, _ in trials.covered_scores], (0.1, 0.5, 0.9))
        lost_half = float(np.mean(trials.covered_lost))
        yield f"half covered: score's logit lower by {losses.round(2).tolist()}, lost {lost_half:.2f}"
        yield f"  the box ends at {np.quantile(trials.box_end, (0.1, 0.5, 0.9)).round(2).tolist()} of the hidden part"


def _named(values: dict[str, float], pattern: str) -> str:
    return ", ".join(f"{name} {pattern.format(value)}" for name, value in values.items())


def read_truth(path: Path, frames: int) -> list[F64]:
    """The boxes (M, 4) of each frame of a MOTChallenge gt.txt: frame (from 1), id, left, top, width, height."""
    table = np.loadtxt(path, delimiter=",", ndmin=2)
    boxes = np.concatenate((table[:, 2:4], table[:, 2:4] + table[:, 4:6]), axis=1)
    return [boxes[table[:, 0] == number] for number in range(1, frames + 1)]


def measure(
    detect: Detect, clip: Path, frames: int, model_side: int | None, truth: Path | None = None
) -> Iterator[str]:
    """One clip."""
    founds: list[FramePoses] = []
    trials = Trials()
    rng = np.random.default_rng(0)
    scale = 1.0
    for number, picture in enumerate(pictures(clip, frames)):
        founds.append(detect(picture))
        scale = model_scale((picture.shape[1], picture.shape[0]), model_side)
        if number % EVERY == 0:
            shrink(picture, founds[-1], detect, scale, trials)
            cut(picture, founds[-1], detect, trials)
            cover(picture, founds[-1], detect, trials, rng)
    fps = rate(clip)
    if truth is not None:
        checked = figures.against_truth(founds, read_truth(truth, len(founds)))
        yield f"missed {checked.missed:.3f} of those whom nobody covers; a frame: doubled {checked.doubled:.3f},"
        scores = np.quantile(checked.false_scores, (0.1, 0.5, 0.9)).round(2).tolist() if checked.false_boxes else []
        yield f"  false {checked.false_boxes:.3f}, which score {scores}"
    yield from report(figures.tracks_of(founds, fps), founds, fps, trials, scale)


@click.command()
@click.argument("model", type=click.Path(exists=True, path_type=Path))
@click.argument("clips", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--frames", default=150, show_default=True, help="Look at so many frames of each clip")
@click.option("--side", type=int, help="The side of the model's picture, if it takes one size only")
@click.option("--truth", type=click.Path(exists=True, path_type=Path), help="A gt.txt with the true boxes of the clip")
def main(model: Path, clips: tuple[Path, ...], frames: int, side: int | None, truth: Path | None) -> None:
    """Measure the noise of MODEL on CLIPS."""
    with detector(model) as detect:
        for clip in clips:
            click.echo(f"{model.stem} on {clip.name}")
            for line in measure(detect, clip, frames, side, truth):
                click.echo(f"  {line}")


if __name__ == "__main__":
    main()
