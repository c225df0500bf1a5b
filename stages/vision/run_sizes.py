"""How many rows a model is run with, if each new number of rows is expensive. Pure.

batch_sizes 1, 2, 4, 8      3 pictures -> a run of 4, one of them filled up
                           11 pictures -> a run of 8, and one of 4 with three of its own
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple


def buckets(most: int) -> tuple[int, ...]:
    """Few sizes of runs, ascending: 1, and ``most`` divided by four again and again.

    A GPU plans for each size by itself and keeps the model once for it, so there are few; a run is filled up to at most
    four times its pictures.
    """
    sizes = {1}
    while most > 1:
        sizes.add(most)
        most = -(-most // 4)
    return tuple(sorted(sizes))


def engine_order(sizes: Sequence[int]) -> tuple[int, ...]:
    """The order in which sizes (ascending) are run for the first time, if an engine serves a range of them.

    TensorRT builds one for the first size and another each time that a size lies outside of the range: with the largest
    and then the smallest first, there are two of them at most.
    """
    return (sizes[-1], *sizes[:-1]) if sizes else (1,)


class Run(NamedTuple):
    """One run: its own pictures are those from ``first`` on, ``own`` of them; the model gets ``rows`` rows."""

    first: int
    own: int
    rows: int


def runs_of(pictures: int, *, most: int, sizes: Sequence[int] = ()) -> Iterator[Run]:
    """The runs for so many pictures: at most ``most`` rows each or, if there are ``sizes`` (ascending), as many as one
    of these.
    """
    largest = sizes[-1] if sizes else most
    for first in range(0, pictures, largest):
        count = min(largest, pictures - first)
        yield Run(first, count, sizes[bisect_left(sizes, count)] if sizes else count)
