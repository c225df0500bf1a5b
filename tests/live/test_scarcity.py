"""The machine short of shared memory, descriptors or memory: one line with a way out, others go on, and it passes."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from camgraph.pipeline.testing import hit
from camgraph.tools.lab.proofs.trials.run import LiveRun
from camgraph.tools.lab.proofs.trials.subject import Subject, simulated_cameras, write_subject
from camgraph.tools.measuring.processes import left_over
from camgraph.tools.scenes.simulator import RtspSimulator

WITHIN_S = 60.0
SMALL_SHM = "mount -t tmpfs -o size=8m tmpfs /dev/shm"
OWN_NAMES = ["unshare", "-rm", "sh", "-c"]
FILLED = [*OWN_NAMES, f'{SMALL_SHM} && head -c 8300000 /dev/zero > /dev/shm/ballast && exec "$@"', "sh"]


@pytest.fixture(scope="module")
def simulator() -> Iterator[RtspSimulator]:
    with RtspSimulator(simulated_cameras(3)) as simulator:
        yield simulator


@pytest.fixture
def subject(simulator: RtspSimulator, tmp_path: Path) -> Subject:
    return write_subject(tmp_path, f"scarce{os.getpid()}", simulator.cameras, hang_s=20.0)


def away(status: Mapping[str, Any]) -> list[str]:
    return [name for name, camera in status["cameras"].items() if camera["state"] == "lost"]


def others_go_on(run: LiveRun, lost: str) -> None:
    """All cameras but one bring frames."""
    before = {name: camera["frames"] for name, camera in run.status()["cameras"].items()}
    run.until(
        lambda now: all(now["cameras"][name]["frames"] > n + 10 for name, n in before.items() if name != lost),
        WITHIN_S,
        "the others go on",
    )
    assert away(run.status()) == [lost]


@pytest.mark.skipif(
    subprocess.run([*OWN_NAMES, SMALL_SHM], capture_output=True, check=False).returncode != 0,
    reason="no /dev/shm of one's own can be mounted here",
)
def test_cameras_recover_from_full_shared_memory(subject: Subject) -> None:
    with LiveRun(subject, wrapper=FILLED) as run:
        run.until(lambda now: away(now) == ["c0", "c1", "c2"], WITHIN_S, "all are away")
        for camera in run.status()["cameras"].values():
            assert re.search(r"no room for \d\.\d MB in /dev/shm", camera["why"])
            assert "make it larger" in camera["why"]
        Path(f"/proc/{run.pid}/root/dev/shm/ballast").unlink()
        run.until_live(WITHIN_S)
        assert run.stop() == 0
    assert left_over(subject.name) == []


def test_too_few_descriptors_at_the_start_are_one_line(subject: Subject) -> None:
    with LiveRun(subject, limits={resource.RLIMIT_NOFILE: 32}) as run:
        assert run.wait(WITHIN_S) == 3
        [reported] = run.problems()
        assert "Too many open files: raise the limit (ulimit -n for open files)" in reported
    assert left_over(subject.name) == []


@pytest.mark.lab
def test_lack_of_descriptors_only_delays_one_camera(subject: Subject) -> None:
    with LiveRun(subject) as run:
        run.until_live(WITHIN_S)
        victim, before = run.processes()["capture.c0"]["pid"], resource.prlimit(run.pid, resource.RLIMIT_NOFILE)
        used = sum(1 for _ in Path(f"/proc/{run.pid}/fd").iterdir())
        # Enough to be asked, too few for a start: ZeroMQ would abort the supervisor over the last one.
        resource.prlimit(run.pid, resource.RLIMIT_NOFILE, (used + 4, before[1]))
        hit(victim, signal.SIGKILL)
        run.until(lambda now: bool(run.lines("process_not_started")), WITHIN_S, "it is said")
        others_go_on(run, "c0")
        [line] = run.lines("process_not_started")
        assert "raise the limit (ulimit -n for open files)" in line["why"]
        resource.prlimit(run.pid, resource.RLIMIT_NOFILE, before)
        run.until_live(WITHIN_S)
        assert run.stop() == 0
    assert left_over(subject.name) == []


def address_space(pid: int) -> int:
    """Bytes that the process has mapped."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmSize"))


@pytest.mark.lab
def test_memory_that_runs_out_delays_one_camera_and_ends_nothing(simulator: RtspSimulator, subject: Subject) -> None:
    """Its pictures grow while its process gets no more address space."""
    with LiveRun(subject) as run:
        run.until_live(WITHIN_S)
        pid = run.processes()["capture.c0"]["pid"]
        before = resource.prlimit(pid, resource.RLIMIT_AS)
        resource.prlimit(pid, resource.RLIMIT_AS, (address_space(pid), before[1]))
        simulator.camera("c0").resize(1280, 720)
        run.until(lambda now: away(now) == ["c0"], WITHIN_S, "it is lost")
        assert "raise the limit (ulimit -v, or that of the container)" in run.status()["cameras"]["c0"]["why"]
        others_go_on(run, "c0")
        resource.prlimit(pid, resource.RLIMIT_AS, before)
        run.until_live(WITHIN_S)
        run.until(lambda now: now["cameras"]["c0"]["facts"]["size"] == "1280x720", WITHIN_S, "it is seen")
        assert run.processes()["capture.c0"]["pid"] == pid
        assert run.lines("process_died") == []
        assert run.stop() == 0
    assert left_over(subject.name) == []
