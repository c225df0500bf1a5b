"""A started process in its first moments: where its modules come from, and what it is told before it can hear."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.monitoring.reports import Report
from camgraph.pipeline.supervision.fleet import Fleet
from camgraph.pipeline.supervision.process import Process
from camgraph.pipeline.system.run_folder import RunFolder
from camgraph.pipeline.testing import run_graph

GRAPH = """
version: 1
name: {name}
cameras: {{a: {{frames: 5}}}}
stages:
  src: {{use: count_source}}
  out: {{use: collect, from: src, with: {{path: numbers}}}}
"""


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    path = tmp_path / "graph.yaml"
    path.write_text(GRAPH.format(name=f"c{os.getpid()}"))
    return path


def test_files_in_the_working_directory_are_no_modules(graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = graph.parent / "here"
    for name in ("queue.py", "av.py", "structlog.py", "camgraph/__init__.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("raise SystemExit('somebody else wrote this')\n")
    monkeypatch.chdir(folder)
    outcome, _ = run_graph(load_plan(graph), limit_s=30)
    assert (outcome.status, outcome.problems) == (0, [])
    assert len((graph.parent / "numbers").read_text().splitlines()) == 5


class Deaths:
    """Collects the exit statuses of dead processes."""

    def __init__(self) -> None:
        self.statuses: list[int] = []

    def reported(self, process: Process, report: Report) -> None:
        pass

    def died(self, process: Process) -> None:
        self.statuses.append(process.life.attempt.exit_status)


def test_orders_that_come_along_with_the_plan_are_obeyed(graph: Path) -> None:
    plan, deaths = load_plan(graph), Deaths()
    folder = RunFolder(plan.graph)
    fleet = Fleet(plan, folder, deaths)
    process = next(iter(fleet.processes))
    try:
        fleet.start(process)
        assert process.channel
        process.channel.send("close")  # long before a new interpreter can read anything
        until = time.monotonic() + 20
        while not deaths.statuses and time.monotonic() < until:
            fleet.listen(100)
        assert deaths.statuses == [0]
    finally:
        process.kill("the test is over")
        fleet.close(lambda: 0.0, lambda: fleet.listen(100))
        folder.close()


def test_a_child_starts_without_rich_and_its_stages_may_use_it() -> None:
    code = "import camgraph.pipeline.worker.child, sys; assert 'rich' not in sys.modules; import rich.table"
    subprocess.run([sys.executable, "-P", "-c", code], check=True, timeout=60)
