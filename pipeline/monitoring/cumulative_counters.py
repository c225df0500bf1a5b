"""The counters of one process, over all of its incarnations: they never fall."""

from __future__ import annotations

from collections import Counter

from camgraph.pipeline.monitoring.metrics import counter_of, forget_oldest
from camgraph.pipeline.monitoring.reports import Heartbeat, StageStats


class CumulativeCounters:
    """Adds the counts, items and busy times of the running incarnation to those of the dead ones."""

    def __init__(self) -> None:
        self._counts_before: Counter[tuple[str, str]] = Counter()
        self._counts: Counter[tuple[str, str]] = Counter()
        self._before: dict[str, StageStats] = {}
        self._stages: dict[str, StageStats] = {}
        self._files: dict[str, None] = {}

    def note(self, heartbeat: Heartbeat) -> None:
        """Take the counts of the running incarnation so far."""
        self._counts = counter_of(heartbeat.counts)
        self._stages = heartbeat.stages
        self._files.update(dict.fromkeys(heartbeat.files))
        forget_oldest(self._files)

    def count(self, name: str) -> None:
        """Count an event that the supervisor noticed about the process."""
        self._counts_before[name, ""] += 1

    def died(self) -> None:
        """The incarnation is dead; the next one counts from 0."""
        self._counts_before += self._counts
        self._before.update({name: self._sum(name, stats) for name, stats in self._stages.items()})
        self._counts, self._stages = Counter(), {}

    @property
    def counts(self) -> Counter[tuple[str, str]]:
        """(name, camera) -> count."""
        return self._counts_before + self._counts

    @property
    def this_life(self) -> int:
        """Items and frames that the running incarnation has finished."""
        items = sum(stats.items for stats in self._stages.values())
        return items + sum(n for (name, _), n in self._counts.items() if name == "frames")

    @property
    def stages(self) -> dict[str, StageStats]:
        """By name: items and busy time of all incarnations, and the other values of the last one."""
        now = {name: self._sum(name, stats) for name, stats in self._stages.items()}
        return {**self._before, **now}

    @property
    def files(self) -> list[str]:
        """The newest written files, in the order of their reports."""
        return list(self._files)

    def _sum(self, name: str, stats: StageStats) -> StageStats:
        before = self._before.get(name, StageStats())
        return stats.model_copy(update={"items": before.items + stats.items, "busy_ns": before.busy_ns + stats.busy_ns})
