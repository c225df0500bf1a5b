"""Durations, counted in fixed buckets: bounded memory, whatever is counted, and sums over processes are exact."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

BOUNDS_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""The upper bounds of all buckets but the last, which has none. Each bound belongs to its bucket, as in Prometheus."""
BUCKETS = len(BOUNDS_S) + 1
_BOUNDS_NS = tuple(round(bound * 1e9) for bound in BOUNDS_S)


class Histogram:
    """How many durations fell into each bucket, and their sum. For one thread at a time."""

    __slots__ = ("counts", "sum_ns")

    def __init__(self) -> None:
        self.counts = [0] * BUCKETS
        self.sum_ns = 0

    def add(self, duration_ns: int) -> None:
        """Count one duration. It is called for each frame, and costs about 0.15 us."""
        self.counts[bisect_left(_BOUNDS_NS, duration_ns)] += 1
        self.sum_ns += duration_ns

    def merge(self, counts: Sequence[int], sum_ns: int) -> None:
        """Add what another one has counted; `counts` has BUCKETS numbers."""
        self.counts = [here + there for here, there in zip(self.counts, counts, strict=True)]
        self.sum_ns += sum_ns
