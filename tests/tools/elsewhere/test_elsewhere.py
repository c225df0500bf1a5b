"""camgraph where there is no POSIX: each command in a Python from which `sitecustomize.py`, beside this, has taken it.

It shows that nothing of it is needed. That DirectML and CoreML work it cannot show.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import av
import pytest
from camgraph_test_stages.clips import write_grey_clip

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
GRAPH = """
version: 1
name: elsewhere
processes: one
cameras: {{door: {{url: {clip}}}}}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture}}
  infer: {{use: infer, from: prepare, threads: 2, with: {{model: {model}}}}}
  people: {{use: decode, from: infer}}
  tracks: {{use: track, from: people}}
  actions:
    use: rules
    from: tracks
    with: {{rules: [{{id: two, scope: scene, when: count >= 2, for: 200ms}}]}}
  log: {{use: sink_jsonl, from: actions, with: {{path: events.jsonl}}}}
  video: {{use: sink_video, from: {{frames: capture, tracks: tracks}}, with: {{path: "videos/{{camera}}.mp4"}}}}
"""
Elsewhere = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def python(tmp_path: Path) -> Elsewhere:
    """Runs a Python there."""
    folders = {
        "PYTHONPATH": os.pathsep.join([str(HERE), str(ROOT / "src")]),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_RUNTIME_DIR": "",
        "CAMGRAPH_RUN_DIR": "",
    }

    def run(*arguments: str | Path, given: str | None = None) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *map(str, arguments)]
        return subprocess.run(
            command,
            input=given,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=240,
            check=False,
            env={**os.environ, **folders},
        )

    return run


@pytest.fixture
def elsewhere(python: Elsewhere) -> Elsewhere:
    """Runs a command of camgraph there."""
    return lambda *arguments: python("-m", "camgraph.tools.cli", *arguments)


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    """Twenty pictures, a second of them ten."""
    return write_grey_clip(tmp_path / "clip.mp4", range(40, 220, 9))


def test_a_graph_in_one_process_runs_to_its_end(
    elsewhere: Elsewhere, two_people: Path, clip: Path, tmp_path: Path
) -> None:
    graph = tmp_path / "graph.yaml"
    graph.write_text(GRAPH.format(clip=clip, model=two_people))
    checked = elsewhere("check", graph)
    assert checked.returncode == 0, checked.stderr
    ran = elsewhere("run", graph)
    assert ran.returncode == 0, ran.stderr
    lines = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [(line["data"]["rule"]["id"], line["data"]["phase"]) for line in lines] == [("two", "start"), ("two", "end")]
    with av.open(str(tmp_path / "videos" / "door.mp4")) as video:
        assert sum(1 for _ in video.decode(video=0)) == 20
    again = elsewhere("run", graph)  # its lines are read back, and added to
    assert (again.returncode, len((tmp_path / "events.jsonl").read_text().splitlines())) == (0, 4), again.stderr


@pytest.mark.parametrize("command", ["inspect", "profile"])
def test_a_model_is_looked_into(elsewhere: Elsewhere, two_people: Path, command: str) -> None:
    result = elsewhere("model", command, two_people)
    assert result.returncode == 0, result.stderr
    assert ("yolo_pose" if command == "inspect" else "Add") in result.stdout


def test_all_modules_of_model_commands_are_there(python: Elsewhere) -> None:
    modules = sorted(path.stem for path in (ROOT / "tools" / "models").glob("*.py"))
    result = python(
        "-c", f"import importlib\nfor name in {modules}: importlib.import_module(f'camgraph.tools.models.{{name}}')"
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_frames_go_through_a_model_and_its_memory_is_not_known(python: Elsewhere, two_people: Path) -> None:
    result = python(
        "-m", "camgraph.tools.models.compare.memory", given=json.dumps({"model": str(two_people), "limit_s": 60})
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == "null"


@pytest.mark.parametrize("command", ["bench", "compare", "quantize", "prepare", "fp16", "export"])
def test_commands_for_models_are_there(elsewhere: Elsewhere, command: str) -> None:
    result = elsewhere("model", command, "--help")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith(f"Usage: python -m camgraph.tools.cli model {command}")


def test_nothing_is_running(elsewhere: Elsewhere) -> None:
    result = elsewhere("status")
    assert result.returncode == 2
    assert "nothing is running" in result.stderr


def test_the_doctor_comes(elsewhere: Elsewhere) -> None:
    result = elsewhere("doctor", "--json")
    found = {one["what"]: one for one in json.loads(result.stdout)}
    assert found["provider cpu"]["state"] == "ok"
    assert found["descriptors"] == {"state": "ok", "what": "descriptors", "found": "not limited here", "cure": ""}


@pytest.mark.parametrize("command", ["check", "run"])
def test_a_graph_in_several_processes_is_refused_with_a_way_out(
    elsewhere: Elsewhere, two_people: Path, clip: Path, tmp_path: Path, command: str
) -> None:
    graph = tmp_path / "graph.yaml"
    graph.write_text(GRAPH.format(clip=clip, model=two_people).replace("processes: one", "processes: compact"))
    result = elsewhere(command, graph)
    assert result.returncode == 3
    assert "several processes needs Linux" in result.stderr
    assert "write `processes: one`" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_sink_that_needs_the_kernel_of_linux_says_so(
    elsewhere: Elsewhere, two_people: Path, clip: Path, tmp_path: Path
) -> None:
    graph = tmp_path / "graph.yaml"
    text = GRAPH.format(clip=clip, model=two_people).replace("sink_jsonl", "sink_socket")
    graph.write_text(text.replace("path: events.jsonl", 'address: "tcp://127.0.0.1:9"'))
    ran = elsewhere("run", graph)
    assert ran.returncode == 3
    assert "sink_socket asks the kernel of Linux" in ran.stderr
    assert "Traceback" not in ran.stderr
