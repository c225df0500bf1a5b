"""How limits of a GPU's memory add up."""

from __future__ import annotations

import pytest

from camgraph.stages.people.inference.engines.onnxruntime_engine import MemoryLimits

GB = 10**9


@pytest.mark.parametrize(
    ("limit", "sessions", "workers", "fits"),
    [(4 * GB, 3, 2, True), (4 * GB, 3, 1, True), (4 * GB, 4, 2, False), (8 * GB, 3, 1, True), (9 * GB, 3, 1, False)],
)
def test_a_limit_is_for_each_size_of_batches_and_each_worker(
    limit: int, sessions: int, workers: int, fits: bool
) -> None:
    limits = MemoryLimits(limit, sessions, 0, 24 * GB)
    assert limits.together(workers) == limit * sessions * workers
    assert (limits.why_too_much(workers) == "") is fits


def test_the_sum_is_said_and_the_way_out() -> None:
    assert MemoryLimits(4 * GB, 4, 1, 24 * GB).why_too_much(2) == (
        "4,000 MB for each of 4 sizes of batches of each of 2 workers are 32,000 MB, and GPU 1 has 24,000; set a "
        "smaller `gpu_mem_limit`, or fewer `batch_sizes` or `workers`"
    )
