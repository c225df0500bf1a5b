"""When a process counts as hung: a function of what it last said and of the time."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.hangs import Limits, Times, Wakefulness, hung
from pipeline.reports import Beat

S = 1_000_000_000


def look(beat: dict[str, Any] | None = None, *, starting: bool = False, hang_s: float = 10.0, **times: float) -> str:
    seconds = Times(**{"now": 100.0, "since": 0.0, "heard_at": 100.0, "beat_at": 100.0, **times})
    return hung(starting, Beat(op="beat", **(beat or {})), seconds, Limits(hang_s, open_s=60.0))


@pytest.mark.parametrize(
    ("why", "arguments"),
    [
        ("", {}),
        ("", {"heard_at": 90.0}),
        ("no sign of life for 10 s", {"heard_at": 89.9}),
        ("", {"starting": True, "since": 40.0, "heard_at": 0.0}),
        ("not ready after 60 s", {"starting": True, "since": 39.9}),
        ("", {"beat": {"working_since_ns": 0}}),
        ("", {"beat": {"working_since_ns": 90 * S}}),
        ("one batch takes longer than 10 s: if it may, raise `hang_s`", {"beat": {"working_since_ns": 89 * S}}),
        ("", {"beat": {"source_silent_since_ns": 91 * S}}),
        ("a source gives no sign of life for 10 s", {"beat": {"source_silent_since_ns": 89 * S}}),
        ("", {"beat": {"source_silent_since_ns": 41 * S, "source_opening": True}}),
        (
            "not brought its first frame after 60 s",
            {"beat": {"source_silent_since_ns": 39 * S, "source_opening": True}},
        ),
    ],
)
def test_what_hangs_and_why(why: str, arguments: dict[str, Any]) -> None:
    said = look(**arguments)
    assert said.startswith(why) or why in said
    assert bool(said) == bool(why)


@pytest.mark.parametrize("since", ["working_since_ns", "source_silent_since_ns"])
def test_an_old_beat_says_nothing_of_what_came_after_it(since: str) -> None:
    """Beats that are too large to be sent are signs of life; what the last that came says is not true any more."""
    assert not look(beat={since: 79 * S}, beat_at=80.0)
    assert look(beat={since: 69 * S}, beat_at=80.0)


def test_a_longer_limit_forgives_more() -> None:
    beat = {"working_since_ns": 50 * S, "source_silent_since_ns": 50 * S}
    assert look(beat=beat)
    assert not look(beat=beat, hang_s=51.0)


def test_a_supervisor_that_was_stopped_trusts_nobodys_silence_for_a_while() -> None:
    wakefulness = Wakefulness(0.0, hang_s=10.0)
    assert wakefulness.slept_s(0.1) == 0
    assert wakefulness.trusts(0.1)
    assert wakefulness.slept_s(30.1) == pytest.approx(30.0)
    assert not wakefulness.trusts(30.1)
    assert wakefulness.slept_s(31.0) == 0
    assert not wakefulness.trusts(40.0)
    assert wakefulness.trusts(40.2)
