"""How a pose model sees people: noise of joints, confidences, scores, people missed, seen twice, or not there at all.

The figures of `YOLO11N` and `MULTIPOSE` were measured on real clips with `python -m
camgraph.tools.lab.calibrate_noise`; `docs/animator.md` says which, and which are assumptions.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]

PARTS = ("face", "shoulder", "elbow", "wrist", "hip", "knee", "ankle")
BIAS_TAU_S = 0.8
PART_OF = np.array([0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6])
"""(17,) the part, a row of `PARTS`, that each keypoint of COCO is."""
SWAPPED = np.array([0, 2, 1, 4, 3, 6, 5, 8, 7, 10, 9, 12, 11, 14, 13, 16, 15])
"""(17,) the keypoint of the other side."""


@dataclass(frozen=True)
class PoseModel:
    """Noise is given as one standard deviation; sizes are in pixels of the model's picture, not of the camera's."""

    name: str
    input_side: int
    """The model sees the camera's picture shrunk to this longer side (never enlarged)."""

    joint_noise: tuple[float, ...]
    """By part: how a visible joint trembles, as a part of the person's height in the picture."""
    joint_floor_px: float
    """The least trembling, in the model's pixels."""
    noise_tau_s: float
    """The trembling is alike over about this time: its correlation falls by e."""
    white_share: float
    """The part of its variance that is new in each frame."""
    bias: float = 0.006
    """How far all joints are off for a longer time (`BIAS_TAU_S`), as a part of the height."""
    bias_floor_px: float = 1.2
    """The least of that, in the model's pixels: small people are found less exactly."""
    hidden_noise: float = 3.0
    """How many times noisier a hidden joint is."""

    confidence: tuple[float, ...] = ()
    """By part: median of a visible joint's confidence."""
    confidence_spread: float = 0.8
    """Of its logit."""
    self_hidden_logit: float = -2.5
    """Added for a joint that the body itself hides."""
    hidden_face_logit: float = -6.5
    """Added for eyes, ears and nose on the far side of the head."""
    hidden_confidence: float = 0.2
    """Median for a joint behind somebody or something else, if it would not be lower anyway."""
    hidden_spread: float = 1.6
    """Of the logit then: some are believed to be seen."""
    outside_confidence: float = 0.08
    """Median for a joint beyond the picture's border, likewise."""

    score: float = 0.85
    """Median for somebody tall enough in full view."""
    score_spread: float = 0.6
    """Of its logit."""
    score_tau_s: float = 0.6
    small_px: float = 45.0
    """The height in the model's pixels at which the score's logit has lost 1; at half of it 4, at double 1/4."""
    covered_logit: float = -3.5
    """Added for somebody of whom hardly anything is seen; a tenth of that if half is seen."""
    lying_logit: float = -0.8
    """Added for a trunk that lies level (assumed: no clip shows one)."""

    box_noise: float = 0.01
    """Of each edge, as a part of the height."""
    nms_iou: float = 0.7
    """Of two people whose boxes overlap more, the one with the lower score is lost."""
    min_score: float = 0.1
    """Weaker people are not reported."""
    missed: float = 0.004
    """Share of the frames in which somebody in full view is not reported at all."""
    duplicates: float = 0.004
    """A second, smaller box: per person and frame."""
    false_boxes: float = 0.01
    """Boxes without a person per frame; they flicker at a few places."""
    swaps: float = 0.004
    """Share of the time for which left and right are exchanged."""
    outside_pull: float = 0.85
    """Joints beyond the border are reported near it: this part of the way back is taken off."""
    clips_joints: bool = False
    """Whether they are put on the border if they are still beyond it."""
    false_scores: tuple[float, float] = (0.1, 0.4)
    """The least and the most; half of them are in the lowest quarter."""

    def __post_init__(self) -> None:
        for name in ("joint_noise", "confidence"):
            if len(getattr(self, name)) != len(PARTS):
                raise ValueError(f"{name} must have {len(PARTS)} values, of {', '.join(PARTS)}")


