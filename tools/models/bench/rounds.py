"""The measuring itself: all configurations in turn, round after round, so that other load of the machine hits all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from camgraph.stages.people.inference.engines.engine import ProviderName
from camgraph.tools.models.bench.crew import Crew, CrewFailed
from camgraph.tools.models.bench.record import LeftOut, Measured
from camgraph.tools.models.bench.worker import Job

LEAST_SHOT_S = 0.2


@dataclass(frozen=True, slots=True)
class Plan:
    """``seconds``: of measuring, for all rounds of all jobs; opening the models comes on top."""

    jobs: Sequence[Job]
    rounds: int
    seconds: float
    open_limit_s: float


@dataclass(slots=True)
class Entry:
    """A configuration that is measured: a value a round, and all runs' times."""

    job: Job
    crew: Crew
    frames_per_s: list[float] = field(default_factory=list)
    runs_ms: list[float] = field(default_factory=list)
    peak_mb: float | None = None

    def measured(self) -> Measured:
        """Its figures; there must be a round."""
        one, split = self.job.configuration, self.job.configuration.split
        p50_ms, p99_ms = np.percentile(self.runs_ms, (50, 99)).tolist()
        return Measured(
            provider=one.provider, runs_on=self.crew.runs_on, batch=one.batch,
            workers=split.workers, threads=split.threads, intra_op=split.intra_op,
            frames_per_s=tuple(self.frames_per_s),
            run_p50_ms=p50_ms, run_p99_ms=p99_ms,
            open_s=self.crew.open_s, peak_mb=self.peak_mb,
        )  # fmt: skip


class Rounds:
    """Measures a plan; the results so far are available at any time. Closed with `close`, after any error too."""

    def __init__(self, plan: Plan, tell: Callable[[str], None]) -> None:
        self.left_out: list[LeftOut] = []
        self._plan = plan
        self._tell = tell
        self._entries: list[Entry] = []
        self._gone: set[ProviderName] = set()

    def open(self) -> None:
        """Start the workers of all configurations; those that cannot be had are named and left out."""
        for job in self._plan.jobs:
            if job.configuration.provider in self._gone:
                continue
            try:
                self._entries.append(Entry(job, Crew(job, open_limit_s=self._plan.open_limit_s)))
            except CrewFailed as error:
                self._leave_out(job, error)

    def run(self) -> Iterator[int]:
        """The rounds, one at a time: the number of each that is over."""
        seconds = self._plan.seconds / self._plan.rounds / max(1, len(self._entries))
        for number in range(self._plan.rounds):
            if not self._entries:
                return
            first = number % len(self._entries)
            for entry in (*self._entries[first:], *self._entries[:first]):
                self._measure(entry, max(LEAST_SHOT_S, seconds))
            yield number + 1

    def measured(self) -> list[Measured]:
        """Of all that had a round."""
        return [entry.measured() for entry in self._entries if entry.frames_per_s]

    def close(self) -> None:
        """End all workers."""
        for entry in self._entries:
            entry.crew.close()

    def _measure(self, entry: Entry, seconds: float) -> None:
        try:
            shot = entry.crew.shot(seconds)
        except CrewFailed as error:
            self._entries.remove(entry)
            entry.crew.close()
            self._leave_out(entry.job, error)
            return
        entry.frames_per_s.append(shot.frames_per_s)
        entry.runs_ms += shot.runs_ms
        entry.peak_mb = shot.peak_mb

    def _leave_out(self, job: Job, error: CrewFailed) -> None:
        what: str = job.configuration.provider if error.provider else str(job.configuration)
        if error.provider:
            self._gone.add(job.configuration.provider)
        self.left_out.append(LeftOut(what=what, why=str(error)))
        self._tell(f"left out: {what}: {error}")
