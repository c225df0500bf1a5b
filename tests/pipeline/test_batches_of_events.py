"""A sink that asks for large batches of events gets them once many wait for it."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from camgraph_test_stages.waiting import until

from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.testing import run_graph

FRAMES, MOST = 300, 100
GRAPH = """
version: 1
name: b{pid}
hang_s: 60
cameras: {{a: {{frames: {frames}}}}}
stages:
  src: {{use: count_source}}
  emit: {{use: emit, from: src}}
  slow:
    use: collect_events
    from: emit
    batch: {{max: {most}}}
    with: {{path: taken, calls: calls, waits_for: go}}
  log: {{use: collect_events, from: emit, with: {{path: all}}}}
"""


def test_a_sink_that_is_behind_gets_full_batches(tmp_path: Path) -> None:
    graph = tmp_path / "graph.yaml"
    graph.write_text(GRAPH.format(pid=os.getpid(), frames=FRAMES, most=MOST))
    log = tmp_path / "all"

    def go() -> None:
        until(lambda: log.exists() and len(log.read_text().splitlines()) == FRAMES)
        (tmp_path / "go").touch()

    waiting = threading.Thread(target=go)
    waiting.start()
    outcome, _ = run_graph(load_plan(graph))
    waiting.join()
    assert (outcome.status, outcome.problems) == (0, [])
    calls = list(map(int, (tmp_path / "calls").read_text().split()))
    assert (max(calls), sum(calls)) == (MOST, FRAMES)
    assert [int(line.split()[2]) for line in (tmp_path / "taken").read_text().splitlines()] == [*range(FRAMES)]
