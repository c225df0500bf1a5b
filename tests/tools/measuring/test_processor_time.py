"""Who takes the processor: arithmetic on moments, and real processes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from camgraph_test_stages.waiting import until

from camgraph.tools.measuring.processor_time import (
    CpuTime,
    between,
    cpu_time,
    machine_cpu_s,
    other_cores,
    others_line,
    own_cores,
    process_cpu_s,
    tree_cpu_s,
)  # fmt: skip

BUSY = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass"


def test_other_processes_have_what_we_do_not() -> None:
    before, after = CpuTime(10, 100, 50), CpuTime(20, 118, 60)
    assert other_cores(before, after) == pytest.approx(0.8)
    assert own_cores(before, after) == 1.0
    assert other_cores(before, CpuTime(20, 105, 60)) == 0, "ours is read a moment later than the machine's"


def test_the_moments_around_a_window() -> None:
    times = [CpuTime(float(s), 0, 0) for s in range(5)]
    assert [one.at_s for one in between(times, 1.5, 2.5)] == [1, 3]
    assert [one.at_s for one in between(times, 1.0, 3.0)] == [1, 3]
    assert [one.at_s for one in between(times, -1, 9)] == [0, 4]


def test_what_others_took_over_a_run_is_told_by_spans() -> None:
    cores = len(os.sched_getaffinity(0))
    used = [0.0, 1, 2, 11, 12]
    times = [CpuTime(10.0 * n, s, 0) for n, s in enumerate(used)]
    assert others_line(times) == f"Other processes took 0.10 of {cores} cores (median), 0.90 at most (of 10 s)."
    assert "took 0.10 of" in others_line(times[:2], span_s=60), "a run that is shorter is one span"
    assert others_line(times[:1]) == "What other processes took was not measured."


def test_cpu_time_includes_dead_children() -> None:
    own_s, machine_s = tree_cpu_s(os.getpid()), machine_cpu_s()
    subprocess.run([sys.executable, "-c", BUSY], check=True)
    assert tree_cpu_s(os.getpid()) - own_s > 0.25
    assert machine_cpu_s() - machine_s > 0.25
    assert cpu_time().own_s > own_s


def test_a_living_process_is_seen_while_it_works() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", f"{BUSY}\nimport sys; sys.stdin.read()"], stdin=subprocess.PIPE
    ) as one:
        until(lambda: process_cpu_s(one.pid) >= 0.25)
        assert tree_cpu_s(one.pid) >= 0.25
