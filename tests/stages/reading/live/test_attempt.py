"""One try to connect, by its times."""

from __future__ import annotations

from stages.reading.live.attempt import Attempt


def test_without_a_picture_all_of_it_is_opening() -> None:
    attempt = Attempt(10.0)
    assert not attempt.succeeded
    assert (attempt.opening_s(13.5), attempt.live_s(13.5)) == (3.5, 0.0)


def test_from_its_first_picture_on_it_is_live() -> None:
    attempt = Attempt(10.0)
    attempt.picture(10.6)
    attempt.picture(15.0)
    assert attempt.succeeded
    assert round(attempt.opening_s(20.6), 6) == 0.6
    assert round(attempt.live_s(20.6), 6) == 10
