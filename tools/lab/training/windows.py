"""Windows as the network reads them, with their truths: many of each play, and more of rare classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from camgraph.stages.vision.posture import CLASSES, GAP_NS, POINTS, STEPS, WINDOW_NS, Posture, normalised, window_of
from camgraph.tools.lab.training.plays import FPS, Play, Rng, play
from camgraph.tools.lab.training.truths import COLUMN, Truths, truths
from camgraph.tools.lab.training.views import Detections, View, detections, view
from camgraph.tools.scenes.animator.kinematics import joints

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

VIEWS = 2
OF_A_VIEW = 36
RATES = (5, 8, 10, 10, 12.5, 15, 25, 30)
"""Frames a second."""
_LEAST_SHARE = 0.08
_OFTEN = {
    **dict.fromkeys(("hands_up", "one_hand_up", "waving", "calling_for_help", "hand_to_face", "arms_crossed"), 6.0),
    **dict.fromkeys(("reaching", "pointing", "kicking", "punching", "jumping"), 6.0),
    **{"running": 4.0, "fall": 3.0, "kneeling": 3.0, "crouching": 2.0, "bending": 2.0},
}
"""How much more often moments of these classes are taken."""
_OFTEN_OF_KIND = {"drop": 1.5, "get up": 1.0, "plank": 1.0, "stoop": 1.0}
_MIXED = 0.12
"""The share of tracks that were another person's before."""
_MOVING = ("walking", "running", "jumping", "kicking", "punching", "waving", "calling_for_help")
"""Classes that a part of a window does not show."""
_FRESH_S = 1.6


@dataclass(frozen=True)
class Examples:
    """(N, T, 19, 3) windows, and (N, C) what is true and what is known of them."""

    windows: F32
    true: Mask
    known: Mask


def examples(seed: int) -> Examples:
    """The windows of one play, with what each shows."""
    rng = np.random.default_rng([seed, 77])
    played = play(rng)
    told = truths(played, joints(played.body, played.poses))
    windows, true, known = [], [], []
    for _ in range(VIEWS):
        seen = view(played, rng)
        for last in _moments(played, told, seen, rng):
            window, whose = _window(seen, int(last), rng)
            if window is None:
                continue
            windows.append(window)
            true.append(told.true[last])
            known.append(told.known[last] & ~_unsure(told.true[last], whose))
    shape = len(windows), STEPS, POINTS, 3
    classes = len(windows), len(CLASSES)
    return Examples(
        normalised(np.array(windows, np.float32).reshape(shape)),
        np.array(true, bool).reshape(classes),
        np.array(known, bool).reshape(classes),
    )


def _moments(played: Play, told: Truths, seen: View, rng: Rng) -> NDArray[np.intp]:
    """(N,) the last frame of each window, drawn by how rare its classes are."""
    weights = np.ones(len(told.true))
    for name, more in _OFTEN.items():
        weights += more * told.true[:, COLUMN[name]]
    for kind, more in _OFTEN_OF_KIND.items():
        weights += more * (played.kinds == kind)
    weights *= (seen.share > _LEAST_SHARE) & (np.arange(len(weights)) > FPS * 0.4)
    if not weights.any():
        return np.zeros(0, np.intp)
    return rng.choice(len(weights), min(OF_A_VIEW, len(weights) // 4 + 1), p=weights / weights.sum())


def _window(seen: View, last: int, rng: Rng) -> tuple[F32 | None, float]:
    """A window that ends at a frame, and for how many seconds its track has been of this person."""
    fps = float(rng.choice(RATES))
    count = int((WINDOW_NS + GAP_NS) / 1e9 * fps) + 1
    moments_s = last / FPS - np.arange(count)[::-1] / fps
    moments_s = moments_s[moments_s >= 0]
    rows = np.round(moments_s * FPS).astype(np.intp)
    made, whose_s = detections(seen, rows, rng), np.inf
    if len(rows) > 1 and rng.random() < _MIXED:
        first = int(rng.integers(1, len(rows)))
        made, whose_s = _mixed(made, seen, rows, first, rng), moments_s[-1] - moments_s[first]
    if not made.found[-1]:
        return None, whose_s
    posture = Posture()
    for row in np.flatnonzero(made.found):
        posture.note(round(moments_s[row] * 1e9), made.boxes[row], made.keypoints[row])
    return window_of(posture.record), float(whose_s)


def _mixed(made: Detections, seen: View, rows: NDArray[np.intp], first: int, rng: Rng) -> Detections:
    """Before the row `first`, the track was of somebody else beside the person, who did another thing of the play."""
    frames = len(seen.share)
    others = detections(seen, np.clip(rows - rows[-1] + rng.integers(frames), 0, frames - 1), rng)
    height = float(np.median(seen.height))
    there, here = _feet(others, first - 1), _feet(made, first) + rng.normal(0, 1, 2) * (0.35 * height, 0.14 * height)
    grown = rng.uniform(0.75, 1.3)
    keypoints = others.keypoints.copy()
    keypoints[..., :2] = (keypoints[..., :2] - there) * grown + here
    boxes = (others.boxes.reshape(-1, 2, 2) - there) * grown + here
    return made.joined(Detections(keypoints, boxes.reshape(-1, 4).astype(np.float32), others.found), first)


def _feet(made: Detections, row: int) -> F64:
    left, _, right, bottom = made.boxes[row]
    return np.array([(left + right) / 2, bottom], float)


def _unsure(true: Mask, whose_s: float) -> Mask:
    """(C,) the classes that a window does not show if the person has been in it for `whose_s` only."""
    unsure = np.zeros(len(CLASSES), bool)
    if whose_s < _FRESH_S:
        moving = [COLUMN[name] for name in _MOVING]
        unsure[moving] = true[moving]
        unsure[COLUMN["fall"]] = true[COLUMN["fall"]] or true[COLUMN["lying"]]
    return unsure
