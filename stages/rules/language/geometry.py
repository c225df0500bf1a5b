"""Zones and lines in pixels of one frame."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from camgraph.stages.rules.language.lens import Lens
from camgraph.stages.rules.language.people import Point
from camgraph.stages.vision.posture import Network

Zone = Callable[[float, float], bool]
"""Whether a place is in the zone; False for NaN."""


@dataclass(frozen=True, slots=True)
class Line:
    """From `start` to `end`. Who looks that way has the positive side to the right."""

    start: Point
    end: Point
    _length: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        (ax, ay), (bx, by) = self.start, self.end
        object.__setattr__(self, "_length", math.hypot(bx - ax, by - ay))

    def distance(self, x: float, y: float) -> float:
        """How far a place is from the (endless) line; positive to its right."""
        (ax, ay), (bx, by) = self.start, self.end
        return ((bx - ax) * (y - ay) - (by - ay) * (x - ax)) / self._length

    def met_by(self, one: Point, other: Point) -> bool:
        """Whether the way from one place to another, on the other side, goes through the line between its ends."""
        way = _turn(one, other, self.start), _turn(one, other, self.end)
        return min(way) <= 0 <= max(way) and way != (0, 0)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The surroundings that one camera's conditions use: the frame's size in pixels, its zones and its lines.

    `running`: rule -> the incidents of it that are running, each with the track ids of its people.
    """

    width: int
    height: int
    zones: Mapping[str, Zone] = field(default_factory=dict)
    lines: Mapping[str, Line] = field(default_factory=dict)
    counters: Mapping[str, Any] = field(default_factory=dict)
    """Counter -> its counts (`counters.Counter`)."""
    running: Mapping[str, Mapping[tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)
    lens: Lens | Literal["learn"] | None = None
    """How the camera looks down; by default it looks level. `learn`: from people who walk."""
    network: Network | None = None
    """Answers `looks_like`; None if no rule asks."""

    def runs(self, rule: str, ids: tuple[int, ...]) -> bool:
        """Whether a rule has a running incident of these people, of the scene, or of others with or among them."""
        own, running = set(ids), self.running.get(rule, {})
        return any(own.issuperset(others) or own.issubset(others) for others in running.values())


def _turn(one: Point, other: Point, third: Point) -> float:
    return (other[0] - one[0]) * (third[1] - one[1]) - (other[1] - one[1]) * (third[0] - one[0])


def zone_of(corners: Sequence[Point]) -> Zone:
    """The inside of a polygon of three or more corners (even-odd rule; a place on a left or upper edge is inside)."""
    edges = [
        (ay, by, ax, (bx - ax) / (by - ay))
        for (ax, ay), (bx, by) in zip(corners, [*corners[1:], corners[0]], strict=True)
        if ay != by
    ]

    left, right = min(x for x, _ in corners), max(x for x, _ in corners)
    top, bottom = min(y for _, y in corners), max(y for _, y in corners)

    def inside(x: float, y: float) -> bool:
        if not (left <= x <= right and top <= y <= bottom):
            return False
        crossings = False
        for ay, by, ax, slope in edges:
            if (ay <= y) != (by <= y) and x >= ax + (y - ay) * slope:
                crossings = not crossings
        return crossings

    return inside


def beyond_border(corners: Sequence[Point], size: tuple[int, int]) -> list[Point]:
    """Corners in pixels; those on the right or lower border of a frame of (width, height) lie a pixel beyond it.

    Boxes end at the border, so the feet of people whom it cuts lie on it, and a zone that reaches it has them inside.
    """
    width, height = size
    return [(x + (x == width), y + (y == height)) for x, y in corners]


def in_pixels(points: Sequence[Point], size: tuple[int, int]) -> list[Point]:
    """Points of a definition in pixels of a frame of (width, height): fractions if none is above 1, else unchanged."""
    if is_fraction(points):
        return [(x * size[0], y * size[1]) for x, y in points]
    return [(float(x), float(y)) for x, y in points]


def is_fraction(points: Sequence[Point]) -> bool:
    return all(0 <= value <= 1 for point in points for value in point)


def outside(point: Point, size: tuple[int, int]) -> bool:
    """Whether a place in pixels lies beyond the edges of a frame of (width, height)."""
    return not (0 <= point[0] <= size[0] and 0 <= point[1] <= size[1])


def polygon_problem(corners: Sequence[Point]) -> str | None:
    """The mistake in a polygon, or None."""
    if _flat(corners):
        return "the corners lie on one line: a zone has an inside"
    sides = list(zip(corners, [*corners[1:], corners[0]], strict=True))
    for i, one in enumerate(sides):
        for j in range(i + 2, len(sides)):
            if (i, j) != (0, len(sides) - 1) and _crossing(one, sides[j]):
                return f"the sides after corner {i + 1} and corner {j + 1} cross: give the corners in order"
    return None


def _flat(corners: Sequence[Point]) -> bool:
    return all(abs(_turn(corners[0], one, other)) < 1e-9 for one in corners[1:] for other in corners[1:])


def _crossing(one: tuple[Point, Point], other: tuple[Point, Point]) -> bool:
    a, b, c, d = *one, *other
    return _turn(a, b, c) * _turn(a, b, d) < 0 and _turn(c, d, a) * _turn(c, d, b) < 0
