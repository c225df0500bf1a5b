"""`camgraph plan` on whole graphs: it measures, touches nothing of the user's, and says what is wrong."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from camgraph.pipeline.system.paths import SHARED_MEMORY, runs_folder
from camgraph.pipeline.system.run_folder import RunFolder

Camgraph = Callable[..., CompletedProcess[str]]
GRAPH = """
version: 1
name: {name}
cameras:
  a: {{frames: 100000, pace_ms: 20}}
  b: {{frames: 100000, pace_ms: 20}}
  locked: {{frames: 9, fail: the door is locked}}
stages:
  src: {{use: count_source}}
  twice: {{use: double, from: src}}
  emit: {{use: emit, from: twice}}
  log: {{use: sink_jsonl, from: emit, with: {{path: events.jsonl, mode: replace}}}}
  program: {{use: sink_command, from: emit, with: {{command: [touch, it-ran]}}}}
  alarm: {{use: sink_socket, from: emit, with: {{address: "tcp://127.0.0.1:{port}"}}}}
"""
SECONDS = ("--seconds", 0.5, "--sample", 3)


@pytest.fixture
def receiver() -> Iterator[socket.socket]:
    """Where the sink `alarm` would connect to."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        listening.setblocking(False)
        yield listening


def write_graph(folder: Path, port: int = 9, **replaced: str) -> None:
    text = GRAPH.format(name=f"planned{os.getpid()}", port=port)
    for old, new in replaced.items():
        assert f"{old}:" in text
        text = text.replace(f"{old}: {{frames: 100000, pace_ms: 20}}", new)
    (folder / "g.yaml").write_text(text)


def everything(*folders: Path) -> dict[str, bytes]:
    files = [path for folder in folders for path in folder.rglob("*")]
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in files}


def test_it_plans_and_leaves_nothing_behind(camgraph: Camgraph, tmp_path: Path, receiver: socket.socket) -> None:
    write_graph(tmp_path, receiver.getsockname()[1])
    (tmp_path / "events.jsonl").write_text("mine\n")
    own_temporary = tmp_path / "tmp"
    own_temporary.mkdir()
    before = everything(tmp_path)

    done = camgraph("plan", "g.yaml", "--json", *SECONDS, TMPDIR=str(own_temporary))
    assert done.returncode == 0, done.stderr
    planned = json.loads(done.stdout)

    assert planned["cameras"] == 3
    assert 0 < planned["costs"]["read_fps"] < 75  # of 50 that come; a busy machine reads fewer
    assert planned["most"]["cameras"] > 0
    assert planned["absent"] == {"locked": planned["absent"]["locked"]}
    assert "the door is locked" in planned["absent"]["locked"]
    assert planned["left_out"] == {"log": "sink_jsonl", "program": "sink_command", "alarm": "sink_socket"}
    assert everything(tmp_path) == before
    with pytest.raises(BlockingIOError):
        receiver.accept()
    assert not [path for path in (*SHARED_MEMORY.iterdir(), *runs_folder().glob("*")) if is_left_over(path.name)]


def is_left_over(name: str) -> bool:
    """Whether it belongs to a plan that is over; those of other tests may go on meanwhile."""
    found = re.search(r"(?:^|-)plan-(\d+)", name)
    return found is not None and not Path(f"/proc/{found[1]}").exists()


def test_no_camera_is_there(camgraph: Camgraph, tmp_path: Path) -> None:
    failing = "{frames: 9, fail: it is off}"
    write_graph(tmp_path, a=f"a: {failing}", b=f"b: {failing}")
    done = camgraph("plan", "g.yaml", *SECONDS)
    assert done.returncode in (2, 3)
    assert "it is off" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_that_goes_on(camgraph_here: Camgraph, tmp_path: Path) -> None:
    write_graph(tmp_path)
    with closing(RunFolder(f"planned{os.getpid()}")):
        done = camgraph_here("plan", "g.yaml")
    assert done.returncode == 2
    assert "is going on" in done.stderr
    assert f"camgraph stop --name planned{os.getpid()}" in done.stderr


def test_a_missing_model(camgraph_here: Camgraph, tmp_path: Path) -> None:
    (tmp_path / "g.yaml").write_text(
        "version: 1\ncameras: {a: {url: 'rtsp://127.0.0.1:9/a'}}\nstages:\n  capture: {use: capture}\n"
        "  prepare: {use: preprocess, from: capture}\n  infer: {use: infer, from: prepare, with: {model: none.onnx}}\n"
        "  end: {use: sink_null, from: infer}\n"
    )
    done = camgraph_here("plan", "g.yaml")
    assert done.returncode == 2
    assert "none.onnx" in done.stderr
    assert "g.yaml:6" in done.stderr


def test_a_stage_that_dies(camgraph: Camgraph, tmp_path: Path) -> None:
    """Its processor time would start anew, and the plan would promise too much."""
    write_graph(tmp_path)
    text = (tmp_path / "g.yaml").read_text()
    crash = "twice: {use: crash, from: src, with: {how: exit, camera: a, at_seq: 20, marker: died}}"
    (tmp_path / "g.yaml").write_text(text.replace("twice: {use: double, from: src}", crash))
    done = camgraph("plan", "g.yaml", *SECONDS)
    assert done.returncode == 3
    assert "a process died during the trial (twice.0)" in done.stderr


def test_ctrl_c(tmp_path: Path) -> None:
    write_graph(tmp_path)
    own_temporary = tmp_path / "tmp"
    own_temporary.mkdir()
    command = [sys.executable, "-m", "camgraph.tools.cli", "plan", "g.yaml", "--sample", "1", "--seconds", "600"]
    plan = subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(own_temporary)}
    )
    assert plan.stderr
    with plan, plan.stderr:
        for line in plan.stderr:
            if "waiting for" in line:
                break
        plan.send_signal(signal.SIGINT)
        rest = plan.stderr.read()
        assert plan.wait(60) == 130
    assert "Traceback" not in rest
    assert not list(own_temporary.iterdir())
    assert not [
        path for path in (*SHARED_MEMORY.iterdir(), *runs_folder().glob("*")) if f"plan-{plan.pid}" in path.name
    ]
