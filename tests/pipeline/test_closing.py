"""Real runs whose processes take long to close, or die of it."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.supervision.supervisor import Supervisor
from camgraph.pipeline.testing import run_graph

CHAIN = """
version: 1
name: {name}
cameras: {{a: {{frames: 40, pace_ms: 2}}}}
stages:
  src: {{use: count_source}}
  mid: {{use: crash, from: src, with: {settings}}}
  out: {{use: collect, from: mid, with: {{path: numbers}}}}
"""


def chain(folder: Path, settings: dict[str, Any]) -> Path:
    path = folder / "graph.yaml"
    path.write_text(CHAIN.format(name=f"e{os.getpid()}", settings=json.dumps({"at_seq": 999, **settings})))
    return path


def test_a_stage_that_takes_long_to_close_is_given_the_time(tmp_path: Path) -> None:
    path = chain(tmp_path, {"how": "close_slowly", "close_s": 6.0, "marker": "closed"})
    outcome, _ = run_graph(load_plan(path), limit_s=60)
    assert (outcome.status, outcome.problems) == (0, [])
    assert (tmp_path / "closed").exists()


def test_slow_close_is_killed_and_reported(tmp_path: Path) -> None:
    path = chain(tmp_path, {"how": "close_slowly", "close_s": 60.0})
    path.write_text(path.read_text() + "drain_s: 2\n")
    outcome, _ = run_graph(load_plan(path), limit_s=60)
    assert outcome.status == 1
    assert outcome.problems == [
        "mid.0 was killed: it did not close within 5 s; data that its stages had not written yet are lost"
    ]


def test_a_stage_that_crashes_while_it_closes_is_no_success(tmp_path: Path) -> None:
    outcome, _ = run_graph(load_plan(chain(tmp_path, {"how": "close_segfault"})))
    assert outcome.status == 1
    assert outcome.problems == [
        "mid.0 died while it closed: signal 11; data that its stages had not written yet are lost"
    ]
    assert len((tmp_path / "numbers").read_text().splitlines()) == 40


def test_who_stops_twice_does_not_wait_for_what_closes_slowly(tmp_path: Path) -> None:
    stops: list[threading.Timer] = []

    def stop_later(supervisor: Supervisor) -> None:
        if not stops:
            stops.extend(threading.Timer(after_s, supervisor.stop) for after_s in (3.0, 3.5))
            for stop in stops:
                stop.start()

    path = chain(tmp_path, {"how": "close_slowly", "close_s": 60.0})
    path.write_text(path.read_text() + "drain_s: 50\n")
    began = time.monotonic()
    outcome, _ = run_graph(load_plan(path), stop_later)
    assert time.monotonic() - began < 30
    assert (outcome.status, outcome.problems) == (0, [])
