"""What a person at a terminal sees of a run with a page: where to look, how to get in, how to stop."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from camgraph_test_stages.brokers import free_port
from camgraph_test_stages.services import WITHIN_S
from camgraph_test_stages.waiting import until

from camgraph.pipeline.graph import load_plan
from camgraph.tools.commands.way_in import ways_in

GRAPH = """
version: 1
name: g
cameras: {{a: {{frames: 1000000, pace_ms: 20, live: true}}}}
stages:
  src: {{use: count_source}}
  emit: {{use: emit, from: src}}
  log: {{use: sink_jsonl, from: events, with: {{path: events.jsonl}}}}
{page}
"""
LONG = "a-token-that-is-long"
STOPS = "Ctrl-C stops camgraph; closing the browser does not."


def _ways_in(folder: Path, page: str, *, has_terminal: bool = True) -> list[str]:
    path = folder / "g.yaml"
    path.write_text(GRAPH.format(page=page))
    return ways_in(load_plan(path), has_terminal=has_terminal)


def test_a_run_without_a_page_says_nothing(tmp_path: Path) -> None:
    assert _ways_in(tmp_path, "") == []


def test_the_usual_page_is_on_this_machine(tmp_path: Path) -> None:
    lines = ["Open http://127.0.0.1:8350/ in a browser of this machine."]
    assert _ways_in(tmp_path, "  page: {use: serve, from: events}") == [*lines, STOPS]
    assert _ways_in(tmp_path, "  page: {use: serve, from: events}", has_terminal=False) == lines


def test_a_page_for_others_says_whose_tokens_open_it(tmp_path: Path) -> None:
    for name in ("cert.pem", "key.pem"):
        (tmp_path / name).touch()
    tokens = f"[{{name: ward 3, role: viewer, token: {LONG}-1}}, {{name: night, role: admin, token: {LONG}-2}}]"
    settings = f'{{address: "0.0.0.0:8443", certificate: cert.pem, key: key.pem, tokens: {tokens}}}'
    lines = _ways_in(tmp_path, f"  desk: {{use: serve, from: events, with: {settings}}}")
    assert lines == [
        f"Open https://{socket.gethostname()}:8443/ in a browser.",
        "The page asks for a token: type that of ward 3 or night (`tokens` of the stage `desk`).",
        STOPS,
    ]


@pytest.mark.processes
def test_a_person_at_a_terminal_sees_where_to_look(tmp_path: Path) -> None:
    port = free_port()
    (tmp_path / "g.yaml").write_text(GRAPH.format(page=""))
    output = _seen_on_terminal(tmp_path, ["serve", "g.yaml", "--address", f"127.0.0.1:{port}"], until_seen=STOPS)
    assert f"Open http://127.0.0.1:{port}/ in a browser of this machine." in output
    assert "[info" not in output, "the live table shows more than the log of successes"


def _seen_on_terminal(folder: Path, arguments: list[str], *, until_seen: str) -> str:
    """What a terminal got, until it had these words and the run was stopped with Ctrl-C."""
    runs = tempfile.mkdtemp(prefix="cg")  # a short path, for the addresses of sockets
    environ = {**os.environ, "CAMGRAPH_RUN_DIR": runs, "XDG_STATE_HOME": str(folder / "state"), "TERM": "xterm"}
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "camgraph.tools.cli", *arguments]
    environ["PYTHONPATH"] = str(Path(__file__).parents[3] / "src")
    run = subprocess.Popen(command, cwd=folder, env=environ, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    os.set_blocking(ours, False)
    output = bytearray()

    def has_ended() -> bool:
        _read(ours, output)
        return run.poll() is not None

    try:
        until(lambda: has_ended() or until_seen.encode() in output, WITHIN_S, output.decode, every_s=0.05)
        run.send_signal(signal.SIGINT)
        until(has_ended, WITHIN_S, output.decode, every_s=0.05)
        assert run.returncode == 130
    finally:
        run.kill()
        run.wait()
        os.close(ours)
        shutil.rmtree(runs, ignore_errors=True)
    return output.decode()


def _read(terminal: int, output: bytearray) -> None:
    try:
        while piece := os.read(terminal, 1 << 16):
            output += piece
    except OSError:  # nothing more for now, or its other end is closed
        return
