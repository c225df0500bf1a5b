"""What one process has brought through, over all of its incarnations: nothing that is counted ever falls."""

from __future__ import annotations

from collections import Counter

from pipeline.monitoring.metrics import counter_of, forget_oldest
from pipeline.monitoring.reports import Beat, StageBeat


class CumulativeCounters:
    """Adds the counts, items and busy times of the incarnation that lives to those of the dead ones."""

    def __init__(self) -> None:
        self._counts_before: Counter[tuple[str, str]] = Counter()
        self._counts: Counter[tuple[str, str]] = Counter()
        self._before: dict[str, StageBeat] = {}
        self._stages: dict[str, StageBeat] = {}
        self._files: dict[str, None] = {}

    def note(self, beat: Beat) -> None:
        """What the living incarnation has brought through so far."""
        self._counts = counter_of(beat.counts)
        self._stages = beat.stages
        self._files.update(dict.fromkeys(beat.files))
        forget_oldest(self._files)

    def count(self, name: str) -> None:
        """Count one thing that the supervisor noticed about the process."""
        self._counts_before[name, ""] += 1

    def died(self) -> None:
        """The incarnation is dead; the next one counts from nothing."""
        self._counts_before += self._counts
        self._before.update({name: self._sum(name, beat) for name, beat in self._stages.items()})
        self._counts, self._stages = Counter(), {}

    @property
    def counts(self) -> Counter[tuple[str, str]]:
        """(name, camera) -> count."""
        return self._counts_before + self._counts

    @property
    def this_life(self) -> int:
        """Items and frames that the living incarnation has brought through."""
        items = sum(beat.items for beat in self._stages.values())
        return items + sum(n for (name, _), n in self._counts.items() if name == "frames")

    @property
    def stages(self) -> dict[str, StageBeat]:
        """By name: items and busy time of all incarnations, the rest of the last one."""
        now = {name: self._sum(name, beat) for name, beat in self._stages.items()}
        return {**self._before, **now}

    @property
    def files(self) -> list[str]:
        """What was written, in the order in which it was named: the newest."""
        return list(self._files)

    def _sum(self, name: str, beat: StageBeat) -> StageBeat:
        before = self._before.get(name, StageBeat())
        return beat.model_copy(update={"items": before.items + beat.items, "busy_ns": before.busy_ns + beat.busy_ns})
