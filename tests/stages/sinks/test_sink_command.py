from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from camgraph_test_stages.delivering import delivering, hand_in, refusal, refused_for_now
from camgraph_test_stages.incident_views import incident
from camgraph_test_stages.waiting import until

from camgraph.pipeline.errors import Unavailable
from camgraph.pipeline.messages import Event
from camgraph.pipeline.system import redaction
from camgraph.pipeline.testing import feed, reports_of
from camgraph.stages.sinks.sink_command import SinkCommand, SinkCommandSettings

pytestmark = pytest.mark.processes

PROGRAM = """#!{python}
import json, os, pathlib, sys, time
out = pathlib.Path({folder!r})
event = json.loads(sys.stdin.readline())
with (out / "runs").open("a") as file:
    file.write(json.dumps({{"id": event["id"], "args": sys.argv[1:], "env": dict(os.environ)}}) + "\\n")
how = (out / "how").read_text() if (out / "how").exists() else "0"
print("last words of", event["id"], flush=True)
if how == "babble":
    for _ in range(2000):
        sys.stdout.write("blah " * 2000)
    how = "5"
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


@contextmanager
def sink_to(command: list[str], folder: Path, **more: Any) -> Iterator[SinkCommand]:
    with delivering(SinkCommand, {"command": command, **more}, folder) as stage:
        yield stage


def start(name: str = "a", **data: Any) -> Event:
    return incident(name, "start", camera="room-3", **data).event


def long_ago(stage: SinkCommand, event: Event) -> Event:
    """The same event, committed in 1970, as if the sink had had it since then."""
    stage._waiting_times._since.clear()
    return replace(event, committed_ns=1)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


def test_the_program_gets_the_event_and_its_main_facts(program: Program, tmp_path: Path) -> None:
    event = start(snapshot="footage/a.jpg", action="$(touch oops); `x`\0y")
    with sink_to(["./program", "on", "$HOME"], tmp_path) as stage:
        hand_in(stage, [event, start("b")])
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
    with sink_to(["./program"], tmp_path, tries=3) as stage:
        hand_in(stage, [start()])
        [letter] = stage.context.dead_letters
        program.ends("0")
        hand_in(stage, [start("b")])
        assert reports_of(stage).counts == {("dropped.refused", "room-3"): 1, ("written", "room-3"): 1}
    assert [run["id"] for run in program.runs] == [start().own_id] * 3 + [start("b").own_id]
    assert letter.why == f"program: ended with status 3: last words of {start().own_id}, 3 times"
    assert letter.attempts == 3


def test_a_program_that_takes_too_long_is_killed(program: Program, tmp_path: Path) -> None:
    program.ends("sleep")
    with sink_to(["./program"], tmp_path, limit="1s", tries=1) as stage:
        hand_in(stage, [start()])
        [letter] = stage.context.dead_letters
    assert "did not end within 1 s" in letter.why
    until(lambda: not is_running(program.pid))


def test_a_sink_that_closes_leaves_no_program(program: Program, tmp_path: Path) -> None:
    program.ends("sleep")
    with sink_to(["./program"], tmp_path) as stage:
        with pytest.raises(Unavailable, match="is running") as waits:
            feed(stage, [start()])
        assert waits.value.patient
        assert is_running(program.pid)
    until(lambda: not is_running(program.pid))


def test_the_program_of_an_event_that_expires_is_killed(program: Program, tmp_path: Path) -> None:
    program.ends("sleep")
    late = start()
    with sink_to(["./program"], tmp_path, expires="1h") as stage:
        with pytest.raises(Unavailable, match="is running"):
            feed(stage, [late])
        pid = program.pid
        program.ends("0")
        expired = long_ago(stage, late)
        hand_in(stage, [expired, start("b")])
        until(lambda: not is_running(pid))
        assert reports_of(stage).counts == {("dropped.expired", "room-3"): 1, ("written", "room-3"): 1}


def test_the_next_event_does_not_inherit_failures_of_an_expired(program: Program, tmp_path: Path) -> None:
    program.ends("3")
    late = start()
    with sink_to(["./program"], tmp_path, tries=2, expires="1h") as stage:
        assert "status 3" in refusal(stage, [late])
        expired = long_ago(stage, late)
        hand_in(stage, [expired])
        assert "status 3" in refusal(stage, [start("b")])
        hand_in(stage, [start("b")])
        assert [letter.why[-7:] for letter in stage.context.dead_letters][1:] == ["2 times"]
    assert [run["id"] for run in program.runs].count(start("b").own_id) == 2


@pytest.mark.parametrize("status", ["124", "137"])
def test_a_program_may_end_with_any_status_of_its_own(program: Program, tmp_path: Path, status: str) -> None:
    program.ends(status)
    with sink_to(["./program"], tmp_path, tries=1) as stage:
        hand_in(stage, [start()])
        [letter] = stage.context.dead_letters
    assert letter.why == f"program: ended with status {status}: last words of {start().own_id}"


def test_of_much_output_the_end_is_kept(program: Program, tmp_path: Path) -> None:
    program.ends("babble")
    with sink_to(["./program"], tmp_path, tries=1) as stage:
        hand_in(stage, [start()])
        [letter] = stage.context.dead_letters
    assert letter.why == "program: ended with status 5: " + ("blah " * 100).strip()


def test_output_is_never_on_the_disk(program: Program, tmp_path: Path) -> None:
    program.ends("sleep")
    with sink_to(["./program"], tmp_path) as stage:
        assert refused_for_now(stage, [start()]) == ""
        assert Path(f"/proc/{program.pid}/fd/1").readlink().name.startswith("pipe:")


def test_what_a_program_leaves_behind_is_not_waited_for(tmp_path: Path) -> None:
    left = ["sh", "-c", f"sleep 600 & echo $! > {tmp_path}/pid; echo no door; exit 4"]
    with sink_to(left, tmp_path, tries=1) as stage:
        hand_in(stage, [start()])
        [letter] = stage.context.dead_letters
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert letter.why == "sh: ended with status 4: no door"


@pytest.mark.parametrize(
    "name", ["/etc/hosts", "../secret.jpg", "footage/../../secret.jpg", "link/a.jpg", "asset:x.jpg", "~nobody-77/a", ""]
)
def test_a_file_elsewhere_is_not_named(program: Program, tmp_path: Path, name: str) -> None:
    (tmp_path / "footage").mkdir()
    (tmp_path / "link").symlink_to("/etc")
    with sink_to(["./program"], tmp_path) as stage:
        hand_in(stage, [start(snapshot=name, clip="footage/a.mp4")])
    [run] = program.runs
    assert run["env"]["CAMGRAPH_SNAPSHOT"] == ""
    assert run["env"]["CAMGRAPH_CLIP"] == str(tmp_path / "footage/a.mp4")


@pytest.fixture
def abandoned(program: Program, tmp_path: Path) -> int:
    """The process id of a program whose sink was killed while it ran."""
    program.ends("sleep")
    child = os.fork()
    if not child:  # a process that is about to be killed
        with sink_to(["./program"], tmp_path, limit="1s") as stage:
            hand_in(stage, [start()])
        os._exit(0)
    pid = program.pid
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return pid


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_program_ends_in_time_though_the_sink_is_killed(abandoned: int) -> None:
    until(lambda: not is_running(abandoned))


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_the_next_process_of_the_sink_ends_the_program_left(program: Program, abandoned: int, tmp_path: Path) -> None:
    program.ends("0")
    with sink_to(["./program"], tmp_path) as stage:
        assert not is_running(abandoned)
        hand_in(stage, [start()])


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


@pytest.mark.parametrize(
    ("first", "told"),
    [
        ("#!/no/such/python -u", "there is no /no/such/python, which the first line of"),
        ("#! /usr/bin/env no-such-python", "there is no no-such-python, which"),
        ("#!/bin/sh\r", r"there is no /bin/sh\r, which the first line of {path} names: save it with the line breaks"),
        ("#!/bin/sh", ""),
        ("#!/usr/bin/env -S A=1 sh -e", ""),
        ("#!", ""),
    ],
)
def test_a_missing_interpreter_is_a_mistake_not_a_failed_event(tmp_path: Path, first: str, told: str) -> None:
    path = tmp_path / "script"
    path.write_text(f"{first}\nexit 0\n", newline="")
    path.chmod(0o755)
    problems = [why for _, why in SinkCommand.check(SinkCommandSettings(command=["./script"]), tmp_path)]
    assert len(problems) == bool(told)
    with sink_to(["./script"], tmp_path, tries=1) as stage:
        if told:
            assert told.format(path=path) in problems[0]
            assert told.format(path=path) in refusal(stage, [start()])
            path.write_text("#!/bin/sh\nexit 0\n")
        hand_in(stage, [start()])
        assert reports_of(stage).counts == {("written", "room-3"): 1}


def test_a_secret_is_no_argument(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_known", set())
    monkeypatch.setattr(redaction, "_any_known", None)
    redaction.hide(["tok/en-77"])
    for argument, found in (("--token=tok/en-77", 1), ("http://h/x?q=tok%2Fen-77", 1), ("--url=http://h/x?q=1", 0)):
        settings = SinkCommandSettings(command=["sh", "siren.sh", argument])
        problems = list(SinkCommand.check(settings, tmp_path))
        assert [path for path, _ in problems] == [("command", 2)] * found
        assert "tok" not in str(problems).replace("token", "")


def test_no_half_of_a_secret_is_in_the_last_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_known", set())
    monkeypatch.setattr(redaction, "_any_known", None)
    redaction.hide(["0123456789"])
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\nprintf 0123456789{'x' * 495}\nexit 5\n")
    program.chmod(0o755)
    with delivering(SinkCommand, {"command": ["./program"], "tries": 1}, folder=tmp_path) as stage:
        hand_in(stage, [start()])
        [letter] = stage.context.dead_letters
    assert set(letter.why.rpartition(": ")[2]) <= set("*x")
