"""The people that conditions look at: in the current frame, with the facts known of them from before.

Joints are flat lists of numbers, x0, y0, x1, y1, ..., in which a joint below the confidence floor is NaN, and behind
them values that many conditions use (`with_more`). Every
comparison with NaN is false, so "surely true" and "surely false" are two plain Python expressions, and anything else is
unknown.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from camgraph.stages.rules.language.lens import Turn
from camgraph.stages.vision.skeleton import COCO_17

NAN = math.nan

PAIRED = ("eye", "ear", "shoulder", "elbow", "wrist", "hip", "knee", "ankle")
"""Joints of which there is a left and a right one."""
TORSO, LEAN, MIDDLES_AT, FRONTAL, STATURE = 34, 35, 36, 52, 53
"""Behind the joints: the places of values that many conditions use; that of the middles of the pairs is their first."""
_LEFT, _RIGHT = slice(1, None, 2), slice(2, None, 2)
"""Where the joints of the pairs are: behind the nose, left and right take turns."""
_SHOULDERS_AT, _HIPS_AT = PAIRED.index("shoulder"), PAIRED.index("hip")
_LEFT_SHOULDER, _RIGHT_SHOULDER = COCO_17.index("left_shoulder"), COCO_17.index("right_shoulder")
UNSEEN: list[float] = [NAN] * (STATURE + 1)
"""The joints of someone who is not seen."""
JOINTLESS: list[float] = [*UNSEEN[:STATURE], 0.0]
"""The joints of someone whom a model without joints found: the box alone tells how tall they are."""


def _at(name: str) -> int:
    """Where the x of a joint, or of the middle of a pair, is."""
    return 2 * COCO_17.index(name) if name in COCO_17 else MIDDLES_AT + 2 * PAIRED.index(name.removesuffix("s"))


_LIMBS_OF_HEIGHT: tuple[tuple[str, str, float], ...] = (
    *(("shoulders", "hips", 3.4), ("left_shoulder", "right_shoulder", 4.4)),
    *(("left_shoulder", "left_elbow", 4.8), ("right_shoulder", "right_elbow", 4.8)),
    *(("shoulders", "left_ear", 6.0), ("shoulders", "right_ear", 6.0)),
    *(("left_hip", "left_knee", 4.0), ("right_hip", "right_knee", 4.0)),
)
"""Two joints, and how many times their distance the body is high at least.

