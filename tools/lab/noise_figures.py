"""Figures of a pose model's noise, from what it reports: of real clips, and of the animator's own frames as a check.

Sizes are the height that somebody would have upright, in pixels; joints below `CERTAIN` count as not seen. Everything
is arrays in, numbers out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from camgraph.stages.vision.tracking import Tracker, TrackerOptions
from camgraph.tools.scenes.animator.pose_model import PART_OF, PARTS, logit

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

CERTAIN = 0.5
TORSO = 0.288
"""From the hips to the shoulders, as a part of the height (`body.py`)."""
SAVITZKY_GOLAY = np.array([-2.0, 3.0, 6.0, 7.0, 6.0, 3.0, -2.0]) / 21
"""The middle of a parabola fitted to seven values; it leaves a factor of 1 - 7/21 of the variance of white noise."""
STILL = 0.012
"""A joint stands still while it goes less than this part of the height in half a second."""


class FramePoses(NamedTuple):
    """One frame: boxes (N, 4), scores (N,), keypoints (N, 17, 3)."""

    boxes: F32
    scores: F32
    keypoints: F32


@dataclass(frozen=True)
class Track:
    """One person in successive frames. ``frames`` (T,): their numbers."""

    frames: NDArray[np.int64]
    boxes: F64
    scores: F64
    keypoints: F64
    sizes: F64


def heights(boxes: F64, keypoints: F64) -> F64:
    """(N,) how tall each person is in the picture: the torso's length over its share, or the box if that is taller."""
    middle = (keypoints[:, [5, 11], :2] + keypoints[:, [6, 12], :2]) / 2
    torso = np.linalg.norm(middle[:, 0] - middle[:, 1], axis=1) / TORSO
    return np.asarray(np.maximum(torso, boxes[:, 3] - boxes[:, 1]))


def tracks_of(founds: Sequence[FramePoses], fps: float) -> list[Track]:
    """Everybody whom camgraph's tracker follows, each in stretches without a missing frame, of ten frames and more."""
    tracker = Tracker(TrackerOptions(good_score=0.2, new_score=0.25))
    rows: dict[int, list[tuple[int, int]]] = {}
    for number, found in enumerate(founds):
        boxes, scores = found.boxes.astype(float), found.scores.astype(float)
        followed = tracker.follow(round(number * 1e9 / fps), boxes, scores)
        for row, owner in zip(followed.rows, followed.ids, strict=True):
            rows.setdefault(int(owner), []).append((number, int(row)))
    return [track for seen in rows.values() for track in _stretches(founds, seen) if len(track.frames) >= 10]


def _stretches(founds: Sequence[FramePoses], seen: Sequence[tuple[int, int]]) -> Iterable[Track]:
    numbers = np.array([number for number, _ in seen])
    for part in np.split(np.arange(len(seen)), np.flatnonzero(np.diff(numbers) != 1) + 1):
        picked = [seen[i] for i in part]
        boxes = np.array([founds[n].boxes[r] for n, r in picked], float)
        keypoints = np.array([founds[n].keypoints[r] for n, r in picked], float)
        scores = np.array([founds[n].scores[r] for n, r in picked], float)
        yield Track(numbers[part], boxes, scores, keypoints, heights(boxes, keypoints))


def _windows(values: F64, length: int) -> F64:
    """(T - length + 1, length, ...)"""
    return np.moveaxis(np.lib.stride_tricks.sliding_window_view(values, length, axis=0), -1, 1)


def _spread(values: F64) -> float:
    """A standard deviation that a few large values do not change."""
    return float(np.median(np.abs(values)) * 1.4826) if len(values) else float("nan")


def joint_noise(tracks: Sequence[Track], least_px: float = 0.0) -> dict[str, float]:
    """By part: what jumps from frame to frame, one standard deviation as a part of the height; of people this tall."""
    left: dict[str, list[F64]] = {part: [] for part in PARTS}
    for track in tracks:
        if len(track.frames) < 7:
            continue
        windows = _windows(track.keypoints, 7)
        smooth = np.einsum("twkc,w->tkc", windows[..., :2], SAVITZKY_GOLAY)
        rest = (windows[:, 3, :, :2] - smooth) / track.sizes[3:-3, None, None] * np.sqrt(1.5)
        sure = (windows[..., 2].min(axis=1) > CERTAIN) & (track.sizes[3:-3, None] >= least_px)
        for number, part in enumerate(PARTS):
            joints = np.flatnonzero(number == PART_OF)
            left[part].append(rest[:, joints][sure[:, joints]].ravel())
    return {part: _spread(np.concatenate(values)) if values else float("nan") for part, values in left.items()}


