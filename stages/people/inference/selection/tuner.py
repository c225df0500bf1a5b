"""Measures how the CPU of this machine runs a model fastest (`tune: auto`), once, within a few seconds.

kept for this model, machine and ONNX Runtime?  yes ─> that
  no, and the process was started again         ─────> the default: other stages have the cores now
  no ─> measured, in turns, one process at a time ──> kept, unless others had the cores meanwhile
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from platform import node
from typing import Any

from camgraph.pipeline.messages import Array
from camgraph.pipeline.stage import Logger
from camgraph.pipeline.system.cores import busy_s as _busy_s
from camgraph.pipeline.system.cores import usable_cores
from camgraph.pipeline.system.disk import open_regular, try_lock
from camgraph.pipeline.system.paths import asset_folder
from camgraph.stages.people.inference.engines.engine import Engine, RunFailed
from camgraph.stages.people.inference.selection.kept import Key, keep, recall
from camgraph.stages.people.inference.selection.rates import runs_per_s
from camgraph.stages.people.inference.selection.tuning import Run, Tuned, best_of, candidates, in_words

LIMIT_S = 4.0
_SLICE_S = 0.08
_ROUNDS = 3
_QUIET = 0.3
"""The share of the cores that other programs may use if a measurement is to be kept."""

Open = Callable[[int], Engine]
"""Threads of a run -> the model."""
Inputs = Callable[[int], Mapping[str, Array]]
"""Pictures of a run -> the model's inputs."""


@dataclass(frozen=True)
class Task:
    """A model to tune.

    ``key``: the identity of the finding, besides the machine; ``open_s``: how long opening takes; ``at_once``: runs at
    the same time; ``rows``: numbers of pictures in a run to try, ascending.
    """

    key: Key
    open: Open
    open_s: float
    inputs: Inputs
    at_once: int
    rows: Sequence[int]

    @property
    def whole_key(self) -> dict[str, Any]:
        """With the machine's name, and the properties that are measured."""
        return {
            **self.key,
            "at_once": self.at_once,
            "rows": [*self.rows],
            "cores": usable_cores(),
            "host": node(),
            "form": 2,
        }


def tuned(task: Task, log: Logger, *, first_start: bool, limit_s: float = LIMIT_S) -> Tuned:
    """The kept finding for this model on this machine, or a new measurement."""
    file = _file_of(task.whole_key)
    with _alone(file, limit_s):
        if known := recall(file, task.whole_key):
            log.info("model_tuned", **known, remembered=True)
            return Tuned(**known)
        if not first_start:
            log.warning("model_not_tuned", why="other stages run already; it is measured at the next start of a run")
            return Tuned()
        return _measured_now(task, file, log, limit_s)


def _measured_now(task: Task, file: Path, log: Logger, limit_s: float) -> Tuned:
    others = OtherWork()
    began = time.monotonic()
    rates = rates_of(task, candidates(usable_cores(), task.at_once, task.rows), limit_s)
    found = best_of(rates)
    busy = round(others.cores(), 1)
    log.info(
        "model_tuned",
        **found._asdict(),
        tried=in_words(rates),
        seconds=round(time.monotonic() - began, 1),
        remembered=False,
    )
    if busy > _QUIET * usable_cores():
        log.warning("tuned_beside_others", cores_of_others=busy, why="not kept: measured again at the next start")
    elif len(rates) > 1:
        keep(file, task.whole_key, found._asdict())
    return found


def rates_of(task: Task, runs: Sequence[Run], limit_s: float) -> dict[Run, float]:
    """Pictures per second of each that the time allows, in turns: the best of its turns, for others only slow it.

    Those that fail are left out: there is not enough memory for so many pictures, say.
    """
    ends = time.monotonic() + limit_s
    rates: dict[Run, float] = {}
    engines: dict[int, Engine] = {}
    failed: set[Run] = set()
    picture_s = 0.0
    with ThreadPoolExecutor(task.at_once) as pool:
        for number in range(_ROUNDS):
            for run in runs:
                needed = max(_SLICE_S, run.at_once * run.rows * picture_s) * (1 if number else 2)
                needed += 0 if run.threads in engines else task.open_s
                if run in failed or (rates and time.monotonic() + needed > ends):
                    continue
                engine = engines.get(run.threads) or engines.setdefault(run.threads, task.open(run.threads))
                inputs = task.inputs(run.rows)
                try:
                    if run not in rates:
                        engine.run(inputs)  # work that is put off until the first run
                    rate = run.rows * runs_per_s(engine, inputs, run.at_once, _SLICE_S, pool)
                except RunFailed:
                    failed.add(run)
                    rates.pop(run, None)
                    continue
                rates[run] = max(rates.get(run, 0.0), rate)
                picture_s = picture_s or 1 / rates[run]
    return rates


class OtherWork:
    """The share of the cores that other processes take from now on; 0 if the system does not report it."""

    def __init__(self) -> None:
        self._began = self._now()

    def cores(self) -> float:
        """The number of cores that other programs used since then."""
        now = self._now()
        wall, own, all_of_them = (later - before for later, before in zip(now, self._began, strict=True))
        return max(0.0, (all_of_them - own) / wall) if wall > 0 else 0.0

    @staticmethod
    def _now() -> tuple[float, float, float]:
        """Seconds: of the clock, of this process, of all."""
        return time.monotonic(), time.process_time(), _busy_s()


def _file_of(key: Key) -> Path:
    name = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:32]
    return asset_folder().parent / "tuning" / f"{name}.json"


@contextmanager
def _alone(file: Path, limit_s: float) -> Iterator[None]:
    """One process after the other: workers that start together would measure each other. Waits for a bounded time."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        lock = open_regular(file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT)
    except OSError:
        yield
        return
    try:
        ends = time.monotonic() + 3 * limit_s
        with suppress(OSError):  # a file system without locks: then they measure each other
            while not try_lock(lock) and time.monotonic() < ends:
                time.sleep(0.05)
        yield
    finally:
        os.close(lock)
