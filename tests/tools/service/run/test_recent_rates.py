"""The samples of the last hour: rates, drops and ages, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import isnan
from pathlib import Path
from typing import Any

import httpx
import pytest
from camgraph_test_stages.described import assert_as_described
from camgraph_test_stages.services import TOKENS, Served, serving_run, with_tokens
from camgraph_test_stages.waiting import until
from hypothesis import given
from hypothesis import strategies as st

from camgraph.pipeline.monitoring.run_status import AllDurations, CameraStatus, DurationsStatus, RunStatus
from camgraph.tools.service.run.recent_rates import RateRing, quantile_s

BOUNDS = [0.001, 0.01, 0.1]


def status(**cameras: tuple[float, int, list[int]]) -> RunStatus:
    """Camera -> its rate, its drops so far, and the counts of its ages."""
    ages = {name: DurationsStatus(counts) for name, (*_, counts) in cameras.items()}
    return RunStatus(
        cameras={name: CameraStatus(fps=fps, drops=drops) for name, (fps, drops, _) in cameras.items()},
        durations=AllDurations(BOUNDS, cameras=ages),
    )


def test_a_sample_tells_what_came_since_the_one_before() -> None:
    ring = RateRing()
    ring.note(status(a=(10.0, 100, [0, 50, 0, 0]), b=(5.0, 0, [0, 0, 0, 0])), 1000.0)
    ring.note(status(a=(12.0, 103, [0, 50, 100, 0]), b=(5.0, 1, [0, 100, 0, 0])), 1005.0)
    a = ring.recent("a")
    assert (a["at"], a["fps"], a["drops"]) == ([1000.0, 1005.0], [10.0, 12.0], [None, 3.0])
    assert a["age_ms_p50"] == [None, 55.0]
    assert a["age_ms_p95"] == [None, 95.5]
    every = ring.recent()
    assert (every["fps"], every["drops"]) == ([15.0, 17.0], [None, 4.0])
    assert every["age_ms_p50"] == [None, 10.0]


def test_no_answer_is_a_gap_and_nothing_is_counted_over_it() -> None:
    ring = RateRing()
    ring.note(status(a=(10.0, 0, [])), 0.0)
    ring.note(None, 5.0)
    ring.note(status(a=(10.0, 500, [])), 10.0)
    assert ring.recent("a")["fps"] == [10.0, None, 10.0]
    assert ring.recent("a")["drops"] == [None, None, None]
    assert ring.recent()["fps"] == [10.0, None, 10.0]


def test_a_counter_that_begins_anew_counts_as_nothing() -> None:
    ring = RateRing()
    ring.note(status(a=(1.0, 500, [9, 9, 9, 9])), 0.0)
    ring.note(status(a=(1.0, 2, [0, 0, 0, 1])), 5.0)
    assert ring.recent("a")["drops"][1] == 0
    assert ring.recent("a")["age_ms_p50"][1] is None


def test_samples_are_bounded_and_gone_cameras_forgotten() -> None:
    ring = RateRing(kept=3)
    ring.note(status(a=(1.0, 0, []), b=(2.0, 0, [])), 0.0)
    for n in range(1, 4):
        ring.note(status(b=(2.0, 0, [])), 5.0 * n)
    assert ring.recent("b")["at"] == [5.0, 10.0, 15.0]
    with pytest.raises(LookupError):
        ring.recent("a")
    assert ring.recent("b")["fps"] == [2.0, 2.0, 2.0]


def test_a_camera_that_came_later_has_no_values_of_before() -> None:
    ring = RateRing()
    ring.note(status(a=(1.0, 0, [])), 0.0)
    ring.note(status(a=(1.0, 0, []), b=(2.0, 7, [])), 5.0)
    assert ring.recent("b")["fps"] == [None, 2.0]
    assert ring.recent("b")["drops"] == [None, None]


@given(st.lists(st.integers(0, 1000), min_size=4, max_size=4))
def test_quantiles_lie_in_their_bucket_and_grow(counts: list[int]) -> None:
    found = [quantile_s(BOUNDS, counts, share) for share in (0.05, 0.5, 0.95, 1.0)]
    if not any(counts):
        assert all(map(isnan, found))
        return
    assert all(one <= other for one, other in pairwise(found))
    values = [low for low, count in zip([0.0, *BOUNDS], counts, strict=True) for _ in range(count)]
    low = sorted(values)[max(0, -(-len(values) // 2) - 1)]
    high = dict(zip([0.0, *BOUNDS], [*BOUNDS, BOUNDS[-1]], strict=True))[low]
    assert low <= found[1] <= high


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("r")
    with serving_run(folder, more=with_tokens()) as run:
        yield run


def test_a_run_tells_its_last_hour(served: Served) -> None:
    def samples() -> dict[str, Any]:
        return dict(served.get("/api/recent?camera=a", "viewer").json())

    def told() -> dict[str, Any] | None:
        """A busy machine may have no frame in one of the samples."""
        one = samples()
        return one if len(one.get("at", [])) >= 3 and one["fps"][-1] > 0 else None

    found = until(told, every_s=0.5)
    assert found["every_s"] == 5.0
    # A run that answers one late and the next at once has less than `every_s` between the two.
    assert all(0 < later - earlier < 60 for earlier, later in pairwise(found["at"]))
    assert found["drops"][-1] >= 0, "a busy machine may drop some"
    assert 0 <= found["age_ms_p50"][-1] <= found["age_ms_p95"][-1]
    assert_as_described("GET", "/api/recent", served.get("/api/recent", "viewer"))
    of_all = served.get("/api/recent", "viewer").json()
    assert of_all["fps"][of_all["at"].index(found["at"][-1])] >= found["fps"][-1]


def test_of_a_camera_that_there_is_not_nothing_is_told(served: Served) -> None:
    answer = served.get("/api/recent?camera=none", "viewer")
    assert (answer.status_code, "none" in answer.json()["error"]) == (httpx.codes.NOT_FOUND, True)
    assert served.get("/api/recent?camera=", "viewer").status_code == httpx.codes.BAD_REQUEST
    assert served.get("/api/recent", headers={"Authorization": f"Bearer {TOKENS['viewer']}"}).status_code == 200
    assert served.get("/api/recent").status_code == httpx.codes.UNAUTHORIZED
