"""Whole graphs with the model on an inference server, which is another process."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tritonclient.grpc", reason="tritonclient is not installed: pip install camgraph[triton]")

import av
from click.testing import CliRunner

from camgraph.pipeline.errors import GraphError
from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.supervision.supervisor import Supervisor
from camgraph.pipeline.testing import run_graph
from camgraph.tools.commands.graph_commands import check

FRAMES = 30
GRAPH = """
version: 1
name: served{pid}
processes: {processes}
hang_s: 60
cameras: {{a: {{url: a.mp4}}, b: {{url: b.mp4}}}}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture, with: {{size: [32, 32]}}}}
  infer: {{use: infer, from: prepare, batch: {{max: 3}}, threads: 2, with: {{{model}}}}}
  people: {{use: decode, from: infer}}
  tracks: {{use: track, from: people, with: {{confirm_s: 0}}}}
  actions: {{use: rules, from: tracks, with: {{rules: [{{id: seen, when: score > 0.01, update: 1ms}}]}}}}
  log: {{use: sink_jsonl, from: actions, with: {{path: events.jsonl, order: time}}}}
"""


@pytest.fixture
def clips(tmp_path: Path) -> None:
    for seed, name in enumerate(("a.mp4", "b.mp4")):
        rng = np.random.default_rng(seed)
        with av.open(str(tmp_path / name), "w") as container:
            stream = container.add_stream("libx264", rate=10)
            stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
            for _ in range(FRAMES):
                pixels = np.full((64, 64, 3), rng.integers(0, 256, 3), np.uint8)
                container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
            container.mux(stream.encode())


def events(folder: Path, model: str, processes: str = "one", during: Callable[[Any], None] | None = None) -> list[str]:
    """Of a run of the graph, but for the name and hash of the model; nothing may be lost or dropped."""
    graph = folder / "graph.yaml"
    graph.write_text(GRAPH.format(pid=os.getpid(), processes=processes, model=model))
    written = folder / "events.jsonl"
    written.unlink(missing_ok=True)
    outcome, status = run_graph(load_plan(graph), during)
    assert (outcome.status, outcome.problems) == (0, [])
    assert [camera["drops"] for camera in status["cameras"].values()] == [0, 0]
    return [without_model(line) for line in written.read_text().splitlines()]


def without_model(line: str) -> str:
    head, mark, tail = line.partition('"model":{')
    assert mark
    return head + tail.partition("}")[2]


class Restarting:
    """Kills a server once events have been written, and starts it again when the graph waits for it."""

    def __init__(self, server: Any, written: Path) -> None:
        self._server = server
        self._written = written
        self.blocked_on = ""

    def __call__(self, run: Supervisor) -> None:
        if self._server.runs:
            if not self.blocked_on and self._written.exists() and self._written.stat().st_size:
                self._server.kill()
            return
        self.blocked_on = run.status().stages["infer"].blocked_on
        if self.blocked_on:
            self._server.start()


@pytest.mark.usefixtures("clips")
def test_server_gives_same_events_as_file_despite_restart(
    tmp_path: Path, served: Callable[..., Any], models: Any
) -> None:
    path = models.pose("pose.onnx")
    server = served({"pose": {"path": str(path), "max_batch_size": 2}})
    by_server = f'server: {{url: "{server.url}", model: pose, timeout_s: 20}}'
    local = events(tmp_path, "model: pose.onnx")
    assert len(local) > 2 * FRAMES
    assert events(tmp_path, by_server) == local
    server.goes_wrong(delay_s=0.05)
    restarting = Restarting(server, tmp_path / "events.jsonl")
    assert events(tmp_path, by_server, "separate", restarting) == local
    assert restarting.blocked_on.startswith(f"infer: model pose on {server.url}: ")
    assert restarting.blocked_on.endswith("; frames wait for it")


@pytest.mark.usefixtures("clips")
def test_a_graph_is_checked_without_its_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(tmp_path, 'server: {url: "10.255.255.1:8001", model: pose, version: 2}')
    stages = {stage.name: stage.settings for process in plan.processes for stage in process.stages}
    assert stages["people"]["server"] == {"url": "10.255.255.1:8001", "model": "pose", "version": "2"}
    result = CliRunner().invoke(check, [str(tmp_path / "graph.yaml")])
    assert result.exit_code == 0
    assert "infer: not known before the run: what model pose:2 on 10.255.255.1:8001 takes and gives" in result.output
    monkeypatch.delenv("TRITON_TOKEN", raising=False)
    for model, text in [
        ("", "expected either `model` (a file) or `server` (a model on a server), got neither"),
        ('model: a.onnx, server: {url: "x:1", model: y}', "`server` (a model on a server), got both"),
        ('server: {url: "http://u:secret@x:8001", model: y}', "expected host:port of the server's gRPC endpoint"),
        ('server: {url: "grpc://x:8001?api_key=secret", model: y}', "such as 10.0.0.5:8001, got `***`"),
        ('server: {url: "x:8001/token=secret", model: y}', "such as 10.0.0.5:8001, got `***`"),
        ('server: {url: "x:70000", model: y}', "such as 10.0.0.5:8001, got `x:70000`"),
        ('server: {url: "x:1", model: y, ca: ca.pem}', "`ca` is for connections with `tls: true`"),
        (
            'server: {url: "x:1", model: y, token_env: T}',
            "the token would travel to x:1 in clear text: add `tls: true`",
        ),
        ('server: {url: "x:1", model: y, tls: true, ca: ca.pem}', "no such file of certificates: "),
        ('server: {url: "x:1", model: y, tls: true, token_header: grpc-x}', "which gRPC keeps for itself"),
        ('server: {url: "[::1]:1", model: y, token_env: TRITON_TOKEN}', "variable TRITON_TOKEN is not set"),
        ('server: {url: "x:1", model: y}, precision: bf16', "`precision` is for models that run on this machine"),
    ]:
        with pytest.raises(GraphError) as raised:
            planned(tmp_path, model)
        [problem] = raised.value.problems
        assert text in problem.text, problem.text
        assert problem.line == 10
        assert "secret" not in problem.text


def planned(folder: Path, model: str) -> Any:
    graph = folder / "graph.yaml"
    graph.write_text(GRAPH.format(pid=os.getpid(), processes="one", model=model))
    return load_plan(graph)
