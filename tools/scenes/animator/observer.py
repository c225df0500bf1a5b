"""What a pose model reports of one frame, made from what is truly there (`glimpse.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from camgraph.tools.scenes.animator.body import KEYPOINTS
from camgraph.tools.scenes.animator.camera import Camera
from camgraph.tools.scenes.animator.glimpse import Glimpse
from camgraph.tools.scenes.animator.pose_model import (
    BIAS_TAU_S,
    PART_OF,
    SWAPPED,
    Drift,
    Episodes,
    PoseModel,
    from_logit,
    logit,
)

F64 = NDArray[np.float64]

LEAST_SEEN = 0.04
"""Nobody is found of whom less is seen."""
PLACES = 6
"""How many places of the picture look like a person now and then."""
COVERED_POWER = 3.2
"""Half a person scores hardly lower than a whole one, a tenth of them much lower."""
HIDDEN_PULL = 0.5
"""A joint that nobody can see is guessed half-way between its place and the box of what is seen."""


@dataclass(frozen=True)
class Detection:
    """One reported person; ``number`` is the actor's, or -1 if the box has nobody of its own."""

    number: int
    box: F64
    score: float
    keypoints: F64
    """(17, 3)"""


@dataclass
class _Manner:
    """The noise of one person, which goes on from frame to frame."""

    joints: Drift
    bias: Drift
    confidences: Drift
    score: Drift
    box: Drift
    missed: Episodes
    swapped: Episodes
    twice: Episodes


