"""The ranges in which models score."""

from __future__ import annotations

import pytest

from camgraph.stages.vision.decoding.score_ranges import score_range


@pytest.mark.parametrize("name", ["yolo_pose", "movenet_multipose", None])
def test_the_scores_of_a_range_ascend(name: str | None) -> None:
    found = score_range(name)
    assert 0 < found.weak < found.good < found.new < found.sure <= 1
    assert found.good <= found.certain <= found.new


def test_movenet_scores_lower_than_the_others() -> None:
    assert all(low < usual for low, usual in zip(score_range("movenet_multipose"), score_range("yolo"), strict=True))


def test_a_written_minimum_lifts_what_lies_below_it() -> None:
    assert score_range("yolo").at_least(0.35) == (0.35, 0.35, 0.4, 0.7, 0.35)
    assert score_range("yolo").at_least(0.05) == (0.1, 0.3, 0.4, 0.7, 0.05)
