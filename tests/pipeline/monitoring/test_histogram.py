"""Durations in fixed buckets, from a stage to the status of the run."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgpack import packb, unpackb

from camgraph.pipeline.errors import WireError
from camgraph.pipeline.monitoring.histogram import BOUNDS_S, BUCKETS, Histogram
from camgraph.pipeline.monitoring.metrics import StageTimes
from camgraph.pipeline.monitoring.reports import Heartbeat, durations_of, read_report

DURATIONS = st.lists(st.integers(0, 60_000_000_000) | st.sampled_from([round(bound * 1e9) for bound in BOUNDS_S]))


def histogram_of(durations_ns: list[int]) -> Histogram:
    made = Histogram()
    for duration_ns in durations_ns:
        made.add(duration_ns)
    return made


@given(DURATIONS)
def test_up_to_each_bound_lie_the_durations_that_are_no_longer(durations_ns: list[int]) -> None:
    made = histogram_of(durations_ns)
    for place, bound_s in enumerate(BOUNDS_S):
        assert sum(made.counts[: place + 1]) == sum(d <= round(bound_s * 1e9) for d in durations_ns)
    assert (sum(made.counts), made.sum_ns) == (len(durations_ns), sum(durations_ns))


@given(DURATIONS, DURATIONS)
def test_parts_add_up_to_the_whole(some: list[int], others: list[int]) -> None:
    made, whole = histogram_of(some), histogram_of(some + others)
    more = histogram_of(others)
    made.merge(more.counts, more.sum_ns)
    assert (made.counts, made.sum_ns) == (whole.counts, whole.sum_ns)


def test_a_call_is_reported_once() -> None:
    times = StageTimes()
    times.add(3_000_000, items=4)
    sent = {"op": "heartbeat", "stage_calls": durations_of({"infer": times.take_durations(), "idle": Histogram()})}
    heartbeat = read_report(unpackb(packb(sent)))
    assert isinstance(heartbeat, Heartbeat)
    assert list(heartbeat.stage_calls) == ["infer"], "one that counted nothing is not sent"
    assert heartbeat.stage_calls["infer"].counts == histogram_of([3_000_000]).counts
    assert sum(times.take_durations().counts) == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"counts": [1] * (BUCKETS - 1), "sum_ns": 1},
        {"counts": [1] * (BUCKETS + 1), "sum_ns": 1},
        {"counts": [-1] * BUCKETS, "sum_ns": 1},
        {"counts": [1] * BUCKETS, "sum_ns": -1},
    ],
)
def test_no_child_can_spoil_the_sums(wrong: dict[str, Any]) -> None:
    with pytest.raises(WireError, match=r"frame_ages\.a\."):
        read_report({"op": "heartbeat", "frame_ages": {"a": wrong}})
