"""When events were committed: by the time that this process has had the outbox open, not by a clock that was set."""

from __future__ import annotations

import pytest

from camgraph.pipeline.outbox.commit_times import CommitTimes

S = 1_000_000_000
NOON_NS = 1_700_000_000 * S


def times(*, clock_ns: int, open_s: int) -> CommitTimes:
    """Of a process that had the outbox open from row 10 on."""
    return CommitTimes(10, lambda: clock_ns, lambda: open_s)


@pytest.mark.parametrize("set_by_s", [-86_400, -91, 91, 86_400])
def test_a_clock_that_was_set_makes_no_event_old_or_young(set_by_s: int) -> None:
    """The event was committed at noon by the old clock, 500 s ago."""
    now = times(clock_ns=NOON_NS + (500 + set_by_s) * S, open_s=600)
    assert now.now(10, NOON_NS, 100) == NOON_NS + set_by_s * S


@pytest.mark.parametrize("off_by_s", [-90, 0, 90])
def test_a_small_difference_is_the_minute_of_others(off_by_s: int) -> None:
    now = times(clock_ns=NOON_NS + (500 + off_by_s) * S, open_s=600)
    assert now.now(10, NOON_NS, 100) == NOON_NS


def test_of_earlier_events_only_the_clock_tells_the_time() -> None:
    now = times(clock_ns=NOON_NS + 86_400 * S, open_s=600)
    assert now.now(9, NOON_NS, 100) == NOON_NS


@pytest.mark.parametrize(
    ("open_s", "clock_s", "waited_s"), [(600, 500, 500), (1 << 31, 500, 500), (600, 86_400, 500), (600, -5, 500)]
)
def test_an_event_waits_no_longer_than_both_clocks_say(open_s: int, clock_s: int, waited_s: int) -> None:
    """`open_s` that is damaged, a machine that was off, and a clock that was set back: none of them makes it old."""
    now = times(clock_ns=NOON_NS + clock_s * S, open_s=open_s)
    assert now.waited_s(9, NOON_NS, 100) == waited_s


def test_without_a_time_of_commit_the_outbox_tells_the_wait() -> None:
    assert times(clock_ns=NOON_NS, open_s=600).waited_s(9, 0, 100) == 500


def test_a_time_that_nobody_knows_stays_unknown() -> None:
    assert times(clock_ns=NOON_NS, open_s=600).now(10, 0, 100) == 0
