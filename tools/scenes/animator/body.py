"""A person's body: the nodes of the skeleton, the lengths of the limbs and how thick each part is.

Lengths are fractions of the height after Drillis and Contini (1966) as printed in Winter, "Biomechanics and Motor
Control of Human Movement", 4th edition, figure 4.1: ankle 0.039, knee 0.285, hip 0.530, shoulder 0.818, eye 0.936 above
the floor; upper arm 0.186, forearm 0.146, hand 0.108, foot 0.152. The widths there are those of the whole body, so the
joints lie further in: half of 0.259 for the shoulders less the deltoid, half of 0.191 for the hips less the trochanter.
Heights are those of adults in NHANES 2015-2018 (Fryar et al. 2021): men 1.754 m, women 1.613 m, about 0.07 m each way.
The head hardly grows with the height: breadth 0.15 m, between the pupils 0.063 m (Gordon et al. 2014, ANSUR II).

A body's own axes are x forward, y to its left, z up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
Side = Literal["left", "right"]

NODES = (
    *("nose", "left_eye", "right_eye", "left_ear", "right_ear"),
    *("left_shoulder", "right_shoulder", "left_elbow", "right_elbow", "left_wrist", "right_wrist"),
    *("left_hip", "right_hip", "left_knee", "right_knee", "left_ankle", "right_ankle"),
    *("pelvis", "belly", "neck", "head", "crown"),
    *("left_hand", "right_hand", "left_heel", "right_heel", "left_toe", "right_toe"),
)
"""The first 17 are the keypoints of COCO in their order."""
KEYPOINTS = 17
NODE = {name: row for row, name in enumerate(NODES)}

BONES = (
    *(("pelvis", "belly"), ("belly", "neck"), ("neck", "head"), ("head", "crown"), ("head", "nose")),
    *(("head", "left_eye"), ("head", "right_eye"), ("head", "left_ear"), ("head", "right_ear")),
    *((f"{a}{side}_{b}", f"{side}_{c}") for side in ("left", "right") for a, b, c in (("", "shoulder", "elbow"),)),
    *((f"{side}_{a}", f"{side}_{b}") for side in ("left", "right") for a, b in (("elbow", "wrist"), ("wrist", "hand"))),
    *(("neck", f"{side}_shoulder") for side in ("left", "right")),
    *(("pelvis", f"{side}_hip") for side in ("left", "right")),
    *((f"{side}_{a}", f"{side}_{b}") for side in ("left", "right") for a, b in (("hip", "knee"), ("knee", "ankle"))),
    *((f"{side}_ankle", f"{side}_{end}") for side in ("left", "right") for end in ("heel", "toe")),
)
"""Pairs of nodes whose distance never changes."""

THICKNESS_M = {
    **{"nose": 0.02, "eye": 0.02, "ear": 0.02, "head": 0.095, "crown": 0.02, "neck": 0.07},
    **{"shoulder": 0.06, "elbow": 0.045, "wrist": 0.033, "hand": 0.03},
    **{"pelvis": 0.125, "belly": 0.12, "hip": 0.085, "knee": 0.06, "ankle": 0.045, "heel": 0.02, "toe": 0.025},
}
"""Half the thickness of the body around a node."""


@dataclass(frozen=True)
class Body:
    """Lengths in metres. ``build``: 1 for ordinary weight; more of it widens the body and leaves the limbs as long."""

    height: float = 1.72
    legs: float = 1.0
    arms: float = 1.0
    build: float = 1.0
    thickness: F64 = field(init=False, repr=False, compare=False)
    """(28,) half the thickness around each node."""

    def __post_init__(self) -> None:
        rows = [THICKNESS_M[name.rsplit("_", maxsplit=1)[-1]] for name in NODES]
        object.__setattr__(self, "thickness", np.array(rows) * self.build)

    @property
    def thigh(self) -> float:
        return 0.245 * self.height * self.legs

    @property
    def shank(self) -> float:
        return 0.246 * self.height * self.legs

    @property
    def ankle_height(self) -> float:
        return 0.039 * self.height

    @property
    def leg(self) -> float:
        """From the hip to the sole."""
        return self.thigh + self.shank + self.ankle_height

    @property
    def heel_back(self) -> float:
        """From below the ankle to the heel."""
        return 0.035 * self.height

    @property
    def toe_ahead(self) -> float:
        """From below the ankle to the tip of the foot; with the heel it is the foot's 0.152."""
        return 0.117 * self.height

    @property
    def half_hips(self) -> float:
        return 0.058 * self.height

    @property
    def lower_trunk(self) -> float:
        return (0.818 - 0.530) * self.height * 0.45 + (1 - self.legs) * 0.25 * self.height

    @property
    def upper_trunk(self) -> float:
        return (0.818 - 0.530) * self.height * 0.55 + (1 - self.legs) * 0.24 * self.height

    @property
    def half_shoulders(self) -> float:
        return 0.107 * self.height

    @property
    def neck(self) -> float:
        """From between the shoulders to between the ears."""
        return 0.112 * self.height

    @property
    def upper_arm(self) -> float:
        return 0.186 * self.height * self.arms

    @property
    def forearm(self) -> float:
        return 0.146 * self.height * self.arms

    @property
    def hand(self) -> float:
        """From the wrist to the middle of loosely bent fingers."""
        return 0.07 * self.height

    def face(self) -> dict[str, tuple[float, float, float]]:
        """Points of the head from between the ears: x forward, y left, z up."""
        grown = (self.height / 1.7) ** 0.4
        points = {
            "nose": (0.112, 0.0, -0.022),
            **{"left_eye": (0.086, 0.032, 0.016), "right_eye": (0.086, -0.032, 0.016)},
            **{"left_ear": (0.0, 0.075, 0.0), "right_ear": (0.0, -0.075, 0.0)},
            "crown": (0.0, 0.0, 0.12),
        }
        return {name: (x * grown, y * grown, z * grown) for name, (x, y, z) in points.items()}


def any_body(rng: np.random.Generator) -> Body:
    """Somebody grown up: a man or a woman, of ordinary spread in height, proportions and weight."""
    mean = 1.754 if rng.random() < 0.5 else 1.613
    height = float(np.clip(rng.normal(mean, 0.07), mean - 0.19, mean + 0.19))
    legs, arms = (float(np.clip(rng.normal(1.0, 0.025), 0.94, 1.06)) for _ in range(2))
    return Body(height, legs, arms, float(np.clip(rng.normal(1.05, 0.12), 0.85, 1.45)))
