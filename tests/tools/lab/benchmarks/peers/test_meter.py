"""Programs watched from outside, and environments that cannot be had."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from camgraph.tools.lab.benchmarks.peers import environments
from camgraph.tools.lab.benchmarks.peers.environments import NotToBeHad, python_of
from camgraph.tools.lab.benchmarks.peers.meter import Watched, tree_mb, watch

pytestmark = pytest.mark.processes

_BUSY = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "held = bytearray(120_000_000); input()"], stdin=subprocess.PIPE)
end = time.process_time() + 1.0
while time.process_time() < end: pass
child.communicate(b"\\n")
print("done", flush=True)
"""


def test_processor_time_and_memory_are_those_of_the_whole_tree() -> None:
    seen = watch([sys.executable, "-c", _BUSY], limit_s=60)
    assert seen.output == "done\n"
    assert 0.5 < (seen.cpu_between(0.0, float("inf")) or 0) < 10
    assert 120 < (seen.peak_mb(0.0) or 0) < 400


def test_no_figures_without_samples_at_work() -> None:
    seen = Watched("", [(1.0, 0.1), (2.0, 0.2)], [(1.0, 30.0), (1.5, 20.0)])
    assert (seen.peak_mb(1.2), seen.peak_mb(1.6)) == (30.0, None)
    assert (seen.cpu_between(1.6, 9.0), seen.cpu_between(2.1, 9.0)) == (pytest.approx(0.04), None)
    assert Watched("", [], []).peak_mb(0.0) is Watched("", [], []).cpu_between(0.0, 1.0) is None


def test_processor_time_after_the_last_look_counts() -> None:
    quick = "import time\nwhile time.process_time() < 0.15: pass"
    seen = watch([sys.executable, "-c", quick], limit_s=60)
    assert seen.cpu_between(0.0, float("inf")) == pytest.approx(seen.cpu_s[-1][1] - seen.cpu_s[0][1])
    assert seen.cpu_s[-1][1] >= 0.15


def test_a_failure_is_told_in_its_own_last_words() -> None:
    with pytest.raises(NotToBeHad, match=r"ended with status 1: ValueError: no such camera"):
        watch([sys.executable, "-c", "raise ValueError('no such camera')"], limit_s=60)


def test_a_peer_that_takes_too_long_is_ended() -> None:
    began = time.monotonic()
    with pytest.raises(NotToBeHad, match="not over after 1 s"):
        watch([sys.executable, "-c", "import time; time.sleep(600)"], limit_s=1)
    assert time.monotonic() - began < 60


def test_memory_of_nobody_is_nothing() -> None:
    assert tree_mb(os.getpid()) > 10
    assert tree_mb(2**22 + 1) == 0


def test_an_environment_is_made_once_or_said_to_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(NotToBeHad, match="not installed"):
        python_of("empty", ["nothing==1"], install=False)
    folder = tmp_path / "camgraph" / "peers" / "empty"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys.executable)
    (folder / "installed").write_text("nothing==1")
    assert python_of("empty", ["nothing==1"], install=False) == folder / "bin" / "python"
    with pytest.raises(NotToBeHad, match="not installed"):
        python_of("empty", ["nothing==2"], install=False)


def test_what_pip_refuses_is_told_in_its_words(tmp_path: Path) -> None:
    with pytest.raises(NotToBeHad, match=r"cannot be installed: ERROR: .*absent\.whl"):
        environments.done([sys.executable, "-m", "pip", "install", "--no-index", str(tmp_path / "absent.whl")])
