"""A run remembers its variables: you change it without a password. SIGHUP reloads, unless the terminal is gone."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from camgraph_test_stages.waiting import json_lines, until

from camgraph.pipeline.errors import GraphError
from camgraph.pipeline.graph import env_file
from camgraph.pipeline.graph.env_file import Variables, read_env_file

GRAPH = """
version: 1
name: env{pid}
cameras:
  one: {{url: "rtsp://viewer:${{ONE}}@127.0.0.1:9/one"}}
stages:
  capture: {{use: capture}}
  out: {{use: sink_null, from: capture}}
"""
TWO = '  two: {url: "rtsp://viewer:${secret:TWO}@127.0.0.1:9/two"}\n'
LIMIT_S = 200.0
ON_ITS_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


@dataclass
class Place:
    """A run that goes on, and a shell that knows nothing of its variables."""

    folder: Path
    environ: dict[str, str]
    process: subprocess.Popen[bytes] | None = None

    def camgraph(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "camgraph.tools.cli", *words],
            cwd=self.folder,
            env=self.environ | environ,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )

    def output(self, *words: str, **environ: str) -> str:
        done = self.camgraph(*words, **environ)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def cameras(self) -> list[str]:
        return sorted(json.loads(self.output("status", "--json"))["cameras"])

    def log(self) -> list[dict[str, object]]:
        return json_lines(self.folder / "log")

    def wait(self, condition: Callable[[], bool]) -> None:
        def is_so() -> bool:
            assert self.process is not None
            assert self.process.poll() is None
            return condition()

        until(is_so, LIMIT_S, (self.folder / "log").read_text, every_s=0.1)

    def hang_up(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGHUP)

    def has_taken_the_hangup(self) -> bool:
        """Whether the signal was delivered: another one counts by itself then."""
        assert self.process is not None
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        pending = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("SigPnd", "ShdPnd"))]
        return not any(signals >> (signal.SIGHUP - 1) & 1 for signals in pending)

    def logged(self, event: str) -> bool:
        return any(line["event"] == event for line in self.log())

    def write(self, *, two: bool = False, more: str = "") -> None:
        text = GRAPH.format(pid=os.getpid())
        (self.folder / "g.yaml").write_text(text.replace("stages:", f"{TWO if two else ''}{more}stages:"))

    def variables(self, text: str, mode: int = 0o600) -> None:
        (self.folder / "vars.env").write_text(text)
        (self.folder / "vars.env").chmod(mode)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with run_in(tmp_path, "ONE=Zq9one\nTWO='Zq9 two'\n") as place:
        yield place
        assert "Zq9" not in (tmp_path / "log").read_text()


@contextmanager
def run_in(folder: Path, variables: str, mode: int = 0o600, **environ: str) -> Iterator[Place]:
    with tempfile.TemporaryDirectory(prefix="cge", dir="/tmp") as runtime:
        shell = {**os.environ, "XDG_RUNTIME_DIR": runtime, "XDG_STATE_HOME": str(folder / "state")}
        shell["PYTHONPATH"] = str(Path(__file__).parents[2] / "src")
        place = Place(folder, shell)
        place.write()
        place.variables(variables, mode)
        command = [sys.executable, "-m", "camgraph.tools.cli", "run", "g.yaml", "--json-logs", "--env-file", "vars.env"]
        with (folder / "log").open("wb") as log:
            place.process = subprocess.Popen(
                command, cwd=folder, env=shell | environ, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )
        try:
            place.wait(lambda: place.logged("running"))
            yield place
        finally:
            place.process.send_signal(signal.SIGTERM)
            place.process.wait(LIMIT_S)


def test_who_changes_a_run_needs_none_of_its_passwords(place: Place) -> None:
    assert place.output("reload") == "nothing has changed\n"
    added = place.output("cameras", "add", "yard", "rtsp://viewer:${TWO}@127.0.0.1:9/yard")
    assert added == "yard is there\n"
    place.write(two=True)
    assert place.output("reload").splitlines() == ["two comes", "yard stays: it was added by command"]
    assert place.cameras() == ["one", "two", "yard"]
    refused = place.camgraph("cameras", "add", "door", "rtsp://viewer:${NOBODY}@127.0.0.1:9/x")
    assert (refused.returncode, "the environment variable NOBODY is not set" in refused.stderr) == (2, True)
    assert place.output("cameras", "add", "door", "rtsp://viewer:${SHELL_PW}@127.0.0.1:9/x", SHELL_PW="Zq9 mine")


def test_a_further_camera_brings_its_own_variables(place: Place) -> None:
    """Also from a pipe, which the run could not read."""
    (place.folder / "door.env").write_text("DOOR=Zq9door\nOTHERS=Zq9others\n")
    (place.folder / "door.env").chmod(0o644)
    asked = ("cameras", "add", "door", "rtsp://viewer:${DOOR}@127.0.0.1:9/x")
    assert "the environment variable DOOR is not set" in place.camgraph(*asked).stderr
    done = place.camgraph(*asked, "--env-file", "door.env")
    assert (done.returncode, done.stdout) == (0, "door is there\n"), done.stderr
    assert "door.env contains secrets, and has mode 0644" in done.stderr
    words = "cameras add yard 'rtsp://viewer:${secret:YARD}@127.0.0.1:9/x' --env-file <(echo YARD=Zq9yard)"
    piped = subprocess.run(
        ["/bin/bash", "-c", f"{sys.executable} -m camgraph.tools.cli {words}"],
        cwd=place.folder,
        env=place.environ,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert (piped.returncode, piped.stdout) == (0, "yard is there\n"), piped.stderr
    assert place.cameras() == ["door", "one", "yard"]
    wrong = place.camgraph(*asked, "--env-file", "absent.env")
    assert (wrong.returncode, "absent.env: cannot be read: No such file" in wrong.stderr) == (2, True)


def test_reload_rereads_env_file_or_keeps_old_values(place: Place) -> None:
    place.variables("ONE=Zq9other\nTWO=Zq9two\n")
    assert place.output("reload") == "one begins anew with other settings\n"
    (place.folder / "vars.env").unlink()
    place.write(two=True)
    done = place.camgraph("reload")
    assert done.stdout == "two comes\n"
    assert "vars.env is gone: its values of before hold" in done.stderr
    (place.folder / "new.env").write_text("ONE=Zq9new\nTWO=Zq9two")
    (place.folder / "new.env").chmod(0o644)
    done = place.camgraph("reload", "--env-file", "new.env")
    assert done.stdout == "one begins anew with other settings\n"
    assert "new.env contains secrets, and has mode 0644: keep others out with `chmod 600" in done.stderr
    (place.folder / "vars.env").write_text("nothing")
    assert place.output("reload") == "nothing has changed\n", "the new file is remembered"


def test_the_shell_of_the_caller_does_not_overrule_the_run(place: Place) -> None:
    assert place.output("reload", ONE="Zq9 of another") == "nothing has changed\n"


def test_a_hangup_reloads(place: Place) -> None:
    place.write(two=True)
    place.hang_up()
    place.wait(lambda: place.logged("graph_reloaded"))
    place.wait(lambda: place.cameras() == ["one", "two"])


def test_a_hangup_while_another_is_under_way_counts(place: Place) -> None:
    for two in (True, False, True, False, True):
        place.write(two=two)
        place.hang_up()
        place.wait(place.has_taken_the_hangup)  # so that it is not one signal
    place.wait(lambda: place.cameras() == ["one", "two"])


@pytest.mark.parametrize(
    ("more", "why", "error_id"),
    [
        (
            "  three: {url: 'rtsp://${THREE}@h'}\n",
            "g.yaml:6:16: the environment variable THREE is not set",
            "variable-missing",
        ),
        ("  three: {url: 'rtsp://h', frobs: 'Zq9one'}\n", "unknown key `frobs`", "key-unknown"),
        ("  three: [\n", "not YAML", "yaml-mistake"),
    ],
)
def test_a_hangup_with_a_wrong_graph_leaves_the_run_as_it_is(place: Place, more: str, why: str, error_id: str) -> None:
    place.write(more=more)
    place.hang_up()
    place.wait(lambda: place.logged("reload_failed"))
    [failed] = [line for line in place.log() if line["event"] == "reload_failed"]
    assert why in str(failed["why"])
    assert failed["error_id"] == error_id
    assert place.cameras() == ["one"]
    place.write(two=True)
    place.hang_up()
    place.wait(lambda: place.cameras() == ["one", "two"])


def test_a_file_that_others_can_read_is_said(tmp_path: Path) -> None:
    with run_in(tmp_path, "ONE=x\n", 0o644) as place:
        assert any("vars.env contains secrets, and has mode 0644" in str(line.get("text")) for line in place.log())


def test_a_terminal_that_is_closed_ends_the_run(tmp_path: Path) -> None:
    (tmp_path / "g.yaml").write_text(GRAPH.format(pid=os.getpid()))
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", ON_ITS_TERMINAL, "-m", "camgraph.tools.cli", "run", "g.yaml", "--quiet"],
        cwd=tmp_path,
        env={**os.environ, "ONE": "x", "XDG_STATE_HOME": str(tmp_path / "state")},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    until(lambda: len(children.read_text().split()) >= 3, LIMIT_S, every_s=0.1)
    os.close(ours)
    assert process.wait(LIMIT_S) in (0, 1), "it drains, and says that the camera gave nothing"


@pytest.mark.parametrize("words", [["check", "g.yaml"], ["graph", "g.yaml"]])
def test_commands_take_variables_of_env_file(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "g.yaml").write_text(GRAPH.format(pid=os.getpid()))
    (tmp_path / "vars.env").write_text("ONE=Zq9one")
    command = [sys.executable, "-m", "camgraph.tools.cli", *words]
    without = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert (without.returncode, "ONE is not set" in without.stderr) == (2, True)
    done = subprocess.run(
        [*command, "--env-file", "vars.env"], cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Zq9" not in done.stdout + done.stderr


# ---- the file


def test_what_may_stand_in_a_file_of_variables(tmp_path: Path) -> None:
    file = tmp_path / "x.env"
    file.write_text(
        "# a comment\n\n A=1 # no comment\nexport B='two words'\r\nC=\"it's\"\nD=\nE = a=b\nF=it's\nG='\"x'\n"
    )
    assert read_env_file(file) == {
        "A": "1 # no comment",
        "B": "two words",
        "C": "it's",
        "D": "",
        "E": "a=b",
        "F": "it's",
        "G": '"x',
    }


@pytest.mark.parametrize("value", ['"geheim', "'geheim", "'", '"', "'geheim\"", '"geheim" # which'])
def test_a_quote_that_is_not_closed_is_a_mistake(tmp_path: Path, value: str) -> None:
    file = tmp_path / "x.env"
    file.write_text(f"A=1\nexport B = {value}\n")
    with pytest.raises(GraphError) as error:
        read_env_file(file)
    assert str(error.value).startswith(f"{file}:2:11: the value begins with a quote that does not end it: close it")
    assert "geheim" not in str(error.value)


def test_mistakes_have_their_line_without_its_text(tmp_path: Path) -> None:
    file = tmp_path / "x.env"
    file.write_text("A=1\ngeheim\n2B=geheim\n")
    with pytest.raises(GraphError) as error:
        read_env_file(file)
    expected = "expected NAME=VALUE, or # and a comment"
    assert str(error.value).splitlines() == [f"{file}:2:1: {expected}", f"{file}:3:1: {expected}"]
    file.write_bytes(b"A=\xff")
    for wrong in (file, tmp_path / "none", tmp_path):
        with pytest.raises(GraphError, match=str(wrong)):
            read_env_file(wrong)


def test_env_files_precede_environment_precede_client(tmp_path: Path) -> None:
    for name, text in (("1", "A=file 1\nB=file 1"), ("2", "B=file 2")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o600)
    variables = Variables([tmp_path / "1", tmp_path / "2"], {"A": "own", "C": "own"})
    found, remarks = variables.anew({"C": "other", "D": "other"})
    assert found == {"A": "file 1", "B": "file 2", "C": "own", "D": "other"}
    assert remarks == []


def test_a_pipe_is_read_once_and_nothing_is_said_of_it() -> None:
    """A shell's <(...); its number may be that of another file later."""
    out, into = os.pipe()
    os.write(into, b"A=pipe")
    os.close(into)
    variables = Variables([Path(f"/dev/fd/{out}")], {})
    os.close(out)
    for _ in range(2):
        assert variables.anew() == ({"A": "pipe"}, [])


def test_a_file_that_is_gone_when_it_is_read_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x.env"
    file.write_text("A=1")
    file.chmod(0o600)
    variables = Variables([file], {})

    def rotated(path: Path) -> dict[str, str]:
        path.unlink()
        return read_env_file(path)

    monkeypatch.setattr(env_file, "read_env_file", rotated)
    assert variables.anew() == ({"A": "1"}, [f"{file} is gone: its values of before hold"])


def test_more_of_an_environment_changes_no_file(tmp_path: Path) -> None:
    file = tmp_path / "a.env"
    file.write_text("ONE=file\n")
    file.chmod(0o600)
    before = Variables([file], environ={"TWO": "environment"})
    more = before.with_environ({"ONE": "more", "THREE": "more"})
    file.write_text("ONE=changed\n")
    assert more.anew()[0] == {"ONE": "changed", "TWO": "environment", "THREE": "more"}
    file.unlink()
    assert more.anew()[0]["ONE"] == "changed"
    assert before.anew()[0] == {"ONE": "file", "TWO": "environment"}, "it has looked once"
