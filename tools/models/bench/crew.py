"""The processes of one configuration, seen from the one that measures."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import TypeVar

from camgraph.tools.models.bench.worker import Failed, Job, Ready, Shot, Taken, work

_START_S = 0.02
"""Between telling the workers and the moment at which they begin together."""
_LATE_S = 120.0
"""A run may take so much longer than the time it was given."""
_END_S = 5.0
Answer = TypeVar("Answer", Ready, Taken)


class CrewFailed(Exception):
    """This configuration cannot be measured; ``provider``: nor any other of its provider."""

    def __init__(self, why: str, *, provider: bool = False) -> None:
        super().__init__(why)
        self.provider = provider


@dataclass(frozen=True, slots=True)
class CrewShot:
    """All workers together; ``peak_mb`` is the sum of each one's peak."""

    frames_per_s: float
    runs_ms: Sequence[float]
    peak_mb: float | None


class Crew:
    """Workers that wait for shots. Closed with `close`, after any error too."""

    def __init__(self, job: Job, *, open_limit_s: float) -> None:
        """Start them and wait until all have opened the model. Raises CrewFailed."""
        context = multiprocessing.get_context("spawn")
        self._lines: list[Connection] = []
        self._processes = []
        try:
            for _ in range(job.configuration.split.workers):
                own, theirs = context.Pipe()
                process = context.Process(target=work, args=(job, theirs), daemon=True)
                process.start()
                theirs.close()
                self._lines.append(own)
                self._processes.append(process)
            ready = self._answers(Ready, open_limit_s)
        except BaseException:
            self.close()
            raise
        self.runs_on = ready[0].runs_on
        self.open_s = max(one.open_s for one in ready)

    def shot(self, seconds: float) -> CrewShot:
        """All run for so long, from the same moment on. Raises CrewFailed."""
        shot = Shot(time.monotonic() + _START_S, seconds)
        for line in self._lines:
            with suppress(OSError):  # a dead one is noticed below
                line.send(shot)
        taken = self._answers(Taken, seconds + _LATE_S)
        peaks = [one.peak_mb for one in taken if one.peak_mb is not None]
        return CrewShot(
            sum(one.frames_per_s for one in taken),
            [ms for one in taken for ms in one.runs_ms],
            sum(peaks) if peaks else None,
        )

    def close(self) -> None:
        """End the workers."""
        for line in self._lines:
            line.close()
        for process in self._processes:
            process.join(_END_S)
            if process.is_alive():
                process.kill()
                process.join()
        self._lines, self._processes = [], []

    def _answers(self, kind: type[Answer], limit_s: float) -> list[Answer]:
        until_s = time.monotonic() + limit_s
        return [self._answer(kind, line, until_s, limit_s) for line in self._lines]

    def _answer(self, kind: type[Answer], line: Connection, until_s: float, limit_s: float) -> Answer:
        if not line.poll(max(0.0, until_s - time.monotonic())):
            raise CrewFailed(f"it did not answer within {limit_s:.0f} s")
        try:
            answer = line.recv()
        except (EOFError, OSError):
            raise CrewFailed(f"a worker died{self._how()}; is there memory for all of them?") from None
        if isinstance(answer, Failed):
            raise CrewFailed(answer.why, provider=answer.provider)
        assert isinstance(answer, kind)
        return answer

    def _how(self) -> str:
        for process in self._processes:
            process.join(1.0)
            if process.exitcode:
                return f" (exit status {process.exitcode})"
        return ""
