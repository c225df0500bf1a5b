"""What the kernel shows of a run: on real processes, files and sockets."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from camgraph.pipeline.system.paths import SHARED_MEMORY, runs_folder
from camgraph.tools.measuring import processes
from camgraph.tools.measuring.processes import (
    SUPERVISOR,
    command_lines,
    left_over,
    orphans,
    own_mb,
    sample,
    sockets,
    tree,
)

PARENT = "import os, sys; child = os.fork() or os._exit(0); print(child, flush=True); sys.stdin.read()"
PIPE = subprocess.PIPE


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a run that has nothing yet; its segments are removed afterwards."""
    name = f"looked{os.getpid()}"
    with tempfile.TemporaryDirectory(prefix="cgt", dir="/tmp") as folder:
        monkeypatch.setenv("CAMGRAPH_RUN_DIR", folder)
        yield name
    for path in SHARED_MEMORY.glob(f"camgraph-{os.getuid()}-{name}-*"):
        path.unlink()


def segment(run: str, size: int) -> Path:
    path = SHARED_MEMORY / f"camgraph-{os.getuid()}-{run}-0.1"
    path.write_bytes(bytes(size))
    return path


def test_a_tree_of_real_processes_is_counted(run: str) -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT, "x/infer.0"], stdin=PIPE, stdout=PIPE) as process:
        assert process.stdout
        child = int(process.stdout.readline())
        while not (now := sample(process.pid, run)).zombies:
            assert process.poll() is None
        assert tree(process.pid) == [process.pid, child]
        assert now.zombies == {child}
        [root] = now.living
        assert (root.process, root.threads, root.open["pipe:[N]"]) == (SUPERVISOR, 1, 2)
        assert root.descriptors >= 3
        assert 1000 < root.own_kb < root.pss_kb
        assert own_mb(process.pid) == pytest.approx(root.own_kb / 1000, rel=0.2)
        assert now.total("threads") == 1
        assert set(now.kinds()) == {SUPERVISOR}
        assert command_lines([process.pid]).endswith("x/infer.0")
        assert sample(os.getpid(), run).kinds()["infer"][0].pid == process.pid


def test_segments_are_counted_and_orphans_found(run: str) -> None:
    path = segment(run, 5000)
    seen = sample(os.getpid(), run)
    assert (seen.shm_files, seen.shm_bytes) == (1, 5000)
    with path.open("rb") as owner:
        fcntl.flock(owner, fcntl.LOCK_EX)
        assert orphans(run) == []
    assert orphans(run) == [path.name]


def test_a_run_that_ended_must_leave_nothing(run: str) -> None:
    assert left_over(run) == []
    assert sockets(run) == 0
    folder = runs_folder() / run
    folder.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "control"))
        assert sockets(run) == 1
    code = "import sys; print(flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code, "camgraph.pipeline.worker.child", f"{run}/log.0"]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE) as child:
        assert child.stdout
        child.stdout.readline()
        name = segment(run, 1).name
        assert left_over(run) == [name, str(folder), f"process {child.pid} {run}/log.0"]


def test_a_process_that_is_gone_is_no_member() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert sample(process.pid, "none").members == ()
    assert processes.command_lines([process.pid]) == ""