@dataclass
class Observer:
    """One model before one camera. Frames are given in order; the result is a function of the seed and of these."""

    model: PoseModel
    camera: Camera
    seed: int
    _manners: dict[int, _Manner] = field(default_factory=dict, repr=False)
    _false: list[tuple[Episodes, Drift, F64]] = field(default_factory=list, repr=False)

    @property
    def shrunk(self) -> float:
        """Pixels of the model for each of the camera."""
        return min(1.0, self.model.input_side / max(self.camera.size))

    def report(self, t_s: float, people: Sequence[Glimpse]) -> list[Detection]:
        """The detections of one frame, the highest score first."""
        found: list[Detection] = []
        for person in people:
            found += self._person(t_s, person)
        found += self._nobody(t_s)
        found = [one for one in found if one.score >= self.model.min_score]
        found.sort(key=lambda one: -one.score)
        kept: list[Detection] = []
        for one in found:
            if all(_iou(one.box, other.box) <= self.model.nms_iou for other in kept):
                kept.append(one)
        return kept

    def _person(self, t_s: float, person: Glimpse) -> list[Detection]:
        if person.number not in self._manners:
            self._manners[person.number] = self._new_manner(person.number)
        manner = self._manners[person.number]
        joints, confidences = (manner.joints.at(t_s), manner.bias.at(t_s)), manner.confidences.at(t_s)
        score_noise, box_noise = float(manner.score.at(t_s)), manner.box.at(t_s)
        missed, swapped, twice = manner.missed.at(t_s), manner.swapped.at(t_s), manner.twice.at(t_s)
        if missed or person.seen < LEAST_SEEN:
            return []
        score = self._score(person, score_noise)
        box = self._box(person, box_noise)
        keypoints = self._keypoints(person, joints, confidences, box)
        if swapped:
            keypoints = keypoints[SWAPPED]
        one = Detection(person.number, box, score, keypoints)
        return [one, self._second(one)] if twice else [one]

    def _new_manner(self, number: int) -> _Manner:
        model = self.model
        rngs = [np.random.default_rng([self.seed, 17, number, part]) for part in range(8)]
        tau, white = model.noise_tau_s, model.white_share
        return _Manner(
            Drift(rngs[0], (KEYPOINTS, 2), tau, white),
            Drift(rngs[7], (KEYPOINTS, 2), BIAS_TAU_S),
            Drift(rngs[1], (KEYPOINTS + 1,), 0.4, 0.3),
            Drift(rngs[2], (), model.score_tau_s, 0.25),
            Drift(rngs[3], (4,), tau, white),
            Episodes(rngs[4], model.missed, 0.1),
            Episodes(rngs[5], model.swaps, 0.15),
            Episodes(rngs[6], model.duplicates, 0.15),
        )

    def _score(self, person: Glimpse, noise: float) -> float:
        model = self.model
        value = logit(model.score) + noise * model.score_spread
        value = value - self._smallness(person) + model.covered_logit * (1 - person.seen) ** COVERED_POWER
        value = value + model.lying_logit * person.level**2
        return float(from_logit(value))

    def _smallness(self, person: Glimpse) -> float:
        """How much the logits of somebody's score and joints lose because they are far away."""
        return (self.model.small_px / max(1e-3, person.size_px * self.shrunk)) ** 2

    def _box(self, person: Glimpse, noise: F64) -> F64:
        limits = np.tile(np.array(self.camera.size, float), 2)
        edge = np.maximum(self.model.box_noise * person.size_px, 0.5 * self.model.joint_floor_px / self.shrunk)
        box = np.clip(person.seen_box + noise * edge, 0, limits)
        return np.asarray(np.concatenate([np.minimum(box[:2], box[2:] - 1e-3), np.maximum(box[2:], box[:2] + 1e-3)]))

    def _keypoints(self, person: Glimpse, noise: tuple[F64, F64], confidence_noise: F64, box: F64) -> F64:
        model = self.model
        true = np.where(np.isfinite(person.keypoints), person.keypoints, box.reshape(2, 2).mean(axis=0))
        guess = np.clip(true, box[:2], box[2:])
        covered, beyond = ~person.free, ~person.inside
        pull = np.where(beyond, model.outside_pull, np.where(covered, HIDDEN_PULL, 0.0))
        true = true + (guess - true) * pull[:, None]
        size = np.array(model.joint_noise)[PART_OF] * person.size_px
        size = np.maximum(size, model.joint_floor_px / self.shrunk)
        bias = max(model.bias * person.size_px, model.bias_floor_px / self.shrunk)
        worse = np.where(covered | beyond, model.hidden_noise, np.where(person.facing, 1.0, 1.6))[:, None]
        points = true + (noise[0] * size[:, None] + noise[1] * bias) * worse
        if model.clips_joints:
            points = np.clip(points, 0, np.array(self.camera.size, float))
        value = logit(np.array(model.confidence)[PART_OF])
        common = 0.6 * confidence_noise[-1] + 0.8 * confidence_noise[:-1]
        value = value + np.where(PART_OF == 0, model.hidden_face_logit, model.self_hidden_logit) * ~person.facing
        value = value - self._smallness(person)
        for hidden, median in ((covered, model.hidden_confidence), (beyond, model.outside_confidence)):
            value = np.where(hidden, np.minimum(value, logit(median)), value)
        value = value + np.where(covered, model.hidden_spread, model.confidence_spread) * common
        return np.column_stack([points, from_logit(value)])

    def _second(self, one: Detection) -> Detection:
        """The upper or the lower part of somebody, found as a person of its own."""
        x1, y1, x2, y2 = one.box
        upper = one.number % 2 == 0
        box = np.array([x1, y1, x2, y1 + 0.6 * (y2 - y1)] if upper else [x1, y1 + 0.35 * (y2 - y1), x2, y2])
        keypoints = one.keypoints.copy()
        outside = (keypoints[:, 1] < box[1]) | (keypoints[:, 1] > box[3])
        keypoints[outside, 2] *= 0.2
        keypoints[:, :2] = np.clip(keypoints[:, :2], box[:2], box[2:])
        return Detection(-1, box, one.score * 0.55, keypoints)

    def _nobody(self, t_s: float) -> list[Detection]:
        if not self._false:
            self._false = [self._false_place(place) for place in range(PLACES)]
        found = []
        for episodes, drift, shape in self._false:
            noise = drift.at(t_s)
            if episodes.at(t_s):
                found.append(self._false_person(shape, noise))
        return found

    def _false_place(self, place: int) -> tuple[Episodes, Drift, F64]:
        rng = np.random.default_rng([self.seed, 23, place])
        width, height = self.camera.size
        tall = height * float(np.exp(rng.uniform(np.log(0.06), np.log(0.45))))
        shape = np.array([rng.uniform(0, width), rng.uniform(0.2, 1.0) * height, tall * rng.uniform(0.3, 0.7), tall])
        share = min(0.9, self.model.false_boxes / PLACES)
        return Episodes(rng, share, 0.4), Drift(rng, (KEYPOINTS * 3 + 5,), 0.3, 0.5), shape

    def _false_person(self, shape: F64, noise: F64) -> Detection:
        x, bottom, width, height = shape
        box = np.array([x - width / 2, bottom - height, x + width / 2, bottom])
        box = np.clip(box + noise[:4] * 0.04 * height, 0, np.tile(np.array(self.camera.size, float), 2))
        box[2:] = np.maximum(box[2:], box[:2] + 1)
        low, high = self.model.false_scores
        score = low + (high - low) * float(from_logit(noise[4] * 1.2 - 1.1))
        rest = noise[5:].reshape(KEYPOINTS, 3)
        share = np.clip(0.5 + 0.2 * rest[:, :2], 0, 1)
        points = box[:2] + share * (box[2:] - box[:2])
        return Detection(-1, box, score, np.column_stack([points, from_logit(rest[:, 2] - 1.0)]))


def _iou(first: F64, second: F64) -> float:
    overlap = np.clip(np.minimum(first[2:], second[2:]) - np.maximum(first[:2], second[:2]), 0, None).prod()
    both = (first[2:] - first[:2]).prod() + (second[2:] - second[:2]).prod()
    return float(overlap / max(1e-9, both - overlap))
