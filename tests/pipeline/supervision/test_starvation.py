"""Waiting for a core is told from hanging."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from camgraph.pipeline.supervision.hangs import Starvation

BUSY = "while True: pass"
STUCK = "import threading; threading.Event().wait()"


@contextmanager
def started(*programs: str) -> Iterator[list[int]]:
    """The ids of these programs, which all have to share one core."""
    core = str(min(os.sched_getaffinity(0)))
    pin = f"import os; os.sched_setaffinity(0, {{{core}}})\n"
    processes = [subprocess.Popen([sys.executable, "-c", pin + program]) for program in programs]
    try:
        yield [process.pid for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()


def watch(pid: int, seconds: float, limit_s: float) -> Starvation:
    """Looked at until it has starved for so long, or the time is over."""
    found, until = Starvation(), time.monotonic() + limit_s
    while found.seconds < seconds and time.monotonic() < until:
        found.measure(pid, time.monotonic())
        time.sleep(0.01)
    return found


@pytest.fixture(autouse=True)
def _counted_here() -> None:
    if not Path("/proc/self/schedstat").exists():
        pytest.skip("this kernel does not count what threads wait for a core (/proc/self/schedstat)")


def test_only_processes_short_of_core_time_starve() -> None:
    with started(BUSY, BUSY, BUSY, STUCK) as pids:
        starved = watch(pids[0], 1.0, limit_s=60)
        assert starved.seconds >= 1.0
        # It has slept all the time, but for its start.
        assert watch(pids[3], 0.5, limit_s=2).seconds < 0.5
        starved.forget()
        assert starved.seconds == 0


def test_of_a_process_that_is_gone_nothing_is_known() -> None:
    with started(STUCK) as pids:
        gone = pids[0]
    assert watch(gone, 1.0, limit_s=0.6).seconds == 0
