"""The ages of frames, from the counts of a histogram."""

from __future__ import annotations

import pytest

from camgraph.tools.lab.benchmarks.asked_model import age_ms

INF = float("inf")


@pytest.mark.parametrize(
    ("ages", "part", "expected"),
    [
        ({0.01: 0, 0.1: 100, INF: 0}, 0.5, 55.0),
        ({0.01: 50, 0.1: 50, INF: 0}, 0.5, 10.0),
        ({0.01: 50, 0.1: 50, INF: 0}, 0.99, 98.2),
        ({0.1: 0, INF: 10}, 0.5, 550.0),
        ({0.1: 0, INF: 0}, 0.5, 0.0),
        ({}, 0.5, 0.0),
    ],
)
def test_the_age_that_a_part_of_the_frames_does_not_exceed(
    ages: dict[float, int], part: float, expected: float
) -> None:
    assert age_ms(ages, part) == pytest.approx(expected)
