"""The people that conditions look at: in the current frame, with the facts known of them from before.

Joints are flat lists of numbers, x0, y0, x1, y1, ..., in which a joint below the confidence floor is NaN. Every
comparison with NaN is false, so "surely true" and "surely false" are two plain Python expressions, and anything else is
unknown.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

NAN = math.nan

COCO_17 = (
    *("nose", "left_eye", "right_eye", "left_ear", "right_ear"),
    *("left_shoulder", "right_shoulder", "left_elbow", "right_elbow", "left_wrist", "right_wrist"),
    *("left_hip", "right_hip", "left_knee", "right_knee", "left_ankle", "right_ankle"),
)
UNSEEN: list[float] = [NAN] * (2 * len(COCO_17))
"""The joints of someone without a known joint."""

_SPEED_WINDOW_NS = 1_000_000_000
_SPEED_LEAST_NS = 400_000_000

Joints = list[float]
Point = tuple[float, float]


@dataclass(slots=True)
class Person:
    """One person of one frame, in pixels; `h` is the box's height, `x` its middle, `row` the row in the frame's arrays.

    `age`: seconds since the track was first seen; `speed`: pixels a second. For the step of the feet from their last
    seen place to here: `crossed` (line -> 1 rightward, -1 leftward, 0) and `entered` (zone -> 1 came in, -1 went out,
    0).
    """

    id: int
    row: int
    left: float
    top: float
    right: float
    bottom: float
    score: float
    confidences: list[float]
    h: float = 0.0
    x: float = 0.0
    age: float = 0.0
    speed: float = NAN
    crossed: Mapping[str, int] = field(default_factory=dict)
    entered: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.h = self.bottom - self.top
        self.x = (self.left + self.right) / 2

    @property
    def feet(self) -> Point:
        """The middle of the box's lower edge."""
        return self.x, self.bottom


@dataclass(frozen=True, slots=True)
class Scene:
    """`people`: how many are in the frame; `count`: for how many of them the rule's `who` is surely true."""

    people: int
    count: int


@dataclass(slots=True)
class Past:
    """The memory of a track: when it came, the places of its feet, its sides of lines, its zones."""

    first_ns: int
    seen_ns: int
    feet: deque[tuple[int, float, float]] = field(default_factory=deque)
    sides: dict[str, tuple[int, Point]] = field(default_factory=dict)
    inside: dict[str, bool] = field(default_factory=dict)

    def moved(self, time_ns: int, feet: Point) -> float:
        """Record the place of the feet; returns their speed over the last second, NaN while that is too short."""
        steps = self.feet
        steps.append((time_ns, *feet))
        while len(steps) > 2 and time_ns - steps[1][0] >= _SPEED_WINDOW_NS:
            steps.popleft()
        since_ns, x, y = steps[0]
        if time_ns - since_ns < _SPEED_LEAST_NS:
            return NAN
        return math.hypot(feet[0] - x, feet[1] - y) / ((time_ns - since_ns) / 1e9)


# ---- functions for conditions


def torso(k: Joints) -> float:
    """From the middle of the shoulders to the middle of the hips."""
    return math.hypot((k[10] + k[12] - k[22] - k[24]) / 2, (k[11] + k[13] - k[23] - k[25]) / 2)


def lean(k: Joints) -> float:
    """The angle in degrees between the torso and upright: 0 standing, 90 lying, 180 upside down."""
    x, y = (k[10] + k[12] - k[22] - k[24]) / 2, (k[23] + k[25] - k[11] - k[13]) / 2
    return math.degrees(math.atan2(abs(x), y)) if x or y else NAN


def angle(a: Point, b: Point, c: Point) -> float:
    """The angle in degrees at b between a and c, 0 to 180; NaN if b and another one are one point."""
    ux, uy, vx, vy = a[0] - b[0], a[1] - b[1], c[0] - b[0], c[1] - b[1]
    if not (ux or uy) or not (vx or vy):
        return NAN
    return math.degrees(math.atan2(abs(ux * vy - uy * vx), ux * vx + uy * vy))


def ratio(left: float, right: float) -> float:
    """left / right; NaN if right is 0."""
    return left / right if right else NAN


def low(*values: float) -> float:
    """The smallest; NaN if one of them is."""
    return NAN if any(map(math.isnan, values)) else min(values)


def high(*values: float) -> float:
    """The largest; NaN if one of them is."""
    return NAN if any(map(math.isnan, values)) else max(values)