A limb looks short if it points to the camera, so the longest counts. The factors make it too low rather than too high:
of walkers made of numbers, seen from 1.6 to 3.5 m of height and from all sides, 99 of 100 are taller by each of them.
That of the head is lower still, because children have large heads.
"""
_AT_SHOULDERS, _AT_HIPS = _at("shoulders"), _at("hips")
_NEAR = [_at(near) for near, _, _ in _LIMBS_OF_HEIGHT]
_FAR = [_at(far) for _, far, _ in _LIMBS_OF_HEIGHT]
_FROM, _TO = (np.array([*ends, *(end + 1 for end in ends)]) for ends in (_NEAR, _FAR))
"""Where the x of their ends are, and then the y."""
_TIMES = np.array([times for _, _, times in _LIMBS_OF_HEIGHT])

LOST_AFTER_NS = 1_000_000_000
"""Who has not been seen for so long is lost, if a rule says nothing else."""
LOST_NS = 10_000_000_000
"""Who has not been seen for so long is lost no more: nothing is known of them."""
_SPEED_WINDOW_NS = 1_000_000_000
_SPEED_LEAST_NS = 400_000_000

F64 = NDArray[np.float64]
Joints = list[float]
Point = tuple[float, float]


def nobody_knows(_: str) -> float:
    """The answer to `looks_like` of somebody who is not seen, or in a photograph."""
    return NAN


class Clock:
    """The time of the present frame, for all cells of a camera.

    `two_ns`: two frame intervals. `slack_ns`: up to here two frames count as following each other, however short a
    `gap` is. `moved`: it is later than in the frame before; frames of a damaged file can have the same time.
    """

    __slots__ = ("moved", "now_ns", "slack_ns", "two_ns")

    def __init__(self) -> None:
        self.now_ns = 0
        self.moved = False
        self.two_ns = 0
        self.slack_ns = 0

    def tick(self, now_ns: int, two_ns: int, slack_ns: int) -> None:
        """The next frame."""
        self.moved = now_ns > self.now_ns
        self.now_ns = now_ns
        self.two_ns, self.slack_ns = two_ns, slack_ns


@dataclass(slots=True)
class Person:
    """One person of one frame, in pixels; `h` is the box's height, `x` its middle, `row` the row in the frame's arrays.

    Under a camera that looks down, joints are as a level one would see them, and `turn` is how they were made so.

    `age`: seconds since the track was first seen; `speed`: pixels a second. For the step of the feet from their last
    seen place to here: `crossed` (line -> 1 rightward, -1 leftward, 0) and `entered` (zone -> 1 came in, -1 went out,
    0). `inside`: zone -> whether the feet are in it. `lost_ns`: for how long nobody has seen them; 0 while that may be
    chance, -1 of those who are seen. `left_picture`: of those who are not, whether they left by the border.

    `labels`: class of a classifier -> its score. `score_of`: how much they look like one of `posture.CLASSES`.

    Of the lost, and in a photograph, facts that need the past or the present are unknown: NaN, or not in the mapping.
    """

    id: int
    row: int
    left: float
    top: float
    right: float
    bottom: float
    score: float
    confidences: list[float]
    inside: Mapping[str, bool] = field(default_factory=dict)
    labels: Mapping[str, float] = field(default_factory=dict)
    score_of: Callable[[str], float] = nobody_knows
    entered: Mapping[str, int] = field(default_factory=dict)
    crossed: Mapping[str, int] = field(default_factory=dict)
    age: float = NAN
    speed: float = NAN
    lost_ns: float = NAN
    left_picture: bool = False
    turn: Turn | None = None
    h: float = field(init=False)
    x: float = field(init=False)

    def __post_init__(self) -> None:
        self.h = self.bottom - self.top
        self.x = (self.left + self.right) / 2

    def seen_at(self, x: float, y: float) -> Point:
        """Where a place of the upright person is in the picture."""
        return (x, y) if self.turn is None else self.turn.back(x, y)

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
    inside: Mapping[str, bool] = field(default_factory=dict)

    @property
    def velocity(self) -> Point:
        """Of the feet over the last second, in pixels a second; 0 while that is too short."""
        (since_ns, x, y), (now_ns, now_x, now_y) = self.feet[0], self.feet[-1]
        seconds = (now_ns - since_ns) / 1e9
        return ((now_x - x) / seconds, (now_y - y) / seconds) if seconds else (0.0, 0.0)

    def moved(self, time_ns: int, x: float, y: float) -> float:
        """Record the place of the feet; returns their speed over the last second, NaN while that is too short."""
        steps = self.feet
        steps.append((time_ns, x, y))
        while len(steps) > 2 and time_ns - steps[1][0] >= _SPEED_WINDOW_NS:
            steps.popleft()
        since_ns, x_before, y_before = steps[0]
        if time_ns - since_ns < _SPEED_LEAST_NS:
            return NAN
        return math.hypot(x - x_before, y - y_before) / ((time_ns - since_ns) / 1e9)


@np.errstate(all="ignore")  # a place of a joint may be any number
def with_more(places: F64) -> F64:
    """The joints (N, 17, 2) of each person in a row (N, 54), with the values behind them.

    torso: from the middle of the shoulders to that of the hips, in pixels. lean: the angle in degrees between the torso
    and upright, 0 standing, 90 lying, 180 upside down. The others follow from these, by `add_build`.
    """
    people = len(places)
    found = np.empty((people, len(UNSEEN)))
    found[:, :TORSO] = places.reshape(people, TORSO)
    middles = found[:, MIDDLES_AT:FRONTAL].reshape(people, len(PAIRED), 2)
    np.add(places[:, _LEFT], places[:, _RIGHT], out=middles)
    middles *= 0.5
    x, y = (middles[:, _SHOULDERS_AT] - middles[:, _HIPS_AT]).T
    torso = found[:, TORSO] = np.hypot(x, y)
    # Of no length, or of one without end, a torso has no direction: then torso / torso is NaN, else 1.
    found[:, LEAN] = np.degrees(np.arctan2(np.abs(x), -y)) * (torso / torso)
    return found


@np.errstate(all="ignore")
def add_build(found: F64) -> None:
    """Fill in the last values of the rows of `with_more`.

    frontal: how far apart the shoulders are across the torso, in torsos, positive if the chest is towards the camera,
    negative if the back is. stature: how tall the person is at least, by the limbs that are known, in pixels; NaN if
    none is.
    """
    x, y = (found[:, _AT_SHOULDERS : _AT_SHOULDERS + 2] - found[:, _AT_HIPS : _AT_HIPS + 2]).T
    left, right = 2 * _LEFT_SHOULDER, 2 * _RIGHT_SHOULDER
    across_x, across_y = (found[:, left : left + 2] - found[:, right : right + 2]).T
    found[:, FRONTAL] = (across_y * x - across_x * y) / found[:, TORSO] ** 2
    limbs = found.take(_FROM, axis=1) - found.take(_TO, axis=1)
    lengths = np.hypot(limbs[:, : len(_TIMES)], limbs[:, len(_TIMES) :])
    np.fmax.reduce(lengths * _TIMES, axis=1, out=found[:, STATURE])


# ---- functions for conditions


def above(k: Joints, p: Point, q: Point) -> float:
    """How far p is from q along the torso, towards the head; negative towards the feet."""
    x, y = k[10] + k[12] - k[22] - k[24], k[11] + k[13] - k[23] - k[25]
    size = math.hypot(x, y)
    return ((p[0] - q[0]) * x + (p[1] - q[1]) * y) / size if size else NAN


def beside(k: Joints, p: Point, q: Point) -> float:
    """How far p is from q across the torso, to either side."""
    x, y = k[10] + k[12] - k[22] - k[24], k[11] + k[13] - k[23] - k[25]
    size = math.hypot(x, y)
    return abs((p[0] - q[0]) * y - (p[1] - q[1]) * x) / size if size else NAN


def beyond(k: Joints, p: Person, g: Frame, joint: int, side: str) -> bool | None:
    """Whether a joint lies beyond a side of the picture ("" for any); None if it is not known and may be hidden.

    A joint that is not known is beyond the border if its limb points there: as far again as the limb's other half.
    Legs, and the head, are also beyond the border if the person's box ends at it.
    """
    x, y = k[2 * joint], k[2 * joint + 1]
    if x == x:  # noqa: PLR0124 - NaN
        return _outside(*p.seen_at(x, y), g, side)
    for near, far, share in _LIMBS.get(joint, ()):
        ax, ay = _middle(k, near)
        bx, by = _middle(k, far)
        if _outside(*p.seen_at(ax + (ax - bx) * share, ay + (ay - by) * share), g, side):
            return True
    at_the_border = _CUT_OFF * g.height
    if side in ("", "bottom") and joint >= _FIRST_OF_LEGS and p.bottom >= g.height - at_the_border:
        return True
    if side in ("", "top") and joint < _FIRST_OF_ARMS and p.top <= at_the_border:
        return True
    return None


class Frame(Protocol):
    """The size of a frame in pixels."""

    @property
    def width(self) -> int: ...
    @property
    def height(self) -> int: ...


_CUT_OFF = 0.01
"""Of the frame's height: a box that ends so near to the border ends at it."""
_FIRST_OF_ARMS, _FIRST_OF_LEGS = 5, 11
_SHOULDERS, _HIPS = (5, 6), (11, 12)
_Limb = tuple[tuple[int, ...], tuple[int, ...], float]
_LIMBS: dict[int, tuple[_Limb, ...]] = {
    **dict.fromkeys(range(_FIRST_OF_ARMS), ((_SHOULDERS, _HIPS, 0.5),)),
    **{wrist: (((wrist - 2,), (wrist - 4,), 0.9),) for wrist in (9, 10)},
    **{knee: (((knee - 2,), (knee - 8,), 0.8),) for knee in (13, 14)},
    **{ankle: (((ankle - 2,), (ankle - 4,), 0.9), ((ankle - 4,), (ankle - 10,), 0.8)) for ankle in (15, 16)},
}
"""Joint -> the two ends of the limb before it (the middles of joints), and how far it goes on, in its lengths."""


def _middle(k: Joints, of: tuple[int, ...]) -> Point:
    return sum(k[2 * joint] for joint in of) / len(of), sum(k[2 * joint + 1] for joint in of) / len(of)


def _outside(x: float, y: float, g: Frame, side: str) -> bool:
    """Whether a place is beyond a side of the frame; False for NaN."""
    over = {"top": y < 0, "bottom": y > g.height, "left": x < 0, "right": x > g.width}
    return over[side] if side else any(over.values())


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
    for value in values:
        if value != value:  # noqa: PLR0124 - NaN
            return NAN
    return min(values)


def high(*values: float) -> float:
    """The largest; NaN if one of them is."""
    for value in values:
        if value != value:  # noqa: PLR0124 - NaN
            return NAN
    return max(values)
