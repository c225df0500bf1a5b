"""`camgraph status --check`: what a monitor is told of real runs, and what `status` says of sinks that do not work."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from camgraph_test_stages.waiting import until

LIMIT_S = 120.0
GRAPH = """
version: 1
name: watched
cameras:
  a: {frames: 1000000, pace_ms: 20, live: true, state_from: a.state}
  b: {frames: 1000000, pace_ms: 20, live: true, state_from: b.state}
stages:
  src: {use: count_source}
  emit: {use: emit, from: src, with: {every: 20}}
  out: {use: collect_events, from: emit, with: {path: out, away: away}}
  log: {use: sink_jsonl, from: emit, with: {path: log.jsonl, sync: false}}
"""

Call = Callable[..., "subprocess.CompletedProcess[str]"]


class Watched:
    """A run in the background, and commands beside it."""

    def __init__(self, folder: Path, runtime: str) -> None:
        self.folder = folder
        self.environ = {**os.environ, "XDG_RUNTIME_DIR": runtime, "XDG_STATE_HOME": str(folder / "state")}
        self.environ["PYTHONPATH"] = str(Path(__file__).parents[2] / "src")

    def call(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "camgraph.tools.cli", *words]
        return subprocess.run(
            command, check=False, cwd=self.folder, env=self.environ, capture_output=True, text=True, timeout=LIMIT_S
        )

    @contextmanager
    def running(self, graph: str = GRAPH) -> Iterator[None]:
        (self.folder / "g.yaml").write_text(graph)
        command = [sys.executable, "-m", "camgraph.tools.cli", "run", "g.yaml", "--quiet"]
        with (self.folder / "run.log").open("w") as log:
            run = subprocess.Popen(command, cwd=self.folder, env=self.environ, stdout=log, stderr=log)
            try:
                yield
            finally:
                run.send_signal(signal.SIGINT)
                run.wait(LIMIT_S)

    def checked(self, *words: str) -> tuple[int, str]:
        """Exit status and what is said: one line, and nothing else."""
        done = self.call("status", "--check", *words)
        assert done.stderr == ""
        assert done.stdout.count("\n") == 1
        return done.returncode, done.stdout.strip()

    def until(self, status: int, text: str) -> str:
        """Check again and again until it ends so and says this."""
        found = (-1, "")

        def is_so() -> bool:
            nonlocal found
            found = self.checked()
            return found[0] == status and text in found[1]

        until(is_so, LIMIT_S, lambda: (found, (self.folder / "run.log").read_text()), every_s=0.2)
        return found[1]

    def status(self) -> dict[str, Any]:
        known: dict[str, Any] = json.loads(self.call("status", "--json").stdout)
        return known

    def say(self, **states: str) -> None:
        for camera, state in states.items():
            new = self.folder / f"{camera}.new"
            new.write_text(state)
            new.replace(self.folder / f"{camera}.state")


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    with tempfile.TemporaryDirectory(prefix="cgh", dir="/tmp") as runtime:
        yield Watched(tmp_path, runtime)


def test_check_follows_a_run_from_start_to_end(watched: Watched) -> None:
    assert watched.checked() == (3, "unknown: nothing is running; `camgraph run GRAPH` starts a graph")
    watched.say(a="live", b="live")
    with watched.running():
        assert watched.until(0, "healthy").startswith("healthy: watched: 2 cameras, ")
        assert watched.checked("--name", "other")[0] == 3
        watched.say(b="lost no power")
        assert watched.until(1, "1 of 2 cameras").startswith(
            "degraded: watched: 1 of 2 cameras without frames: b lost for "
        )
        watched.say(a="unauthorised 401")
        assert watched.until(2, "2 of 2 cameras").startswith("down: watched: 2 of 2 cameras without frames: a unauth")
        assert watched.call("status").returncode == 0, "people only look"
        answer = json.loads(watched.call("status", "--check", "--json").stdout)
        assert (answer["level"], answer["reason"].count("lost for")) == ("down", 1)
        watched.say(a="live", b="live")
        watched.until(0, "healthy")
    assert watched.checked()[0] == 3


def test_a_sink_that_is_away_is_named_with_since_when(watched: Watched) -> None:
    watched.say(a="live", b="live")
    (watched.folder / "away").touch()
    with watched.running():
        reported = watched.until(1, "out: ")
        assert "degraded: watched: out: the file away is there (for " in reported
        first = next(trouble for trouble in watched.status()["troubles"])
        assert (first["where"], first["why"]) == ("out", "the file away is there")
        while watched.status()["troubles"][0]["since_s"] < first["since_s"] + 1:
            pass
        assert "out: the file away is there, for 0:0" in watched.call("status").stdout
        (watched.folder / "away").unlink()
        watched.until(0, "healthy")
        assert watched.status()["troubles"] == []


def test_full_disk_names_sink_and_file(watched: Watched) -> None:
    watched.say(a="live", b="live")
    with watched.running():
        watched.until(0, "healthy")
        sink = watched.status()["processes"]["log.0"]["pid"]
        before = resource.prlimit(sink, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        reported = watched.until(1, "log.jsonl")
        assert reported.startswith(f"degraded: watched: log: {watched.folder}/log.jsonl: cannot write ")
        resource.prlimit(sink, resource.RLIMIT_FSIZE, before)
        watched.until(0, "healthy")


OPENING = """
version: 1
name: watched
cameras: {a: {frames: 1000000, pace_ms: 20, live: true}, b: {frames: 1000000, pace_ms: 20, live: true}}
stages:
  src: {use: count_source}
  slow: {use: crash, from: src, with: {at_seq: 1000000, OPENING, shut: shut}}
  out: {use: collect, from: slow, with: {path: out}}
"""


def test_slow_opening_is_reported_as_starting(watched: Watched) -> None:
    with watched.running(OPENING.replace("OPENING", "opens_with: go")):
        reported = watched.until(1, "slow.0: is being opened")
        assert reported.startswith("degraded: watched: starting for ")
        shown = watched.call("status").stdout.splitlines()
        assert "  starting  " in shown[0]
        assert any(line.startswith("slow") and " starting " in line for line in shown)
        (watched.folder / "go").touch()
        watched.until(0, "healthy")


def test_announced_slow_opening_is_not_a_hang(watched: Watched) -> None:
    text = OPENING.replace("OPENING", "opens_with: go, opens_within_s: 200")
    with watched.running(f"{text}open_s: 10\n"):
        watched.until(1, "slow.0: is being opened: building it, 1 of 2")
        begun_s = time.monotonic()
        while time.monotonic() < begun_s + 12:
            assert watched.checked()[0] == 1, "killed after `open_s`"
        (watched.folder / "go").touch()
        watched.until(0, "healthy")
        assert watched.status()["processes"]["slow.0"]["restarts"] == 0


def test_failed_reopening_gives_reason_and_next_try(watched: Watched) -> None:
    with watched.running(OPENING.replace("OPENING", "open_s: 0")):
        watched.until(0, "healthy")
        (watched.folder / "shut").touch()
        os.kill(watched.status()["processes"]["slow.0"]["pid"], signal.SIGKILL)
        assert "no frame has gone through" in watched.until(2, "times in a row, last of: ")
        [trouble] = [one for one in watched.status()["troubles"] if one["where"] == "slow.0"]
        assert "the file shut is there" in trouble["why"]
        assert " it is started again in " in trouble["why"] or trouble["why"].endswith(" it is being opened again")
        (watched.folder / "shut").unlink()
        watched.until(0, "healthy")
