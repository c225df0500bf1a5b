"""Who a new track may have been before."""

from __future__ import annotations

import numpy as np
import pytest

from camgraph.stages.vision.tracking.appearance import LooksScale
from camgraph.stages.vision.tracking.continuation import NOBODY, Passage, continued

SECOND = 1_000_000_000
NO_LOOKS = LooksScale()


def passage(*people: tuple[int, float, float, float, float], height: float = 100.0, kind: int = 0) -> Passage:
    """(id, seconds, x, y, speed to the right in pixels a second)."""
    ids, seconds, xs, ys, speeds = np.array(people, np.float64).reshape(-1, 5).T
    count = len(ids)
    return Passage(
        ids.astype(np.int64),
        np.full(count, kind),
        np.rint(seconds * SECOND).astype(np.int64),
        np.stack((xs, ys), axis=1),
        np.stack((speeds, np.zeros(count)), axis=1),
        np.full(count, height),
        np.empty((count, 0)),
    )


LOST = passage((7, 0.0, 0.0, 0.0, 100.0))


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (passage((0, 2.0, 200.0, 0.0, 100.0)), 7),
        (passage((0, 2.0, 120.0, 20.0, 0.0)), 7),
        (passage((0, 2.0, 200.0, 0.0, -100.0)), NOBODY),
        (passage((0, 2.0, 200.0, 150.0, 100.0)), NOBODY),
        (passage((0, 2.0, -120.0, 0.0, -100.0)), NOBODY),
        (passage((0, 2.0, 600.0, 0.0, 100.0)), NOBODY),
        (passage((0, 2.0, 200.0, 0.0, 100.0), height=70.0), NOBODY),
        (passage((0, 2.0, 200.0, 0.0, 100.0), kind=1), NOBODY),
        (passage((0, 0.0, 0.0, 0.0, 100.0)), NOBODY),
    ],
    ids=["on-the-way", "slower", "turned", "beside", "behind", "too-far", "smaller", "other-class", "same-time"],
)
def test_who_can_be_the_lost_one(new: Passage, expected: int) -> None:
    assert continued(LOST, new, NO_LOOKS).tolist() == [expected]


def test_of_two_who_may_be_it_none_is_told() -> None:
    assert continued(LOST, passage((0, 2.0, 150.0, 30.0, 0.0), (0, 2.0, 190.0, -30.0, 0.0)), NO_LOOKS).tolist() == [
        NOBODY,
        NOBODY,
    ]
    two = LOST.joined(passage((8, 0.0, 0.0, 50.0, 100.0)))
    assert continued(two, passage((0, 2.0, 200.0, 25.0, 100.0)), NO_LOOKS).tolist() == [NOBODY]
    assert continued(two, passage((0, 2.0, 200.0, 0.0, 100.0)), NO_LOOKS).tolist() == [7]


def test_nobody_lost_or_nobody_new() -> None:
    assert continued(Passage.nobody(), LOST, NO_LOOKS).tolist() == [NOBODY]
    assert continued(LOST, Passage.nobody(), NO_LOOKS).tolist() == []
