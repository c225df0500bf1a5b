"""Programs that tests start as copies of a template behave as executed ones."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from camgraph_test_stages import warm_starts
from camgraph_test_stages.programs import children_of
from camgraph_test_stages.strangers import Person
from camgraph_test_stages.waiting import json_lines, until

SEEN = "camgraph_test_stages.seen_inside"
FEW = {"A": "b", "PYTHONUNBUFFERED": "1", **warm_starts.read_at_start(os.environ)}
GRAPH = """
version: 1
name: {name}
cameras: {{a: {{frames: 1000000, pace_ms: 20}}}}
stages:
  src: {{use: count_source}}
  emit: {{use: emit, from: src}}
  log: {{use: sink_jsonl, from: emit, with: {{path: events.jsonl}}}}
"""


def start(*words: str, **options: Any) -> tuple[subprocess.CompletedProcess[str], bool]:
    """The program's end, and whether it was a copy."""
    executed: list[object] = []
    original = subprocess.Popen._execute_child.__wrapped__  # type: ignore[attr-defined]
    cell = next(cell for cell in subprocess.Popen._execute_child.__closure__ if cell.cell_contents is original)  # type: ignore[attr-defined]

    def noted(*values: Any, **named: Any) -> None:
        executed.append(values)
        original(*values, **named)

    cell.cell_contents = noted
    try:
        command = [sys.executable, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100, **options)
    finally:
        cell.cell_contents = original
    return done, not executed


def both(*words: str, **options: Any) -> list[subprocess.CompletedProcess[str]]:
    """As a copy, and executed."""
    options = {"env": dict(os.environ), **options}
    copy, was_copy = start(*words, **options)
    with warm_starts.cold():
        executed, _ = start(*words, **options)
    assert was_copy
    return [copy, executed]


@pytest.mark.parametrize(
    "options",
    [
        {"input": "some\ntext\n"},
        {"stdin": subprocess.DEVNULL, "start_new_session": True},
        {"stdin": subprocess.DEVNULL, "process_group": 0},
        {"stdin": subprocess.DEVNULL, "env": FEW},
        {"stdin": subprocess.DEVNULL, "cwd": "/"},
    ],
    ids=str,
)
@pytest.mark.parametrize("words", [["-m", SEEN, "one", "zwö"], ["-P", "-m", SEEN]], ids=len)
def test_copy_sees_what_an_executed_program_sees(words: list[str], options: dict[str, Any]) -> None:
    copy, executed = both(*words, **options)
    seen, expected = json.loads(copy.stdout), json.loads(executed.stdout)
    assert seen.pop("environ").items() == expected.pop("environ").items()
    assert seen == expected
    assert (copy.returncode, copy.stderr) == (executed.returncode, executed.stderr) == (7, executed.stderr)


def test_copy_has_the_limits_and_descriptors_it_is_given() -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    ours, theirs = os.pipe()
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limits[0] - 10, limits[1]))
        copy, executed = both("-m", SEEN, stdin=subprocess.DEVNULL, pass_fds=[theirs])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        os.close(ours)
        os.close(theirs)
    seen = json.loads(copy.stdout)
    assert seen == json.loads(executed.stdout)
    assert seen["limit"][0] == limits[0] - 10
    assert str(theirs) in seen["descriptors"]


SCRIPT = """
import atexit, sys
from pathlib import Path
atexit.register(print, "at the end", __name__, Path(__file__).name, sys.argv[1:], Path(sys.path[0]).name)
class Left:
    def __del__(self): print("left")
left = Left()
import beside
sys.exit("it failed")
"""


def test_a_script_runs_as_if_it_were_executed(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "beside.py").write_text("print('beside')")
    copy, executed = both("script.py", "one", cwd=tmp_path)
    assert (copy.returncode, copy.stdout, copy.stderr) == (executed.returncode, executed.stdout, executed.stderr)
    assert copy.stdout == f"beside\nat the end __main__ script.py ['one'] {tmp_path.name}\nleft\n"


@pytest.mark.parametrize("words", [["check", "none.yaml"], ["no-such-command"], ["--version"], []], ids=str)
def test_a_command_says_the_same(words: list[str], tmp_path: Path) -> None:
    copy, executed = both("-m", "camgraph.tools.cli", *words, cwd=tmp_path)
    assert (copy.returncode, copy.stdout, copy.stderr) == (executed.returncode, executed.stdout, executed.stderr)


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["-m", SEEN], {"preexec_fn": lambda: None}),
        (["-m", SEEN], {"env": {**os.environ, "PYTHONHASHSEED": "7"}}),
        (["-m", SEEN], {"env": {**os.environ, "PYTHONPATH": "/somewhere/else:" + ":".join(sys.path)}}),
        (["-m", SEEN], {"env": {**os.environ, "LC_ALL": "C"}}),
        (["-u", "-m", SEEN], {}),
        (["-m", "this"], {}),
        (["-c", "pass"], {}),
    ],
    ids=["preexec", "hash-seed", "path", "locale", "unbuffered", "module-of-another", "code"],
)
def test_what_a_copy_could_not_reproduce_is_executed(words: list[str], options: dict[str, Any]) -> None:
    _, was_copy = start(*words, stdin=subprocess.DEVNULL, **options)
    assert not was_copy


def test_nothing_is_copied_where_the_variable_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(warm_starts.COLD, "1")
    assert not start("-m", SEEN, stdin=subprocess.DEVNULL)[1]


@pytest.mark.cold
def test_nothing_is_copied_in_a_test_with_the_marker() -> None:
    assert not start("-m", SEEN, stdin=subprocess.DEVNULL)[1]


def test_another_user_has_a_copy_of_their_own(person: Callable[[], Person]) -> None:
    owner = person()
    copy = owner.run("-m", SEEN)
    with warm_starts.cold():
        executed = owner.run("-m", SEEN)
    assert json.loads(copy.stdout) == json.loads(executed.stdout)
    copied = owner.start("-m", "camgraph.tools.cli", "check", "/dev/stdin")
    assert Path(f"/proc/{copied.pid}").stat().st_uid == Path(f"/proc/{copied.pid}/stat").stat().st_uid == owner.uid
    copied.communicate(timeout=100)


@contextmanager
def running(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[], int]]]:
    """A run in this folder, and a function that counts its events."""
    (folder / "graph.yaml").write_text(GRAPH.format(name=f"warm{os.getpid()}"))
    environ = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
    command = [sys.executable, "-m", "camgraph.tools.cli", "run", "graph.yaml", "--quiet"]
    process = subprocess.Popen(command, cwd=folder, env=environ)
    try:
        yield process, lambda: len(json_lines(folder / "events.jsonl"))
    finally:
        process.kill()
        process.wait()


def test_processes_of_a_run_are_its_children_and_end_with_it(tmp_path: Path) -> None:
    with running(tmp_path) as (run, events):
        until(events)
        processes = children_of(run.pid)
        assert {"fork-server", "src.a", "emit.0", "outbox.0", "log.0"} <= set(processes)
        run.kill()
        assert run.wait() == -signal.SIGKILL
        until(lambda: not [pid for pid in processes.values() if Path(f"/proc/{pid}").exists()])


def test_ctrl_c_ends_a_run_in_order(tmp_path: Path) -> None:
    with running(tmp_path) as (run, events):
        until(events)
        run.send_signal(signal.SIGINT)
        assert run.wait(60) == 130
