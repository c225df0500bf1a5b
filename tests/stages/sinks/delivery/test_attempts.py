from __future__ import annotations

import pytest

from camgraph.stages.sinks.delivery.attempts import Attempts
from camgraph.stages.sinks.delivery.durations import seconds


def test_pauses_grow_up_to_the_last_and_begin_anew() -> None:
    attempts, now = Attempts((1.0, 5.0)), 100.0
    waits = []
    for _ in range(3):
        attempts.failed(now, "away")
        waits.append(attempts.next_s - now)
        assert not attempts.may_try(attempts.next_s - 0.1)
        assert attempts.may_try(attempts.next_s)
        now = attempts.next_s
    assert waits == [1.0, 5.0, 5.0]
    attempts.succeeded()
    assert attempts.may_try(0.0)


def test_the_other_side_may_ask_for_more_time_and_not_for_less() -> None:
    attempts = Attempts((10.0,))
    attempts.failed(0.0, "busy", least_pause_s=60.0)
    assert attempts.next_s == 60.0
    attempts.failed(0.0, "busy", least_pause_s=1.0)
    assert attempts.next_s == 10.0


@pytest.mark.parametrize(("text", "value"), [("90s", 90), ("1.5 min", 90), ("12h", 43_200), ("7d", 604_800)])
def test_durations(text: str, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["90", "0s", "9000d", "-1s", "1 week", "１s"])
def test_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="expected a time"):
        seconds(text)
