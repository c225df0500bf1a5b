"""How many rows a model is run with, where each new number of rows is expensive. Pure.

batch_sizes 1, 2, 4, 8      3 pictures -> a run of 4, one of them filled up
                           11 pictures -> a run of 8, and one of 4 with three of its own
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Run(NamedTuple):
    """One run: its own pictures are those from ``first`` on, ``own`` of them; ``rows`` is what the model sees."""

    first: int
    own: int
    rows: int


def runs_of(pictures: int, *, most: int, sizes: Sequence[int] = ()) -> Iterator[Run]:
    """The runs for so many pictures: at most ``most`` rows each, or, where there are ``sizes`` (ascending), as many as
    one of these.
    """
    largest = sizes[-1] if sizes else most
    for first in range(0, pictures, largest):
        count = min(largest, pictures - first)
        yield Run(first, count, sizes[bisect_left(sizes, count)] if sizes else count)
