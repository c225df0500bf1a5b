"""Many files share a few processes and are judged a few at a time: the same results, whatever dies or stops."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from camgraph.pipeline.execution.source_thread import FILES_AT_ONCE, may_start, queued
from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.supervision.supervisor import Supervisor
from camgraph.pipeline.testing import hit, run_graph

FILES = 40
FRAMES = 12
GRAPH = """
version: 1
name: t{pid}
processes: {processes}
cameras: {{{cameras}}}
stages:
  src: {{use: count_source{sharing}}}
  left: {{use: double, from: src}}
  sum: {{use: running_sum, from: left}}
  both: {{use: pair, from: {{left: src, right: sum}}}}
  emit: {{use: emit, from: sum, with: {{every: 2}}}}
  numbers: {{use: collect, from: both, batch: {{max: 8}}, with: {{path: numbers}}}}
  timed: {{use: collect_events, from: emit, batch: {{max: 8}}, with: {{path: timed, order: time}}}}
"""


def results_of(folder: Path, during: Any = None, *, processes: str = "separate", sharing: str = "") -> tuple[Any, ...]:
    """(status, numbers, events) of a run; repeated lines count once."""
    folder.mkdir()
    cameras = ", ".join(f"c{n:02}: {{frames: {FRAMES}, bytes: 5000, pace_ms: 25}}" for n in range(FILES))
    text = GRAPH.format(pid=os.getpid(), processes=processes, cameras=cameras, sharing=sharing)
    (folder / "graph.yaml").write_text(text)
    outcome, status = run_graph(load_plan(folder / "graph.yaml"), during)
    written = [dict.fromkeys((folder / name).read_text().splitlines()) for name in ("numbers", "timed")]
    assert outcome.problems == []
    assert {camera["frames"] for camera in status["cameras"].values()} == {FRAMES} or during
    return outcome.status, sorted(written[0]), list(written[1])


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, ...]:
    """Of a run in one process."""
    found = results_of(tmp_path_factory.mktemp("expected") / "run", processes="one")
    assert (found[0], len(found[1])) == (0, FILES * FRAMES)
    return found


class Watcher:
    """Notes the processes of the source, and how many files have waited at most. Kills one process, if asked."""

    def __init__(self, victim: str = "") -> None:
        self.processes: set[str] = set()
        self.most_queued = 0
        self.victim = victim

    def __call__(self, supervisor: Supervisor) -> None:
        self.processes |= {process.plan.name for process in supervisor.processes if process.plan.sources}
        states = [camera.state for camera in supervisor.status().cameras.values()]
        self.most_queued = max(self.most_queued, states.count("queued"))
        if self.victim and "done" in states and "queued" in states:
            hit(next(process.pid for process in supervisor.processes if process.plan.name == self.victim))
            self.victim = ""


def test_many_files_share_processes_and_take_turns(tmp_path: Path, expected: tuple[Any, ...]) -> None:
    watcher = Watcher()
    assert results_of(tmp_path / "run", watcher) == expected
    assert 1 < len(watcher.processes) < FILES / 4
    assert watcher.most_queued > 0


@dataclass
class Thread:
    """As much of a source as decides who may start."""

    camera: str
    takes_turns: bool = True
    started: bool = False
    is_running: bool = False
    is_ending: bool = False


def test_files_take_turns_and_live_cameras_do_not() -> None:
    files: list[Any] = [Thread(f"f{n}") for n in range(20)]
    live: list[Any] = [Thread(f"l{n}", takes_turns=False) for n in range(20)]
    begun = may_start([*files, *live])
    assert sorted(map(id, begun)) == sorted(map(id, [*files[:FILES_AT_ONCE], *live]))
    assert queued([*files, *live]) == [one.camera for one in files]
    for one in begun:
        one.started = one.is_running = True
    assert may_start([*files, *live]) == []
    assert queued([*files, *live]) == [one.camera for one in files[FILES_AT_ONCE:]]
    files[3].is_running = False
    assert may_start([*files, *live]) == [files[FILES_AT_ONCE]]
    files[-1].is_ending = True
    assert may_start([*files, *live]) == [files[-1], files[FILES_AT_ONCE]], "who is asked to end needs no place"


@pytest.mark.parametrize("victim", ["src.0", "left.0"])
def test_a_death_amid_the_files_loses_nothing(tmp_path: Path, expected: tuple[Any, ...], victim: str) -> None:
    watcher = Watcher(victim)
    assert results_of(tmp_path / "run", watcher) == expected
    assert not watcher.victim, "it was not killed"


def test_a_stop_ends_files_that_have_not_begun(tmp_path: Path, expected: tuple[Any, ...]) -> None:
    stopped: list[bool] = []

    def stop(supervisor: Supervisor) -> None:
        states = [camera.state for camera in supervisor.status().cameras.values()]
        if "done" in states and not stopped:
            stopped.append(True)
            supervisor.stop()

    _, numbers, _ = results_of(tmp_path / "run", stop)
    assert stopped
    assert 0 < len(numbers) < len(expected[1])
    assert set(numbers) < set(expected[1])


def test_files_that_may_have_a_process_each(tmp_path: Path, expected: tuple[Any, ...]) -> None:
    watcher = Watcher()
    assert results_of(tmp_path / "run", watcher, sharing=", cameras_per_process: 2") == expected
    assert len(watcher.processes) == FILES / 2
