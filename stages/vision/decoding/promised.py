"""The promises of a format about its outputs, and the error if outputs break them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

FLOATS = "f"
"""NumPy's kind of boxes, scores and joints: whole numbers are a quantized model's own, in a scale of its own."""
NUMBERS = "fiub"
"""NumPy's kinds of arrays that hold real numbers, such as counts and classes."""


class WrongShape(ValueError):
    """An output has other axes, sides or types than its format promises, or counts rows that are not there.

    `output`: which one, by its place in the format's order.
    """

    def __init__(self, output: int, text: str) -> None:
        self.output = output
        super().__init__(text)


def check_number(outputs: Sequence[NDArray[Any]], number: int) -> None:
    """Raises WrongShape if there are more or fewer outputs."""
    if len(outputs) != number:
        raise WrongShape(0, f"expected {number} outputs, got {len(outputs)}")


def shaped(
    outputs: Sequence[NDArray[Any]], place: int, shape: tuple[int | None, ...], kinds: str = FLOATS
) -> NDArray[Any]:
    """One of the outputs, if it is of one of these ``kinds`` and has this shape; None stands for any side.

    Raises WrongShape.
    """
    array = outputs[place]
    fits = array.ndim == len(shape) and all(
        expected in (None, side) for expected, side in zip(shape, array.shape, strict=True)
    )
    if not fits or array.dtype.kind not in kinds:
        sides = ", ".join("any" if side is None else str(side) for side in shape)
        wanted = "floats" if kinds == FLOATS else "numbers"
        raise WrongShape(place, f"expected {wanted} of shape ({sides}) for each picture, got {_in_words(array)}")
    return array


def counted(outputs: Sequence[NDArray[Any]], place: int, rows: int) -> int:
    """How many of so many ``rows`` an output says are used: one number. Raises WrongShape."""
    array = outputs[place]
    if array.size != 1 or array.dtype.kind not in NUMBERS:
        raise WrongShape(place, f"expected one count for each picture, got {_in_words(array)}")
    count = array.reshape(-1)[0]
    # A NaN is neither.
    if not (0 <= count <= rows):
        raise WrongShape(place, f"expected a count from 0 to the {rows} rows there are, got {count}")
    return int(count)


def numbers_of(classes: NDArray[Any]) -> NDArray[np.int64]:
    """Class numbers that a model may give as floats; -1 for values that are none."""
    known = (classes > -0.5) & (classes < np.iinfo(np.int32).max)
    return np.where(known, np.rint(classes), -1).astype(np.int64)


def _in_words(array: NDArray[Any]) -> str:
    return f"{array.dtype} of {array.shape}"