def structure(tracks: Sequence[Track], fps: float, longest_s: float = 0.4) -> tuple[F64, F64]:
    """Lags (s) and half the mean square change of still joints over them, as parts of the height squared."""
    lags = np.arange(1, max(2, round(longest_s * fps)) + 1)
    length = max(int(lags[-1]) + 1, round(0.5 * fps))
    changes: list[list[F64]] = [[] for _ in lags]
    for track in tracks:
        if len(track.frames) < length:
            continue
        places = track.keypoints[:, 5:, :2] / track.sizes[:, None, None]
        windows = _windows(places, length)
        third = length // 3
        gone = np.abs(windows[:, -third:].mean(axis=1) - windows[:, :third].mean(axis=1)).max(axis=-1)
        sure = _windows(track.keypoints[:, 5:, 2], length).min(axis=1) > CERTAIN
        still = (gone < STILL) & sure
        for row, lag in enumerate(lags):
            step = (windows[:, lag] - windows[:, 0])[still]
            changes[row].append((step**2).ravel() / 2)
    return lags / fps, np.array([_trimmed(np.concatenate(values)) if values else np.nan for values in changes])


def _trimmed(values: F64) -> float:
    """The mean without the largest hundredth, which are joints that jump elsewhere."""
    return float(np.sort(values)[: max(1, int(len(values) * 0.99))].mean()) if len(values) else float("nan")


def memory(lags: F64, changes: F64) -> tuple[float, float, float]:
    """The standard deviation, the share that is white, and the time constant that explain `structure` best."""
    best = (np.inf, 0.0, 0.0, 0.0)
    for tau in np.geomspace(0.04, 0.8, 30):
        basis = np.stack([np.ones(len(lags)), 1 - np.exp(-lags / tau)], axis=1)
        parts, *_ = np.linalg.lstsq(basis, changes, rcond=None)
        parts = np.maximum(parts, 0)
        wrong = float(((basis @ parts - changes) ** 2).sum())
        if wrong < best[0]:
            best = (wrong, float(np.sqrt(parts.sum())), float(parts[0] / max(parts.sum(), 1e-12)), float(tau))
    return best[1], best[2], best[3]


def confidences(tracks: Sequence[Track], least_px: float) -> tuple[dict[str, float], float]:
    """By part: the median confidence of people this tall, and the spread of its logit over all parts."""
    by_part: dict[str, list[F64]] = {part: [] for part in PARTS}
    for track in tracks:
        tall = track.sizes >= least_px
        for number, part in enumerate(PARTS):
            by_part[part].append(track.keypoints[tall][:, np.flatnonzero(number == PART_OF), 2].ravel())
    joined = {part: np.concatenate(values) if values else np.zeros(0) for part, values in by_part.items()}
    medians = {part: float(np.median(values)) if len(values) else float("nan") for part, values in joined.items()}
    rest = [logit(values) - logit(medians[part]) for part, values in joined.items() if len(values)]
    return medians, _spread(np.concatenate(rest)) if rest else float("nan")


def score_figures(tracks: Sequence[Track], fps: float, least_px: float) -> tuple[float, float, float]:
    """The median score of people this tall, the spread of its logit, and how long it stays alike (seconds)."""
    series = [logit(track.scores[track.sizes >= least_px]) for track in tracks]
    series = [one for one in series if len(one) >= 10]
    if not series:
        return float("nan"), float("nan"), float("nan")
    every = np.concatenate(series)
    middle = float(np.median(every))
    lag = max(1, round(0.2 * fps))
    pairs = np.concatenate([np.stack([one[:-lag], one[lag:]]) for one in series if len(one) > lag], axis=1) - middle
    alike = float(np.clip((pairs[0] * pairs[1]).mean() / (pairs**2).mean(), 0.01, 0.99))
    return float(1 / (1 + np.exp(-middle))), float(_spread(every - middle)), float(-lag / fps / np.log(alike))


