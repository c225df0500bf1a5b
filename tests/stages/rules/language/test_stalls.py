"""Streams that stall: nothing is known of the time without frames, and the frames behind it are as any others."""

from __future__ import annotations

import math

import pytest
from tests.stages.rules.language.film import SECOND, ZONES, Pose, picture, rule, still

from camgraph.stages.rules.language.geometry import Surroundings
from camgraph.stages.rules.language.judge import Judge
from camgraph.stages.vision.frame_interval import FrameInterval

FPS = 25
FALL = "first lean < 30deg then drop(hips.y, 0.8s) > 0.5bl within 2s then lean > 60deg for 3s"


def height(y: float) -> Pose:
    return still(left_hip=(304, y), right_hip=(296, y))


def lying_down(share: float) -> Pose:
    """Upright at 0, flat on the ground at 1."""
    turn, y = math.radians(90 * share), 150 + 20 * share
    x, shoulder_y = 300 + 25 * math.sin(turn), y - 25 * math.cos(turn)
    shoulders = {"left_shoulder": (x + 2, shoulder_y), "right_shoulder": (x - 2, shoulder_y)}
    return still(left_hip=(302, y), right_hip=(298, y), **shoulders)


def starts(when: str, film: list[tuple[float, Pose]]) -> list[float]:
    """When incidents start, in seconds."""
    judge = Judge([rule(when, hold=0)], lambda size: Surroundings(*size, ZONES, {}))
    found = [v for at, pose in film for v in judge.judge(picture(round(at * SECOND), [pose]))]
    return [v.picture.time_ns / SECOND for v in found if v.phase == "start"]


def test_who_lies_down_slowly_does_not_fall_in_a_stall() -> None:
    film = [(i / FPS, lying_down(min(max((i / FPS - 4) / 6, 0), 1))) for i in range(20 * FPS)]
    assert starts(FALL, film) == []
    for end in (6, 8, 10):
        assert starts(FALL, [(at, pose) for at, pose in film if not 4.1 < at < end]) == []


def test_a_real_fall_behind_a_stall_is_seen() -> None:
    film = [(i / FPS + 6 * (i > 50), lying_down(min(max((i / FPS - 4) / 0.4, 0), 1))) for i in range(12 * FPS)]
    assert len(starts(FALL, film)) == 1


@pytest.mark.parametrize("stall_s", [2.1, 3, 6, 20])
@pytest.mark.parametrize(
    "when",
    [
        "drop(hips.y, 0.8s) > 15px",
        "change(hips.y, 0.8s) > 15px",
        "was hips.y < 151px within 1s and hips.y > 170px",
        "first hips.y < 151px then hips.y > 170px within 2s",
        "abs(velocity(hips.y)) > 1px/s",
        "speed(left_hip) > 1px/s",
        "hips.y - before(hips.y, 0.5s) > 1px",
        "hips.y > average(hips.y, 0.5s) + 1px",
        "hips.y > usual(hips.y, 0.5s) + 1px",
        "hips.y > least(hips.y, 0.5s) + 1px",
    ],
)
@pytest.mark.slow
def test_no_window_reaches_over_a_stall(when: str, stall_s: float) -> None:
    before = [(i / FPS, height(150)) for i in range(5 * FPS)]
    assert starts(when, before + [(5 + stall_s + i / FPS, height(172)) for i in range(4 * FPS)]) == []
    assert starts(when, before + [(5 + i / FPS, height(172)) for i in range(4 * FPS)]) != []


def test_time_does_not_count_over_a_second_stall() -> None:
    """Of two stalls that are eight frames apart, the first does not make the second a usual interval."""
    low = height(172)
    film = [(at, low) for at in [*(i / FPS for i in range(20)), *(6 + i / FPS for i in range(5)), 12, 12.04, 12.08]]
    assert starts("hips.y > 170px for 1s", film) == []


def test_one_stall_widens_no_limit() -> None:
    interval = FrameInterval()
    for at in [*range(0, 1000, 40), *range(7000, 8000, 40)]:
        interval.note(at * 1_000_000)
        assert interval.at_least(0) == (100_000_000 if at else 0)
