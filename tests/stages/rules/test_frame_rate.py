"""How many frames a second a camera brings."""

from __future__ import annotations

import pytest

from camgraph.stages.rules.frame_rate import FRAMES, SECONDS, FrameRate

SECOND = 1_000_000_000


def measured(times_s: list[float]) -> list[float]:
    rate = FrameRate(0)
    return [found for time_s in times_s if (found := rate.note(round(time_s * SECOND))) is not None]


@pytest.mark.parametrize("fps", [2, 8, 25, 100])
def test_it_is_told_again_and_again(fps: int) -> None:
    found = measured([i / fps for i in range(60 * fps)])
    assert found == pytest.approx([fps] * len(found), rel=0.01)
    assert len(found) == pytest.approx(60 / min(SECONDS, FRAMES / fps), abs=2)


def test_the_time_when_a_camera_is_away_does_not_count() -> None:
    away = [i / 10 for i in range(90)] + [300 + i / 10 for i in range(150)]
    assert measured(away) == pytest.approx([10])


def test_hardly_any_frames_tell_nothing() -> None:
    assert measured([4.0 * i for i in range(9)]) == []
    assert measured([1.0] * 300) == [], "frames of one time"