def box_noise(tracks: Sequence[Track], least_px: float) -> float:
    """Of an edge, as a part of the height."""
    rest = []
    for track in tracks:
        if len(track.frames) >= 7:
            windows = _windows(track.boxes, 7)
            smooth = np.einsum("twc,w->tc", windows, SAVITZKY_GOLAY)
            tall = track.sizes[3:-3] >= least_px
            rest.append(((windows[:, 3] - smooth) / track.sizes[3:-3, None] * np.sqrt(1.5))[tall].ravel())
    return _spread(np.concatenate(rest)) if rest else float("nan")


def swap_share(tracks: Sequence[Track]) -> float:
    """The share of frames in which shoulders and hips are exchanged for less than four frames."""
    swapped = total = 0
    for track in tracks:
        apart = (track.keypoints[:, [5, 11], 0] - track.keypoints[:, [6, 12], 0]).mean(axis=1) / track.sizes
        sure = track.keypoints[:, [5, 6, 11, 12], 2].min(axis=1) > CERTAIN
        side = np.where(np.abs(apart) > 0.05, np.sign(apart), 0)
        total += int(((side != 0) & sure).sum())
        changes = np.flatnonzero(np.diff(side) != 0) + 1
        for first, last in pairwise(changes):
            back = last - first < 4 and side[first] == -side[first - 1] and side[last] == side[first - 1]
            swapped += int(last - first) if back and side[first] != 0 else 0
    return swapped / max(1, total)


@dataclass(frozen=True)
class AgainstTruth:
    """``missed``: of people whom nobody covers, the share that is not found. ``false_boxes``: a frame, with their
    scores; boxes inside a person's count as ``doubled`` (a frame) instead."""

    missed: float
    false_boxes: float
    doubled: float
    false_scores: F64


def against_truth(founds: Sequence[FramePoses], truths: Sequence[F64]) -> AgainstTruth:
    """``truths``: the true boxes (M, 4) xyxy of each frame."""
    missed = clear = doubled = 0
    scores: list[float] = []
    for found, truth in zip(founds, truths, strict=True):
        boxes = found.boxes.astype(float)
        near = _overlaps(truth, boxes)
        covered = (_overlaps(truth, truth) - np.eye(len(truth)) > 0.05).any(axis=1)
        clear += int((~covered).sum())
        missed += int((~covered & (near.max(axis=1, initial=0) < 0.4)).sum())
        owners = near.argmax(axis=0) if len(truth) else np.zeros(len(boxes), int)
        taken: set[int] = set()
        for row in np.argsort(-found.scores):
            best = float(near[:, row].max(initial=0))
            if best >= 0.4 and int(owners[row]) not in taken:
                taken.add(int(owners[row]))
            elif best >= 0.2:
                doubled += 1
            else:
                scores.append(float(found.scores[row]))
    frames = max(1, len(founds))
    return AgainstTruth(missed / max(1, clear), len(scores) / frames, doubled / frames, np.array(scores))


def _overlaps(first: F64, second: F64) -> F64:
    """(N, M) intersection over union."""
    low = np.maximum(first[:, None, :2], second[None, :, :2])
    high = np.minimum(first[:, None, 2:], second[None, :, 2:])
    both = np.clip(high - low, 0, None).prod(axis=-1)
    areas = [(boxes[:, 2:] - boxes[:, :2]).prod(axis=1) for boxes in (first, second)]
    return np.asarray(both / np.maximum(areas[0][:, None] + areas[1][None] - both, 1e-9))


def nested_share(founds: Sequence[FramePoses]) -> float:
    """Boxes that lie by four fifths in a stronger one of at least their size, per person."""
    nested = people = 0
    for found in founds:
        order = np.argsort(-found.scores)
        boxes = found.boxes[order].astype(float)
        area = (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)
        for row in range(len(boxes)):
            low = np.maximum(boxes[:row, :2], boxes[row, :2])
            high = np.minimum(boxes[:row, 2:], boxes[row, 2:])
            inside = np.clip(high - low, 0, None).prod(axis=1) / max(area[row], 1e-9)
            nested += bool(((inside > 0.8) & (area[:row] >= area[row])).any())
        people += len(boxes)
    return nested / max(1, people - nested)
