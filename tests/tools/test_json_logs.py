"""With `--json-logs` every line on the standard error is a JSON object, however a run fails."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from camgraph_test_stages.waiting import until

from camgraph.tools.commands.explaining.kinds import kinds

GRAPH = """
version: 1
name: j{pid}
processes: {processes}
cameras: {{a: {{frames: 40, pace_ms: 2}}, b: {{frames: 40, pace_ms: 2}}}}
stages:
  src: {{use: count_source}}
  bad: {{use: crash, from: src, with: {crash}}}
  out: {{use: collect, from: bad, with: {{path: numbers}}}}
"""
CLIP = """
version: 1
name: j{pid}
cameras: {{a: {{url: {url}}}}}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture, with: {{size: [64, 64]}}}}
  infer: {{use: infer, from: prepare, with: {{model: {model}}}}}
  out: {{use: sink_null, from: infer}}
"""
LIMIT_S = 240


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}


def lines_of(message: str) -> list[dict[str, Any]]:
    """Each line as an object with the keys that all have."""
    lines = [json.loads(line) for line in message.splitlines()]
    assert all({"event", "level", "timestamp"} <= line.keys() for line in lines)
    return lines


def run(folder: Path, environ: dict[str, str], *words: str) -> tuple[int, list[dict[str, Any]]]:
    done = subprocess.run(
        [sys.executable, "-m", "camgraph.tools.cli", "run", "--json-logs", *words],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    assert done.stdout == ""
    return done.returncode, lines_of(done.stderr)


def graph(folder: Path, processes: str, **crash: Any) -> str:
    (folder / "g.yaml").write_text(
        GRAPH.format(pid=os.getpid(), processes=processes, crash=json.dumps({"camera": "a", **crash}))
    )
    return "g.yaml"


@pytest.mark.parametrize("processes", ["separate", "one"])
@pytest.mark.parametrize(
    ("how", "status", "error_id"),
    [("raise", 1, "frames-dropped"), ("user_error", 2, "option-value"), ("open", 1, "bug"), ("close", 1, "bug")],
)
def test_a_stage_that_fails(
    tmp_path: Path, environ: dict[str, str], processes: str, how: str, status: int, error_id: str
) -> None:
    at_seq = 999 if how in ("open", "close") else 5
    ended, lines = run(tmp_path, environ, graph(tmp_path, processes, how=how, at_seq=at_seq))
    assert ended == status
    assert error_id in [line.get("error_id") for line in lines if line["event"] == "problem"]
    assert (lines[-1]["event"], lines[-1]["status"]) == ("over", status)


@pytest.mark.parametrize("processes", ["separate", "one"])
def test_what_libraries_and_python_itself_write(tmp_path: Path, environ: dict[str, str], processes: str) -> None:
    _, lines = run(tmp_path, environ, graph(tmp_path, processes, how="speak"))
    texts = [line["text"] for line in lines if line["event"] == "stderr"]
    for begin in ("a library: ", "half a line: ", "no text: ", "Python: ", "logging: "):
        assert any(text.startswith(begin) for text in texts), begin
    assert any("UserWarning: a warning: " in text for text in texts)
    failed = next(line for line in lines if line["event"] == "thread_failed")
    assert "ValueError" in failed["exception"]
    assert "geheim" not in json.dumps(lines)


def test_the_last_words_of_a_process_that_crashes(tmp_path: Path, environ: dict[str, str]) -> None:
    environ |= {"PYTHONFAULTHANDLER": "1"}
    _, lines = run(tmp_path, environ, graph(tmp_path, "separate", how="segfault", marker="once"))
    logged = [line["text"] for line in lines if line["event"] == "stderr" and line["process"] == "bad.0"]
    assert logged[0] == "Fatal Python error: Segmentation fault"
    assert any("_go_wrong" in text for text in logged)


def test_the_last_words_of_the_run_itself(tmp_path: Path, environ: dict[str, str]) -> None:
    environ |= {"PYTHONFAULTHANDLER": "1"}
    status, lines = run(tmp_path, environ, graph(tmp_path, "one", how="segfault"))
    assert status == -signal.SIGSEGV
    assert "Fatal Python error: Segmentation fault" in [line["text"] for line in lines if line["event"] == "stderr"]


def test_a_flood_is_bounded_and_counted(tmp_path: Path, environ: dict[str, str]) -> None:
    _, lines = run(tmp_path, environ, graph(tmp_path, "separate", how="flood"))
    taken = sum(line["event"] == "stderr" for line in lines)
    left_out = sum(line["lines"] for line in lines if line["event"] == "stderr_left_out")
    assert taken + left_out == 1000
    assert taken < 1000


@pytest.mark.parametrize(
    ("words", "status"),
    [([], 2), (["--frobs"], 2), (["g.yaml", "--name"], 2), (["no-such.yaml"], 2), (["."], 2), (["bad.yaml"], 2)],
)
def test_what_is_wrong_with_the_command_line_or_the_graph(
    tmp_path: Path, environ: dict[str, str], words: list[str], status: int
) -> None:
    (tmp_path / "bad.yaml").write_text('version: 1\n"\\e[31m": 1\nstages: {a: {use: nothing}}\n')
    ended, lines = run(tmp_path, environ, *words)
    assert ended == status
    assert [(line["event"], line["status"]) for line in lines] == [("failed", status)]
    assert lines[0]["error_id"] in kinds()


@pytest.mark.parametrize(("url", "model"), [("no.mp4", "no.onnx"), ("broken.mp4", "broken.onnx")])
def test_files_that_are_none(tmp_path: Path, environ: dict[str, str], url: str, model: str) -> None:
    for name in ("broken.mp4", "broken.onnx"):
        (tmp_path / name).write_bytes(b"\x1b[31mnothing" * 99)
    (tmp_path / "g.yaml").write_text(CLIP.format(pid=os.getpid(), url=url, model=model))
    status, lines = run(tmp_path, environ, "g.yaml")
    assert status == 2
    assert lines[-1]["event"] == "failed"


def test_a_bug_of_the_program(tmp_path: Path, environ: dict[str, str]) -> None:
    broken = "from camgraph.tools.commands import run_command as c; c.load_graph = lambda *_, **__: 1 / 0"
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"{broken}; import camgraph.tools.cli; camgraph.tools.cli.main()",
            "run",
            "x.yaml",
            "--json-logs",
        ],
        env=environ,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    [line] = lines_of(done.stderr)
    assert (done.returncode, line["event"], line["error_id"]) == (1, "crashed", "bug")
    assert "ZeroDivisionError" in line["exception"]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 0), (signal.SIGKILL, -9)])
def test_a_run_that_is_ended(tmp_path: Path, environ: dict[str, str], number: int, status: int) -> None:
    name = graph(tmp_path, "separate", how="raise", at_seq=999_999)
    (tmp_path / name).write_text((tmp_path / name).read_text().replace("frames: 40", "frames: 1000000"))
    command = [sys.executable, "-m", "camgraph.tools.cli", "run", name, "--json-logs"]
    with subprocess.Popen(command, cwd=tmp_path, env=environ, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        first = process.stderr.readline()
        until((tmp_path / "numbers").exists, LIMIT_S)
        process.send_signal(number)
        rest = process.stderr.read()
    assert process.returncode == status
    lines_of(first + rest)


def test_a_log_for_people_names_the_same_ids(tmp_path: Path, environ: dict[str, str]) -> None:
    """Also without a terminal: as a service of systemd, this is all that somebody finds later."""

    def told(*words: str) -> str:
        command = [sys.executable, "-m", "camgraph.tools.cli", "run", *words]
        done = subprocess.run(
            command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
        return done.stderr

    assert told("no-such.yaml").splitlines()[-1] == "more: camgraph explain file-missing"
    assert told(graph(tmp_path, "one", how="raise", at_seq=5)).splitlines()[-1].startswith("more: camgraph explain")
