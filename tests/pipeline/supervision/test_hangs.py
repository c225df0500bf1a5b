"""When a process counts as hung: a function of what it last said and of the time."""

from __future__ import annotations

from typing import Any

import pytest

from camgraph.pipeline.monitoring.reports import Heartbeat
from camgraph.pipeline.supervision.hangs import Limits, Times, Wakefulness, hung

S = 1_000_000_000


def look(
    heartbeat: dict[str, Any] | None = None, *, starting: bool = False, hang_s: float = 10.0, **times: float
) -> str:
    seconds = Times(**{"now": 100.0, "since": 0.0, "reported_at": 100.0, "heartbeat_at": 100.0, **times})
    return hung(starting, Heartbeat(**(heartbeat or {})), seconds, Limits(hang_s, open_s=60.0))


@pytest.mark.parametrize(
    ("why", "arguments"),
    [
        ("", {}),
        ("", {"reported_at": 90.0}),
        ("no sign of life for 10 s", {"reported_at": 89.9}),
        ("", {"starting": True, "since": 40.0, "reported_at": 0.0}),
        ("not ready after 60 s", {"starting": True, "since": 39.9}),
        ("", {"starting": True, "since": 39.9, "starved": 1.0}),
        ("", {"starting": True, "since": 39.9, "opens_until": 100.0}),
        ("not ready after 90 s", {"starting": True, "since": 10.0, "opens_until": 99.9}),
        ("", {"starting": True, "since": 40.1, "opens_until": 41.0}),
        ("", {"heartbeat": {"working_since_ns": 0}}),
        ("", {"heartbeat": {"working_since_ns": 90 * S}}),
        ("one batch takes longer than 10 s: if it may, raise `hang_s`", {"heartbeat": {"working_since_ns": 89 * S}}),
        ("", {"heartbeat": {"source_silent_since_ns": 91 * S}}),
        ("a source gives no sign of life for 10 s", {"heartbeat": {"source_silent_since_ns": 89 * S}}),
        ("", {"heartbeat": {"source_silent_since_ns": 41 * S, "source_opening": True}}),
        (
            "not brought its first frame after 60 s",
            {"heartbeat": {"source_silent_since_ns": 39 * S, "source_opening": True}},
        ),
    ],
)
def test_what_hangs_and_why(why: str, arguments: dict[str, Any]) -> None:
    reported = look(**arguments)
    assert reported.startswith(why) or why in reported
    assert bool(reported) == bool(why)


@pytest.mark.parametrize("since", ["working_since_ns", "source_silent_since_ns"])
def test_an_old_heartbeat_says_nothing_of_what_came_after_it(since: str) -> None:
    """Heartbeats that are too large to be sent are signs of life, but the last one that came is out of date."""
    assert not look(heartbeat={since: 79 * S}, heartbeat_at=80.0)
    assert look(heartbeat={since: 69 * S}, heartbeat_at=80.0)


def test_a_longer_limit_forgives_more() -> None:
    heartbeat = {"working_since_ns": 50 * S, "source_silent_since_ns": 50 * S}
    assert look(heartbeat=heartbeat)
    assert not look(heartbeat=heartbeat, hang_s=51.0)


def test_a_machine_that_is_slow_is_given_time() -> None:
    heartbeat = {"working_since_ns": 70 * S}
    assert look(heartbeat=heartbeat, slowest=2.9, opened_in=50.0).startswith("one batch takes longer than 29 s")
    assert not look(heartbeat=heartbeat, slowest=3.0)
    assert not look(heartbeat=heartbeat, opened_in=30.0), "nothing is known of batches before the first is done"
    assert look(heartbeat=heartbeat, opened_in=29.9)
    assert look(reported_at=70.0, slowest=3.0, opened_in=30.0), "a process that is silent is not at a batch"


def test_what_a_process_waits_for_a_core_does_not_count() -> None:
    for hangs in (
        {"heartbeat": {"working_since_ns": 70 * S}},
        {"reported_at": 70.0},
        {"heartbeat": {"source_silent_since_ns": 70 * S}},
    ):
        assert look(**hangs, starved=19.9)
        assert not look(**hangs, starved=20.0)


def test_ten_times_the_limit_is_too_long_for_everybody() -> None:
    for hangs in ({"heartbeat": {"working_since_ns": S}, "since": 0.5}, {"reported_at": 1.0}):
        assert look(hang_s=9.8, slowest=1e6, starved=1e6, opened_in=1e6, **hangs)
        assert not look(hang_s=10.0, slowest=1e6, starved=1e6, **hangs)


def test_woken_supervisor_ignores_silence_for_a_while() -> None:
    wakefulness = Wakefulness(0.0, hang_s=10.0)
    assert wakefulness.slept_s(0.1) == 0
    assert wakefulness.trusts(0.1)
    assert wakefulness.slept_s(30.1) == pytest.approx(30.0)
    assert not wakefulness.trusts(30.1)
    assert wakefulness.slept_s(31.0) == 0
    assert not wakefulness.trusts(40.0)
    assert wakefulness.trusts(40.2)
