"""A run with the stage `serve`, in the background, and those who ask it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from camgraph.tools.commands.explaining.kinds import kinds
from camgraph.tools.lab.blinking import write_clip
from camgraph.tools.lab.broker_servers import free_port
from camgraph.tools.lab.light_model import SIDE, write_model
from camgraph_test_stages.waiting import until

WITHIN_S = 120.0
TOKENS = {role: f"the-token-of-the-{role}" for role in ("viewer", "operator", "admin")}
GRAPH = """
version: 1
name: served
cameras:
  a: {{frames: 1000000, pace_ms: 20, live: true}}
  b: {{frames: 1000000, pace_ms: 20, live: true}}
stages:
  src: {{use: count_source}}
  emit: {{use: emit, from: src, with: {{every: 20}}}}
  log: {{use: sink_jsonl, from: events, with: {{path: log.jsonl, sync: false}}}}
  page: {{use: serve, from: events, with: {{address: "127.0.0.1:{port}"{more}}}}}
"""

PEOPLE = f"""\
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture, with: {{size: [{SIDE}, {SIDE}]}}}}
  infer: {{use: infer, from: prepare, with: {{model: light.onnx}}}}
  people: {{use: decode_yolo_pose, from: infer}}
  tracks: {{use: track, from: people, with: {{confirm_s: 0}}}}"""
"""For `people` of a graph: the stages up to the tracks of somebody whom the model of `write_light` sees at once."""


def with_tokens() -> str:
    """For `more` of GRAPH: a token of each role."""
    listed = ", ".join(f"{{name: {role}, role: {role}, token: {token}}}" for role, token in TOKENS.items())
    return f", tokens: [{listed}]"


def assert_explained(answer: httpx.Response) -> None:
    """An error has the id of its kind, and that has a text. Probes say in the same place how well the run is."""
    if answer.is_error and answer.content and not answer.url.path.endswith(("/healthz", "/readyz")):
        assert answer.json()["id"] in kinds(), answer.text


@dataclass(slots=True)
class Served:
    """A run that serves. `call` asks it as somebody with the token of a role, or as nobody."""

    folder: Path
    port: int
    environ: dict[str, str]

    def call(self, method: str, path: str, role: str = "", **more: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {TOKENS[role]}"} if role else {}
        headers |= more.pop("headers", {})
        url = f"http://127.0.0.1:{self.port}{path}"
        answer = httpx.request(method, url, headers=headers, timeout=WITHIN_S, **more)
        assert_explained(answer)
        return answer

    def get(self, path: str, role: str = "", **more: Any) -> httpx.Response:
        return self.call("GET", path, role, **more)

    def answers(self) -> bool:
        """Whether it is ready."""
        with suppress(httpx.TransportError):
            return self.get("/readyz").status_code == httpx.codes.OK
        return False

    @property
    def log(self) -> str:
        return (self.folder / "run.log").read_text()


def write_light(folder: Path) -> None:
    """cam.mp4, which blinks, and light.onnx, a model that sees somebody in its bright pictures."""
    write_clip(folder / "cam.mp4")
    write_model(folder / "light.onnx", bright=110.0)


@contextmanager
def serving_run(folder: Path, graph: str = GRAPH, *, more: str = "") -> Iterator[Served]:
    """Run `camgraph serve` on this graph, until the block ends; it must end in order then.

    `graph` has places for the `port`, `more` settings of its page, and the stages of PEOPLE as `people`.
    """
    port = free_port()
    (folder / "graph.yaml").write_text(graph.format(port=port, more=more, people=PEOPLE))
    runs = tempfile.mkdtemp(prefix="cg")  # a short path, for the addresses of sockets
    environ = {**os.environ, "CAMGRAPH_RUN_DIR": runs, "XDG_STATE_HOME": str(folder / "state")}
    environ["PYTHONPATH"] = str(Path(__file__).parents[3] / "src")
    command = [sys.executable, "-m", "camgraph.tools.cli", "serve", "graph.yaml", "--json-logs"]
    with (folder / "run.log").open("w") as log:
        run = subprocess.Popen(command, cwd=folder, env=environ, stdout=log, stderr=log)
    served = Served(folder, port, environ)
    try:
        until(lambda: served.answers() or run.poll() is not None, WITHIN_S, lambda: served.log, every_s=0.1)
        assert run.poll() is None, served.log
        yield served
        run.send_signal(signal.SIGINT)
        assert run.wait(WITHIN_S) == 130, served.log
    finally:
        run.kill()
        run.wait()
        shutil.rmtree(runs, ignore_errors=True)
