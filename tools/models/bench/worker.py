"""A process of `camgraph model bench`: opens the model on one provider and runs it on command.

parent                      worker
  │  ── start ──────────────▶ opens the model, runs it once in each thread
  │ ◀────────── Ready | Failed
  │  ── Shot(at, seconds) ──▶ waits until `at`, runs in all its threads until `at` + seconds
  │ ◀────────── Taken | Failed
  │  ── None, or end of file ▶ ends
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from camgraph.pipeline.errors import CamgraphError, EnvironmentProblem
from camgraph.stages.people.inference.engines.engine import Engine, RunFailed
from camgraph.stages.people.inference.selection.opening import Asked, open_model
from camgraph.tools.models.bench.grid import Configuration
from camgraph.tools.models.high_water import high_water_bytes

_MOST_INPUT_BYTES = 64 << 20
_MOST_BATCHES = 4


@dataclass(frozen=True, slots=True)
class Job:
    """``pictures``: an .npy file with rows of the model's input, whose name is ``input_name``."""

    model: Path
    configuration: Configuration
    asked: Asked
    input_name: str
    pictures: Path


@dataclass(frozen=True, slots=True)
class Ready:
    """The provider that really runs the model, and how long opening it and its first runs took."""

    runs_on: str
    open_s: float


@dataclass(frozen=True, slots=True)
class Failed:
    """``provider``: the provider itself is missing, in any configuration."""

    why: str
    provider: bool = False


@dataclass(frozen=True, slots=True)
class Shot:
    """From this moment (monotonic clock, which all processes share), for so long."""

    at_s: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Taken:
    """Frames a second of all threads, how long each run took, and the process's peak of memory (None: not known)."""

    frames_per_s: float
    runs_ms: Sequence[float]
    peak_mb: float | None


def work(job: Job, line: Connection) -> None:
    """The process, until it gets the order to end or the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's: it ends the workers
    try:
        began_s = time.monotonic()
        engine = open_model(job.model, job.asked).engine
        bench = _Bench(engine, job)
        bench.warm_up()
        line.send(Ready(engine.provider, time.monotonic() - began_s))
        while (shot := line.recv()) is not None:
            line.send(bench.taken(shot))
    except (CamgraphError, RunFailed) as error:
        provider = isinstance(error, EnvironmentProblem)
        with suppress(OSError):  # the parent is gone, or knows it from another worker
            line.send(Failed(_reason(str(error), job.configuration.provider), provider=provider))
    except (EOFError, OSError):
        return


def _reason(text: str, provider: str) -> str:
    """Why this provider is missing: the text in brackets of the message, because nobody asked for other ones."""
    reason = text.partition(f"({provider}: ")[2].rpartition("); ")[0]
    return reason or text


class _Bench:
    """The open model and its batches."""

    def __init__(self, engine: Engine, job: Job) -> None:
        self._engine = engine
        self._name = job.input_name
        self._batch = job.configuration.batch
        self._threads = job.configuration.split.threads
        self._batches = batches(np.load(job.pictures), self._batch)

    def warm_up(self) -> None:
        """As many runs at once as there will be: memory for each is taken now."""
        self.taken(Shot(time.monotonic(), 0.0))

    def taken(self, shot: Shot) -> Taken:
        """Run until the time is over, at least once in each thread. Raises RunFailed."""
        threads = [_Runs(self, index, shot) for index in range(self._threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for thread in threads:
            if thread.error is not None:
                raise thread.error
        rate = sum(self._batch * len(one.runs_ms) / one.worked_s for one in threads)
        return Taken(rate, [ms for one in threads for ms in one.runs_ms], _peak_mb())

    def run(self, number: int) -> None:
        self._engine.run({self._name: self._batches[number % len(self._batches)]})


class _Runs(threading.Thread):
    """One thread's runs; the first of a shot is not counted: caches have gone cold since the last one."""

    def __init__(self, bench: _Bench, index: int, shot: Shot) -> None:
        super().__init__(daemon=True)
        self.runs_ms: list[float] = []
        self.worked_s = 0.0
        self.error: RunFailed | None = None
        self._bench, self._index, self._shot = bench, index, shot

    def run(self) -> None:
        try:
            time.sleep(max(0.0, self._shot.at_s - time.monotonic()))
            self._bench.run(self._index)
            self._loop()
        except RunFailed as error:
            self.error = error

    def _loop(self) -> None:
        begin_s = last_s = time.monotonic()
        end_s = begin_s + self._shot.seconds
        while last_s < end_s or not self.runs_ms:
            self._bench.run(self._index + 1 + len(self.runs_ms))
            now_s = time.monotonic()
            self.runs_ms.append((now_s - last_s) * 1e3)
            last_s = now_s
        self.worked_s = last_s - begin_s


def batches(pictures: NDArray[Any], rows: int) -> list[NDArray[Any]]:
    """Up to four different inputs of so many rows, made of these pictures in turn; fewer if they are large."""
    size = pictures[0].nbytes * rows
    count = max(1, min(_MOST_BATCHES, _MOST_INPUT_BYTES // size))
    return [pictures[np.arange(first, first + rows) % len(pictures)] for first in range(0, count * rows, rows)]


def _peak_mb() -> float | None:
    peak = high_water_bytes()
    return None if peak is None else peak / 1e6
