"""A sink whose receiver is away waits for it, at whatever place of its process it stands."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.local import LocalRun
from camgraph.pipeline.supervision.supervisor import Supervisor
from camgraph.pipeline.testing import run_graph

AWAY_S = 2.5
FRAMES = 40

NUMBERS = """
version: 1
name: u{pid}
processes: {processes}
cameras: {{a: {{frames: {frames}, pace_ms: 5}}, b: {{frames: {frames}, pace_ms: 5}}}}
stages:
  src: {{use: count_source}}
  head: {{use: {head}, from: src{group}}}
  sum: {{use: running_sum, from: head{group}}}
  out: {{use: collect, from: sum{group}, with: {{path: out, away: away}}}}
"""
EVENTS = """
version: 1
name: u{pid}
processes: {processes}
cameras: {{a: {{frames: {frames}, pace_ms: 5}}, b: {{frames: {frames}, pace_ms: 5}}}}
stages:
  src: {{use: count_source}}
  sum: {{use: running_sum, from: src}}
  emit: {{use: emit, from: sum}}
  out: {{use: collect_events, from: emit, with: {{path: out, away: away}}}}
"""


class Away:
    """While this file is there, the sink takes nothing; it goes a while after `seen`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.timer = threading.Timer(AWAY_S, path.unlink)
        path.touch()

    def seen(self) -> None:
        if self.timer.ident is None:
            self.timer.start()


@pytest.fixture
def away(tmp_path: Path) -> Iterator[Away]:
    away = Away(tmp_path / "away")
    yield away
    away.timer.cancel()


def write(folder: Path, text: str, **values: str) -> Path:
    path = folder / "graph.yaml"
    path.write_text(text.format(pid=os.getpid(), frames=FRAMES, **values))
    return path


def expected() -> list[str]:
    """Each frame once, with the sum that only a stage has that saw every frame once."""
    sums = [sum(n * (n + 1) for n in range(seq + 1)) for seq in range(FRAMES)]
    return sorted(f"{camera} 0 {seq} {value}" for camera in "ab" for seq, value in enumerate(sums))


@pytest.mark.parametrize(
    ("processes", "head", "group"),
    [
        ("separate", "null_model", ""),
        ("separate", "null_model", ", group: head"),
        ("separate", "thin, with: {every: 1}", ", group: head"),
        ("compact", "null_model", ""),
        ("one", "null_model", ""),
    ],
)
def test_a_sink_behind_other_stages_is_waited_for(
    tmp_path: Path, away: Away, processes: str, head: str, group: str
) -> None:
    blocked: set[str] = set()

    def look(supervisor: Supervisor) -> None:
        blocked.update(stage.blocked_on for stage in supervisor.status().stages.values())
        if blocked - {""}:
            away.seen()

    if processes == "one":
        away.seen()

    plan = load_plan(write(tmp_path, NUMBERS, processes=processes, head=head, group=group))
    outcome, _ = run_graph(plan, look)
    assert not away.path.exists()
    assert (outcome.status, outcome.problems) == (0, [])
    assert sorted((tmp_path / "out").read_text().splitlines()) == expected()
    if processes != "one":
        assert blocked - {""} == {"out: the file away is there"}


@pytest.mark.parametrize("processes", ["separate", "compact", "one"])
def test_a_sink_of_events_is_waited_for(tmp_path: Path, away: Away, processes: str) -> None:
    away.seen()
    outcome, _ = run_graph(load_plan(write(tmp_path, EVENTS, processes=processes)))
    assert not away.path.exists()
    assert (outcome.status, outcome.problems) == (0, [])
    lines = (tmp_path / "out").read_text().splitlines()
    assert sorted(line.rpartition(" ")[0] for line in lines) == expected()


def test_single_process_reports_wait_and_stops_in_time(tmp_path: Path) -> None:
    (tmp_path / "away").touch()
    path = write(tmp_path, EVENTS, processes="one")
    path.write_text(path.read_text() + "drain_s: 2\n")
    blocked: set[str] = set()

    def tell(run: LocalRun) -> None:
        blocked.update(stage.blocked_on for stage in run.status().stages.values())
        if blocked - {""} and not stopped:
            stopped.append(True)
            run.stop()

    stopped: list[bool] = []
    outcome = LocalRun(load_plan(path), tell).run()
    assert blocked - {""} == {"out: the file away is there"}
    assert outcome.status == 1
    assert outcome.problems[0] == "not all was processed within 2 s after the stop: out: the file away is there"
    assert outcome.problems[1].startswith("out did not take all events")


def test_a_close_is_obeyed_while_something_is_held(tmp_path: Path) -> None:
    (tmp_path / "away").touch()
    seen: list[str] = []

    def stop_twice(supervisor: Supervisor) -> None:
        blocked = [stage.blocked_on for stage in supervisor.status().stages.values() if stage.blocked_on]
        if blocked and not seen:
            seen.extend(blocked)
            supervisor.stop()
            supervisor.stop()

    plan = load_plan(write(tmp_path, NUMBERS, processes="compact", head="null_model", group=""))
    outcome, status = run_graph(plan, stop_twice)
    assert seen
    assert outcome.problems == []
    assert not any(process["pid"] for process in status["processes"].values())
    assert (tmp_path / "out").read_text() == ""
