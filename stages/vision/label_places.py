"""Finds places for labels, so that none covers another. Pixels of the picture, x to the right, y down."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

_STEPS = 6
"""How many heights of a label it may be moved up or down; one that finds no place stands where it belongs."""


class Plate(NamedTuple):
    """A rectangle; right and bottom are the first pixels outside."""

    left: int
    top: int
    right: int
    bottom: int

    def meets(self, other: Plate) -> bool:
        """Whether they share a pixel."""
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


class LabelPlaces:
    """The places of one picture: those that are taken, and the next free one."""

    def __init__(self, width: int, height: int, taken: Iterable[Plate] = ()) -> None:
        self._width, self._height = width, height
        self._taken = list(taken)

    def take(self, left: float, top: float, width: int, height: int) -> Plate:
        """The free place nearest above or below (left, top) that lies inside the picture; it is taken then."""
        first = within(top, height, self._height)
        wanted = [self._inside(left, first + shift * height, width, height) for shift in _shifts()]
        free = (plate for plate in wanted if not any(map(plate.meets, self._taken)))
        plate = next(free, wanted[0])
        self._taken.append(plate)
        return plate

    def _inside(self, left: float, top: float, width: int, height: int) -> Plate:
        x, y = within(left, width, self._width), within(top, height, self._height)
        return Plate(x, y, x + width, y + height)


def _shifts() -> Iterator[int]:
    """0, -1, 1, -2, 2, ...: upwards first, because below is the label's owner."""
    yield 0
    for step in range(1, _STEPS + 1):
        yield from (-step, step)


def within(start: float, length: int, limit: int) -> int:
    """The start of a span of ``length`` that lies within [0, ``limit``), as near to ``start`` as possible."""
    return round(max(0.0, min(start, float(limit - length))))
