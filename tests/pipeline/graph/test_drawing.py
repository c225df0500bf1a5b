"""Pictures of graphs: everything in it is in them, and no secret."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable

import pytest

from camgraph.pipeline.graph import Graph
from camgraph.pipeline.graph.drawing import dot, mermaid

Parse = Callable[..., Graph]

GRAPH = """\
version: 1
processes: compact
cameras:
  front: {}
  yard: {fail: ""}
stages:
  count: {use: count_source}
  model: {use: null_model, from: count, batch: {max: 8}, threads: 2}
  both: {use: pair, from: {left: count, right: model}}
  actions: {use: emit, from: both}
  log: {use: collect_events, from: actions, with: {path: x}}
"""

MERMAID = """\
flowchart LR
  c_front(["front"])
  c_yard(["yard"])
  subgraph p_count["count.front, count.yard"]
    s_count["count<br>count_source"]
  end
  subgraph p_model["model.0"]
    s_model["model<br>null_model<br>batch 8, 2 threads"]
  end
  subgraph p_both["both.0"]
    s_both["both<br>pair"]
    s_actions["actions<br>emit"]
  end
  subgraph p_outbox["outbox.0"]
    s_outbox["outbox<br>outbox"]
  end
  subgraph p_log["log.0"]
    s_log["log<br>collect_events"]
  end
  c_front -.-> s_count
  c_yard -.-> s_count
  s_count -->|"number<br>block 27"| s_model
  s_count -->|"left: number<br>block 27"| s_both
  s_model -->|"right: number<br>block 27"| s_both
  s_both -.->|"number<br>direct"| s_actions
  s_actions -->|"event<br>block 6"| s_outbox
  s_outbox -->|"event<br>of actions<br>block 64"| s_log
"""


def test_mermaid_shows_cameras_processes_and_queues(parse: Parse) -> None:
    assert mermaid(parse(GRAPH)) == MERMAID


def test_dot_shows_the_same(parse: Parse) -> None:
    drawn = dot(parse(GRAPH))
    assert drawn.count(" -> ") == MERMAID.count("->")
    assert drawn.count("subgraph cluster_") == MERMAID.count("subgraph ")
    assert 's_count -> s_both [label="left: number\\nblock 27"];' in drawn
    assert 's_both -> s_actions [label="number\\ndirect", style=dashed];' in drawn
    assert drawn.count("{") == drawn.count("}")


@pytest.mark.skipif(not shutil.which("dot"), reason="Graphviz is not installed")
def test_graphviz_takes_it(parse: Parse) -> None:
    done = subprocess.run(
        ["dot", "-Tsvg"], input=dot(parse(GRAPH)), capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stderr == ""


def test_many_cameras_are_drawn_as_one(parse: Parse) -> None:
    cameras = ", ".join(f"c{n}: " for n in range(200))
    text = GRAPH.replace('cameras:\n  front: {}\n  yard: {fail: ""}\n', f"cameras: {{{cameras}}}\n")
    drawn = mermaid(parse(text.replace("use: count_source", "use: count_source, cameras_per_process: 1")))
    assert 'c_all(["200 cameras<br>c0 ... c199"])' in drawn
    assert "count.c0 ... count.c199 (200 processes)" in drawn
    assert len(drawn) < 2000


def test_no_secret_is_drawn(parse: Parse, monkeypatch: pytest.MonkeyPatch) -> None:
    from camgraph_test_stages.source import CountCamera, CountSource

    class UrlCamera(CountCamera):
        url: str = ""

    monkeypatch.setattr(CountSource, "camera_type", UrlCamera)
    text = GRAPH.replace("front: {}", 'front: {url: "rtsp://me:${PW}@host/?token=abc"}')
    text = text.replace("cameras:", 'camera_defaults: {url: "rtsp://me:hunter3@other"}\ncameras:')
    for drawn in (mermaid(parse(text, {"PW": "hunter2"})), dot(parse(text, {"PW": "hunter2"}))):
        assert not re.search("hunter|abc", drawn)
        assert "rtsp://***@other" in drawn
        assert "rtsp://***@host" in drawn
