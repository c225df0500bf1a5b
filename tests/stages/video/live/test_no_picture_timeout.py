"""A connection that brings packets and no pictures is given up, one with damages is not."""

from __future__ import annotations

import pytest

from camgraph.stages.video.live.no_picture_timeout import (
    LONGEST_KEYLESS_S,
    LONGEST_REFUSED_S,
    LONGEST_S,
    MOST_REFUSED,
    WAITING_S,
    NoPictureTimeout,
)


def test_a_run_of_refused_packets_is_the_end() -> None:
    timeout = NoPictureTimeout(None, 0.0)
    timeout.picture(0.0)
    reported = [timeout.why_over(count, 0.04 * count) for count in range(1, MOST_REFUSED + 1)]
    assert not any(reported[:-1])
    assert "can no longer be decoded" in reported[-1]


def test_where_there_was_no_picture_at_all_no_codec_has_changed() -> None:
    timeout = NoPictureTimeout(None, 0.0)
    for reported in (
        timeout.why_over(MOST_REFUSED, 0.1),
        NoPictureTimeout(None, 0.0).why_over(0, LONGEST_KEYLESS_S + 1),
    ):
        assert "not one picture has come since it was opened" in reported
        assert "no longer" not in reported
        assert "codec" not in reported


def test_a_slow_camera_that_is_refused_is_judged_by_time() -> None:
    timeout = NoPictureTimeout(None, 10.0)
    assert not timeout.why_over(1, 10.0)
    assert not timeout.why_over(2, 10.0 + LONGEST_REFUSED_S)
    assert timeout.why_over(3, 10.1 + LONGEST_REFUSED_S)


def test_a_picture_in_between_begins_anew() -> None:
    timeout = NoPictureTimeout(None, 0.0)
    assert not timeout.why_over(14, 0.0)
    assert not timeout.why_over(0, 7.0)
    assert not timeout.why_over(1, 9.0)


@pytest.mark.parametrize(("max_fps", "longest_s"), [(None, LONGEST_S), (5.0, LONGEST_S), (0.01, 300.0)])
def test_packets_without_pictures_time_out_late(max_fps: float | None, longest_s: float) -> None:
    timeout = NoPictureTimeout(max_fps, 0.0)
    timeout.picture(5.0)
    assert not timeout.why_over(0, 5.0 + longest_s)
    assert f"no picture came of it for {longest_s:g} s" in timeout.why_over(0, 5.1 + longest_s)


def test_first_keyframe_may_take_minutes_and_is_waited_for_aloud() -> None:
    timeout = NoPictureTimeout(None, 100.0)
    assert not timeout.why_over(0, 100 + LONGEST_KEYLESS_S)
    assert not timeout.why_waiting(100 + WAITING_S)
    assert "no keyframe has come" in timeout.why_waiting(101 + WAITING_S)
    assert "no picture came of it for 600 s" in timeout.why_over(0, 101 + LONGEST_KEYLESS_S)
    timeout.keyframe(150.0)
    assert not timeout.why_waiting(1000.0)


def test_bound_follows_the_keyframes_of_the_camera() -> None:
    timeout = NoPictureTimeout(None, 0.0)
    for now_s in (0.0, 60.0, 110.0):
        timeout.keyframe(now_s)
    timeout.picture(110.0)
    assert not timeout.why_over(0, 110 + 1.5 * 60)
    assert "no picture came of it for 90 s" in timeout.why_over(0, 111 + 1.5 * 60)


def test_keyframes_without_a_picture_time_out_soon() -> None:
    timeout = NoPictureTimeout(None, 0.0)
    for now_s in (0.0, 2.0):
        timeout.keyframe(now_s)
    assert timeout.why_over(0, LONGEST_S + 1)
