"""Small graphs to run from Python, and a look at what is left of them."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from camgraph_test_stages.clips import write_grey_clip
from camgraph_test_stages.programs import children_of, left_of
from camgraph_test_stages.two_people import write_two_people
from camgraph_test_stages.waiting import until

COUNTING = """
version: 1
name: {name}
cameras: {{{cameras}}}
stages:
  src: {{use: count_source}}
  emit: {{use: emit, from: src}}
"""
SEEING = """
version: 1
name: {name}
cameras: {{{cameras}}}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture, with: {{size: [64, 64]}}}}
  infer: {{use: infer, from: prepare, with: {{model: {model}}}}}
  people: {{use: decode, from: infer}}
  tracks: {{use: track, from: people}}
  actions: {{use: rules, from: tracks, with: {{file: rules.yaml}}}}
  log: {{use: sink_jsonl, from: actions, with: {{path: events.jsonl, mode: replace}}}}
"""
RULES = "version: 1\nrules:\n  - {id: somebody, when: age >= 0.2s}\n"

Graphs = Callable[..., Path]
Script = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(autouse=True)
def nothing_stays(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No process, thread or memory of a run outlives its test, nor does an event reach another test's run."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    yield
    gc.collect()
    until(lambda: not children_of(os.getpid()))
    until(lambda: not left_of(name))
    threads = lambda: [one.name for one in threading.enumerate() if one.name.startswith("camgraph")]  # noqa: E731
    until(lambda: not threads())
    runs = Path(os.environ["CAMGRAPH_RUN_DIR"])
    until(lambda: not list(runs.glob(f"{name}*")))


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """Of runs, different in each test."""
    return f"py{os.getpid()}-{abs(hash(request.node.name)) % 100_000}"


@pytest.fixture
def counting(tmp_path: Path, name: str) -> Graphs:
    """Writes a graph that makes an event of each frame, and has no sink."""

    def write(frames: int = 20, *, cameras: str = "", called: str = name, head: str = "") -> Path:
        path = tmp_path / f"{called}.yaml"
        path.write_text(COUNTING.format(name=called, cameras=cameras or f"a: {{frames: {frames}}}") + head)
        return path

    return write


@pytest.fixture(scope="session")
def two_people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_two_people(tmp_path_factory.mktemp("two_people") / "two_people.onnx")


@pytest.fixture(scope="session")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40 grey frames of 96x64 at 10 a second."""
    return write_grey_clip(tmp_path_factory.mktemp("clip") / "grey.mp4", [90] * 40)


@pytest.fixture
def seeing(tmp_path: Path, name: str, two_people: Path, clip: Path) -> Graphs:
    """Writes a graph with a model that sees the same two people in each of 40 frames of each camera."""

    def write(cameras: str = "") -> Path:
        (tmp_path / "rules.yaml").write_text(RULES)
        path = tmp_path / f"{name}.yaml"
        path.write_text(SEEING.format(name=name, cameras=cameras or f"door: {{url: {clip}}}", model=two_people))
        return path

    return write


@pytest.fixture
def script(tmp_path: Path) -> Iterator[Script]:
    """Starts a program of somebody's, as a file or (`stdin`) without one, in `tmp_path`."""
    started: list[subprocess.Popen[str]] = []

    def start(text: str, *options: str, stdin: bool = False, **environment: str) -> subprocess.Popen[str]:
        path = tmp_path / "program.py"
        path.write_text(text)
        with path.open() as file:
            process = subprocess.Popen(
                [sys.executable, *options, *(["-"] if stdin else [str(path)])],
                stdin=file if stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=tmp_path,
                env={**os.environ, **environment},
            )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
