"""Which frames stand for all of some sources: so many in all, spread over each of them. Pure.

frames there      5   100   100        count 25
frames of each    5    10    10        a short source gives all it has, and the others make up for it
places            0 1 2 3 4   5 15 25 ... 95
"""

from __future__ import annotations

from collections.abc import Sequence


def shares(there: Sequence[int], count: int) -> list[int]:
    """How many frames of each source: as even as can be, none more than it has, ``count`` together or all there are.

    If that does not come out even, the first sources give one more.
    """
    found = [0] * len(there)
    left = min(count, sum(there))
    while left:
        more = [index for index, has in enumerate(there) if found[index] < has]
        each = max(1, left // len(more))
        for index in more[:left]:
            given = min(each, there[index] - found[index])
            found[index] += given
            left -= given
    return found


def places(there: int, count: int) -> list[int]:
    """The numbers of ``count`` frames of ``there``, ascending: the middles of as many equal parts."""
    return [(2 * number + 1) * there // (2 * count) for number in range(count)]
