"""Secrets of a run: hidden wherever they occur, and the processes of a run cannot be made to tell them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from camgraph_test_stages.waiting import until

pytestmark = pytest.mark.cold  # /proc/PID/environ is looked at

SECRET = "Zq9 w/ord's"
GRAPH = """
version: 1
name: s{pid}
processes: {processes}
pass_environment: [PASSED_ON, WHOLE_*]
cameras: {{a: {{frames: 12}}}}
stages:
  src: {{use: count_source}}
  bad: {{use: crash, from: src, with: {crash}}}
  out: {{use: collect, from: bad, with: {{path: numbers}}}}
"""
PLACES = ["${secret:door}", "${file:FILE}", "${DOOR_PASSWORD}", "rtsp://viewer:${DOOR}@10.0.0.1/x"]


def run(folder: Path, processes: str, crash: dict[str, Any], *words: str, **environ: str) -> str:
    """All that a run says on both streams."""
    (folder / "g.yaml").write_text(GRAPH.format(pid=os.getpid(), processes=processes, crash=json.dumps(crash)))
    done = subprocess.run(
        [sys.executable, "-m", "camgraph.tools.cli", "run", "g.yaml", *words],
        cwd=folder,
        env={**os.environ, "XDG_STATE_HOME": str(folder / "state"), **environ},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("processes", ["separate", "one"])
@pytest.mark.parametrize("place", PLACES)
def test_a_secret_is_hidden_wherever_its_value_occurs(tmp_path: Path, processes: str, place: str) -> None:
    (tmp_path / "door").write_text(SECRET + "\n")
    note = place.replace("FILE", str(tmp_path / "door"))
    given = {"CREDENTIALS_DIRECTORY": str(tmp_path), "DOOR_PASSWORD": SECRET, "DOOR": SECRET}
    result = run(tmp_path, processes, {"how": "speak", "note": note}, "--json-logs", **given)
    lines = [json.loads(line) for line in result.splitlines()]
    assert any(line["event"] == "spoken" and "***" in line["note"] for line in lines)
    assert any("ValueError: " in line.get("exception", "") for line in lines)
    assert any(line.get("text", "").startswith("a note: ") for line in lines if "process" in line) or processes == "one"
    for spelling in ("Zq9", quote(SECRET, safe="")):
        assert spelling not in result


@pytest.mark.parametrize("confidential", [True, False])
def test_processes_get_only_needed_environment(tmp_path: Path, *, confidential: bool) -> None:
    note = "rtsp://u:literal@h/x" if confidential else "nothing"
    given = {"OTHER_PASSWORD": "a", "PASSED_ON": "b", "WHOLE_LOT": "c", "READ": "d", "TZ": "UTC", "ORT_X": "e"}
    run(tmp_path, "separate", {"how": "confess", "note": note, "reads": ["READ"]}, **given)
    output = json.loads((tmp_path / "confession").read_text())
    has = {name for name in given if name in output["environ"]}
    assert has == {"PASSED_ON", "WHOLE_LOT", "READ", "TZ", "ORT_X"}
    assert {"PATH", "HOME"} <= output["environ"].keys()
    at_start = {one.partition("=")[0] for one in output["at_start"]}
    assert not at_start & {"OTHER_PASSWORD", "PASSED_ON", "WHOLE_LOT", "READ"}
    assert output["dumpable"] == (0 if confidential else 1)
    assert (output["core"] == [0, 0]) or not confidential


def test_same_user_cannot_inspect_run_with_credentials(tmp_path: Path) -> None:
    """Not into the process that was started, nor into those that it started; root's own power is taken away first."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("no setpriv")
    powerless = [setpriv, "--inh-caps=-all", *(["--bounding-set=-all"] if os.getuid() == 0 else [])]
    (tmp_path / "g.yaml").write_text(
        GRAPH.format(pid=os.getpid(), processes="separate", crash='{at_seq: 9999999, note: "${secret:DOOR}"}').replace(
            "{frames: 12}", "{frames: 10000000, pace_ms: 50}"
        )
    )
    command = [*powerless, sys.executable, "-m", "camgraph.tools.cli", "run", "g.yaml", "--quiet"]
    environ = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "DOOR": SECRET}
    with subprocess.Popen(command, cwd=tmp_path, env=environ) as process:
        try:
            numbers = tmp_path / "numbers"
            # What stands there went through all processes: each of them has been told what it is.
            until(lambda: numbers.exists() and numbers.stat().st_size, 200)
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            assert len(children) == 5, "four processes, and the fork server"
            for pid in (str(process.pid), *children):
                look = [*powerless, "cat", f"/proc/{pid}/environ"]
                seen = subprocess.run(look, capture_output=True, text=True, check=False)
                assert SECRET not in seen.stdout
                line = Path(f"/proc/{pid}/cmdline").read_text()
                holds_it = "bad.0" in line or "camgraph.tools.cli" in line
                assert bool(seen.returncode) is holds_it
        finally:
            process.terminate()
