"""A pose as a row of numbers, and postures in words: a few angles in degrees by name.

    x, y, yaw           the place in metres and where the body faces (radians, 0 along the world's x, to the left)
    planted             1: the place is between the feet, 0: it is the pelvis (and anything between)
    lift                metres above the floor; at 0 the lowest part of the body touches it
    pitch, roll, twist  of the pelvis: forward, to the left, and about the body's long axis to the left
    bend, lean, turn    of the back, from the pelvis to the neck: forward, to the left, to the left about its axis
    nod, tilt, look     of the head, likewise
    arm_forward, arm_outward, arm_twist, elbow           of each side: the upper arm from hanging down, the forearm's
                                                         direction about it (outwards), how far the elbow is bent
    leg_forward, leg_outward, leg_twist, knee, foot      of each side; the foot stays level as far as an ankle goes,
                                                         ``foot`` is added (toes down)

The swing of an arm or leg is a rotation about one level axis; forward and outward are its two parts, so that an arm
held out at 45 degrees has both.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from camgraph.tools.scenes.animator.body import Side

F64 = NDArray[np.float64]
Posture = Mapping[str, float]
"""Angles in degrees by name; a name without `_left` or `_right` means both sides. The rest is as when standing."""

SIDES: tuple[Side, Side] = ("left", "right")
LIMB_FIELDS = (
    *("arm_forward", "arm_outward", "arm_twist", "elbow"),
    *("leg_forward", "leg_outward", "leg_twist", "knee", "foot"),
)
FIELDS = (
    *("x", "y", "lift", "planted", "yaw", "pitch", "roll", "twist"),
    *("bend", "lean", "turn", "nod", "tilt", "look"),
    *(f"{name}_{side}" for side in SIDES for name in LIMB_FIELDS),
)
COLUMN = {name: column for column, name in enumerate(FIELDS)}
METRES = ("x", "y", "lift", "planted")
PLACE = ("x", "y", "yaw")

STANDING: Posture = {
    **{"arm_forward": 3, "arm_outward": 9, "arm_twist": -20, "elbow": 14},
    **{"leg_forward": 2, "leg_outward": 2, "leg_twist": 8, "knee": 3},
    **{"pitch": 1, "bend": 4, "nod": -3, "planted": 1},
}


def columns(*names: str) -> list[int]:
    """The columns of fields; a limb's field without a side means both."""
    found = []
    for name in names:
        found += [COLUMN[name]] if name in COLUMN else [COLUMN[f"{name}_{side}"] for side in SIDES]
    return found


def row_of(posture: Posture, base: Posture = STANDING) -> F64:
    """(32,) a posture in radians and metres, at the origin; fields that it leaves out are those of ``base``."""
    row = np.zeros(len(FIELDS))
    for fields in (base, posture):
        for name, value in fields.items():
            row[columns(name)] = value if name in METRES else np.radians(value)
    return row


def mirrored_posture(posture: Posture) -> dict[str, float]:
    """The same to the other side: left and right changed, turns and leans the other way."""
    swapped: dict[str, float] = {}
    for name, value in posture.items():
        stem, _, side = name.rpartition("_")
        if side in SIDES:
            swapped[f"{stem}_{'right' if side == 'left' else 'left'}"] = value
        else:
            swapped[name] = -value if name in ("y", "yaw", "roll", "twist", "lean", "turn", "tilt", "look") else value
    return swapped
