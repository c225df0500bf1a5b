"""Cameras do not wait for the page, however slowly that starts; a mistake in its settings still ends the run."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import pytest

from camgraph.pipeline.errors import EXIT_ENVIRONMENT
from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.supervision.supervisor import Supervisor
from camgraph.pipeline.testing import run_graph

GRAPH = """
version: 1
name: slow{pid}
cameras: {{a: {{frames: 100, pace_ms: 10}}}}
stages:
  src: {{use: count_source}}
  sum: {{use: running_sum, from: src}}
  emit: {{use: emit, from: sum}}
  log: {{use: sink_jsonl, from: events, with: {{path: events.jsonl}}}}
  page: {{use: serve, from: events, with: {{address: "127.0.0.1:{port}"}}}}
"""


def write_graph(folder: Path, port: int = 0) -> Path:
    path = folder / "graph.yaml"
    if not port:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
    path.write_text(GRAPH.format(pid=os.getpid(), port=port))
    return path


@pytest.mark.processes
def test_cameras_are_judged_while_the_page_has_not_started(tmp_path: Path) -> None:
    """Its process is stopped as soon as it is there, until all events of the cameras are in the file."""
    stopped: list[int] = []
    written: list[int] = []

    def during(supervisor: Supervisor) -> None:
        [page] = [process for process in supervisor.processes if process.plan.name.startswith("page")]
        if page.pid and not stopped:
            assert page.state == "starting"
            os.kill(page.pid, signal.SIGSTOP)
            stopped.append(page.pid)
        events = tmp_path / "events.jsonl"
        count = len(events.read_bytes().splitlines()) if events.exists() else 0
        if stopped and not written and count == 100:
            assert (supervisor.phase, page.state) == ("running", "starting")
            written.append(count)
            os.kill(stopped[0], signal.SIGCONT)

    outcome, status = run_graph(load_plan(write_graph(tmp_path)), during)
    assert (outcome.status, outcome.problems) == (0, [])
    assert written == [100]
    assert ["written", "a", 200] in status["counts"], "the page gets the events of the time before, as the file did"


@pytest.mark.processes
def test_a_port_that_is_in_use_ends_the_run(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        outcome, _ = run_graph(load_plan(write_graph(tmp_path, taken.getsockname()[1])))
    assert outcome.status == EXIT_ENVIRONMENT
