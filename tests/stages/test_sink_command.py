from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from camgraph_test_stages.incident_views import incident
from camgraph_test_stages.waiting import until

from pipeline.errors import Unavailable
from pipeline.messages import Event
from pipeline.testing import feed, opened, reports_of
from stages.sink_command import SinkCommand, SinkCommandSettings

PROGRAM = """#!{python}
import json, os, pathlib, sys, time
out = pathlib.Path({folder!r})
event = json.loads(sys.stdin.readline())
with (out / "runs").open("a") as file:
    file.write(json.dumps({{"id": event["id"], "args": sys.argv[1:], "env": dict(os.environ)}}) + "\\n")
how = (out / "how").read_text() if (out / "how").exists() else "0"
print("last words of", event["id"], flush=True)
if how == "sleep":
    (out / "pid").write_text(str(os.getpid()))
    time.sleep(600)
sys.exit(int(how))
"""


class Program:
    """An executable that writes down its runs, and ends as `how` says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "program"
        self.path.write_text(PROGRAM.format(python=sys.executable, folder=str(folder)))
        self.path.chmod(0o755)

    def ends(self, how: str) -> None:
        (self.folder / "how").write_text(how)

    @property
    def runs(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "runs").read_text().splitlines()]

    @property
    def pid(self) -> int:
        path = self.folder / "pid"
        until(lambda: path.exists() and path.read_text())
        return int(path.read_text())


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def push(stage: SinkCommand, events: Sequence[Event], *, within_s: float = 60.0) -> None:
    until_s = time.monotonic() + within_s
    stage._attempts._pauses_s = (0.01,)
    while True:
        try:
            feed(stage, events, batch=len(events))
        except Unavailable:
            if time.monotonic() > until_s:
                raise
            threading.Event().wait(0.01)
        else:
            return


def start(name: str = "a", **data: Any) -> Event:
    return incident(name, "start", camera="room-3", **data).event


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


def test_the_program_gets_the_event_and_its_main_facts(program: Program, tmp_path: Path) -> None:
    event = start(snapshot="footage/a.jpg", action="$(touch oops); `x`\0y")
    with opened(SinkCommand, {"command": ["./program", "on", "$HOME"]}, folder=tmp_path) as stage:
        push(stage, [event, start("b")])
        assert reports_of(stage).counts == {("written", "room-3"): 2}
    first, second = program.runs
    assert (first["id"], second["id"]) == (event.own_id, start("b").own_id)
    assert first["args"] == ["on", "$HOME"]
    facts = {key: value for key, value in first["env"].items() if key.startswith("CAMGRAPH_")}
    assert facts["CAMGRAPH_ACTION"] == "$(touch oops); `x`y"
    assert facts["CAMGRAPH_CAMERA"] == "room-3"
    assert facts["CAMGRAPH_SNAPSHOT"] == str(tmp_path / "footage/a.jpg")
    assert facts["CAMGRAPH_CLIP"] == ""
    assert not (tmp_path / "oops").exists()


def test_a_program_that_fails_is_started_again_and_then_given_up(program: Program, tmp_path: Path) -> None:
    program.ends("3")
    with opened(SinkCommand, {"command": ["./program"], "tries": 3}, folder=tmp_path) as stage:
        push(stage, [start()])
        [letter] = stage.context.dead_letters
        program.ends("0")
        push(stage, [start("b")])
        assert reports_of(stage).counts == {("dropped.refused", "room-3"): 1, ("written", "room-3"): 1}
    assert [run["id"] for run in program.runs] == [start().own_id] * 3 + [start("b").own_id]
    assert letter.why == f"program: ended with status 3: last words of {start().own_id}, 3 times"
    assert letter.attempts == 3


def test_a_program_that_takes_too_long_is_killed(program: Program, tmp_path: Path) -> None:
    program.ends("sleep")
    with opened(SinkCommand, {"command": ["./program"], "limit": "1s", "tries": 1}, folder=tmp_path) as stage:
        push(stage, [start()])
        [letter] = stage.context.dead_letters
    assert "did not end within 1 s" in letter.why
    until(lambda: not is_running(program.pid))


def test_a_sink_that_closes_leaves_no_program(program: Program, tmp_path: Path) -> None:
    program.ends("sleep")
    with opened(SinkCommand, {"command": ["./program"]}, folder=tmp_path) as stage:
        with pytest.raises(Unavailable, match="is running") as waits:
            feed(stage, [start()])
        assert waits.value.patient
        assert is_running(program.pid)
    until(lambda: not is_running(program.pid))


def test_the_program_of_an_event_that_expires_is_killed(program: Program, tmp_path: Path) -> None:
    program.ends("sleep")
    late = start()
    with opened(SinkCommand, {"command": ["./program"], "expires": "1h"}, folder=tmp_path) as stage:
        with pytest.raises(Unavailable, match="is running"):
            feed(stage, [late])
        pid = program.pid
        program.ends("0")
        expired = Event(late.stamp, late.id, late.incident, late.phase, late.body, committed_ns=1)
        push(stage, [expired, start("b")])
        until(lambda: not is_running(pid))
        assert reports_of(stage).counts == {("dropped.expired", "room-3"): 1, ("written", "room-3"): 1}


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_program_ends_in_time_though_the_sink_is_killed(program: Program, tmp_path: Path) -> None:
    program.ends("sleep")
    child = os.fork()
    if not child:  # a process that is about to be killed
        with opened(SinkCommand, {"command": ["./program"], "limit": "1s"}, folder=tmp_path) as stage:
            push(stage, [start()])
        os._exit(0)
    pid = program.pid
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    until(lambda: not is_running(pid))


def test_the_program_gets_the_variables_that_are_named() -> None:
    assert set(SinkCommand.environment(SinkCommandSettings(command=["x"], pass_environment=["DOOR"]))) == {
        "PATH", "HOME", "LANG", "TZ", "DOOR",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["./nothing"], "there is no file"),
        (["no-such-program-anywhere"], "on the PATH"),
        (["./plain"], "chmod +x"),
    ],
)
def test_a_program_that_is_not_there_is_a_mistake(tmp_path: Path, command: list[str], told: str) -> None:
    (tmp_path / "plain").write_text("x")
    [(path, why)] = SinkCommand.check(SinkCommandSettings(command=command), tmp_path)
    assert path == ("command", 0)
    assert told in why
