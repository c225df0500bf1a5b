from __future__ import annotations

from dataclasses import replace

from camgraph_test_stages.incident_views import incident

from camgraph.stages.sinks.delivery.event_sink import WaitingTimes

S = 10**9


def test_the_clock_tells_the_age_once() -> None:
    times, event = WaitingTimes(), replace(incident("a", "start").event, committed_ns=1000 * S)
    assert times.of(event, wall_ns=1005 * S, steady_ns=7 * S) == 5.0
    assert times.of(event, wall_ns=9999 * S, steady_ns=9 * S) == 7.0


def test_an_event_of_unknown_or_future_time_waits_from_now_on() -> None:
    times = WaitingTimes()
    for name, committed_ns in (("a", 0), ("b", 2000 * S)):
        event = replace(incident(name, "start").event, committed_ns=committed_ns)
        assert times.of(event, wall_ns=1000 * S, steady_ns=7 * S) == 0.0
        assert times.of(event, wall_ns=1000 * S, steady_ns=17 * S) == 10.0