YOLO11N = PoseModel(
    name="yolo11n-pose",
    input_side=640,
    joint_noise=(0.0045, 0.0045, 0.0058, 0.0085, 0.005, 0.0052, 0.0078),
    joint_floor_px=0.4,
    noise_tau_s=0.08,
    white_share=0.1,
    confidence=(0.985, 0.99, 0.96, 0.88, 0.993, 0.988, 0.965),
    confidence_spread=0.7,
    hidden_confidence=0.18,
    outside_confidence=0.05,
    score=0.89,
    score_spread=0.35,
    score_tau_s=0.4,
    box_noise=0.0027,
    missed=0.001,
    duplicates=0.015,
    false_boxes=0.1,
    false_scores=(0.1, 0.5),
)
MULTIPOSE = PoseModel(
    name="movenet-multipose",
    input_side=1280,
    joint_noise=(0.004, 0.005, 0.006, 0.007, 0.0055, 0.0055, 0.006),
    joint_floor_px=0.5,
    noise_tau_s=0.08,
    white_share=0.1,
    bias_floor_px=1.5,
    confidence=(0.65, 0.7, 0.58, 0.45, 0.74, 0.68, 0.6),
    confidence_spread=0.5,
    self_hidden_logit=-1.2,
    hidden_face_logit=-2.0,
    hidden_confidence=0.19,
    hidden_spread=1.2,
    outside_confidence=0.12,
    score=0.57,
    score_spread=0.38,
    score_tau_s=0.4,
    small_px=60.0,
    covered_logit=-9.0,
    box_noise=0.0035,
    missed=0.02,
    duplicates=0.003,
    false_boxes=0.01,
    false_scores=(0.1, 0.25),
    nms_iou=0.6,
    outside_pull=0.9,
    clips_joints=True,
)
PERFECT = PoseModel(
    name="perfect",
    input_side=1 << 20,
    joint_noise=(0.0,) * 7,
    joint_floor_px=0.0,
    noise_tau_s=0.1,
    white_share=0.0,
    confidence=(0.99,) * 7,
    confidence_spread=0.0,
    self_hidden_logit=0.0,
    hidden_confidence=0.01,
    outside_confidence=0.01,
    score=0.95,
    score_spread=0.0,
    bias=0.0,
    bias_floor_px=0.0,
    hidden_face_logit=0.0,
    hidden_spread=0.0,
    outside_pull=0.0,
    small_px=1e-3,
    covered_logit=0.0,
    lying_logit=0.0,
    box_noise=0.0,
    nms_iou=1.01,
    missed=0.0,
    duplicates=0.0,
    false_boxes=0.0,
    swaps=0.0,
)
"""Everybody of whom anything is seen, exactly where they are: for tests of geometry and of rules."""


def in_the_dark(model: PoseModel) -> PoseModel:
    """The same model before a camera that sees a dark room with its infrared lamp (assumed: no clip shows one)."""
    return replace(
        model,
        name=f"{model.name} in the dark",
        joint_noise=tuple(1.6 * noise for noise in model.joint_noise),
        confidence=tuple(0.8 * median for median in model.confidence),
        score=0.7 * model.score,
        score_spread=1.5 * model.score_spread,
        missed=0.08,
        swaps=0.02,
    )


def without_false_boxes(model: PoseModel) -> PoseModel:
    """The same model that invents nobody and sees nobody twice."""
    return replace(model, name=f"{model.name}, no false boxes", duplicates=0.0, false_boxes=0.0)


def logit(share: F64 | float) -> F64:
    clipped = np.clip(share, 1e-4, 1 - 1e-4)
    return np.asarray(np.log(clipped / (1 - clipped)))


def from_logit(value: F64 | float) -> F64:
    return np.asarray(1 / (1 + np.exp(-np.asarray(value))))


@dataclass
class Drift:
    """Noise of unit size that is alike from one moment to the next (an Ornstein-Uhlenbeck process), of any shape."""

    rng: np.random.Generator
    shape: tuple[int, ...]
    tau_s: float
    white_share: float = 0.0
    _slow: F64 | None = field(default=None, repr=False)
    _at_s: float = field(default=0.0, repr=False)

    def at(self, t_s: float) -> F64:
        """The noise at a moment; moments come in order."""
        fresh = self.rng.standard_normal((2, *self.shape))
        if self._slow is None:
            self._slow = fresh[0]
        else:
            alike = float(np.exp(-(t_s - self._at_s) / self.tau_s))
            self._slow = self._slow * alike + fresh[0] * np.sqrt(1 - alike**2)
        self._at_s = t_s
        return np.asarray(self._slow * np.sqrt(1 - self.white_share) + fresh[1] * np.sqrt(self.white_share))


@dataclass
class Episodes:
    """On for a ``share`` of the time, in episodes of about ``lasting_s``."""

    rng: np.random.Generator
    share: float
    lasting_s: float
    _on: bool = field(default=False, repr=False)
    _at_s: float | None = field(default=None, repr=False)

    def at(self, t_s: float) -> bool:
        draw = float(self.rng.random())
        if self.share <= 0:
            return False
        if self._at_s is None:
            self._on = draw < self.share
        else:
            changed = 1 - np.exp(-(t_s - self._at_s) / (self.lasting_s * (1 - self.share)))
            if draw < changed * (1 - self.share if self._on else self.share):
                self._on = not self._on
        self._at_s = t_s
        return self._on
