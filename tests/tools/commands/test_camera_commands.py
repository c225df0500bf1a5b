"""What a person does to a run that goes on: every command once, and what is said where it cannot be."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from camgraph_test_stages.waiting import until

from camgraph.pipeline.system.names import ascii_form

GRAPH = """
version: 1
name: lobby
camera_defaults: {max_fps: 5}
cameras:
  one: {url: "rtsp://127.0.0.1:9/one"}
  two: {url: "rtsp://127.0.0.1:9/two"}
stages:
  capture: {use: capture}
  prepare: {use: preprocess, from: capture, with: {size: [64, 64]}}
  out: {use: sink_null, from: prepare}
"""
COUNTING = """
version: 1
name: counting
cameras:
  a: {frames: 1000000, pace_ms: 20, live: true, bytes: 30000}
  b: {frames: 1000000, pace_ms: 20, live: true, bytes: 30000}
stages:
  src: {use: count_source}
  left: {use: double, from: src, with: {bytes: 30000}}
  numbers: {use: collect, from: left, with: {path: numbers}}
"""
SECRET = "pass/word#1"
LIMIT_S = 60.0

Command = Callable[..., "subprocess.CompletedProcess[str]"]


def camgraph(*words: str) -> list[str]:
    return [sys.executable, "-m", "camgraph.tools.cli", *words]


@contextmanager
def short_folder() -> Iterator[str]:
    """For sockets: pytest's own folders are too long for them when it runs several workers, and then all share one."""
    with tempfile.TemporaryDirectory(prefix="cgc", dir="/tmp") as folder:
        yield folder


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    """Calls `camgraph` beside a run of its own; the run's folder is the working directory."""
    with short_folder() as runtime:
        yield from _beside(tmp_path_factory.mktemp("lobby"), runtime, GRAPH)


@pytest.fixture
def counting(tmp_path: Path) -> Iterator[Command]:
    """The same beside a run of cameras that only count."""
    with short_folder() as runtime:
        yield from _beside(tmp_path, runtime, COUNTING)


def _beside(folder: Path, runtime: str, graph: str) -> Iterator[Command]:
    root = str(Path(__file__).parents[3] / "src")
    environ = {**os.environ, "PYTHONPATH": root, "CAMGRAPH_RUN_DIR": f"{runtime}/runs", "XDG_STATE_HOME": str(folder)}
    environ |= {"COLUMNS": "200", "DOOR": SECRET}
    folder.chmod(0o700)
    (folder / "live.yaml").write_text(graph)

    def call(*words: str, given: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            camgraph(*words),
            check=False,
            cwd=folder,
            env=environ,
            input=given,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )

    with (folder / "log").open("w") as log:
        run = subprocess.Popen(camgraph("run", "live.yaml"), cwd=folder, env=environ, stdout=log, stderr=log)
        try:
            until(lambda: '"running"' in call("status", "--json").stdout, LIMIT_S, (folder / "log").read_text)
            yield call
        finally:
            run.send_signal(signal.SIGINT)
            assert run.wait(LIMIT_S) == 130
    assert SECRET not in (folder / "log").read_text()
    assert "pass%2Fword" not in (folder / "log").read_text()


def test_commands_in_a_graphs_folder_mean_its_run(tmp_path: Path) -> None:
    """Two runs of one user, each started from the folder of its graph."""
    with short_folder() as runtime, ExitStack() as stack:
        calls = {}
        for name in ("lobby", "ward"):
            (tmp_path / name).mkdir()
            graph = GRAPH.replace("name: lobby", f"name: {name}")
            calls[name] = stack.enter_context(contextmanager(_beside)(tmp_path / name, runtime, graph))
        for name, call in calls.items():
            assert json.loads(output_of(call("status", "--json")))["graph"] == name
            assert output_of(call("cameras", "pause", "one")) == "one rests\n"
            assert output_of(call("cameras", "resume", "one")) == "one goes on\n"
            file = tmp_path / name / "live.yaml"
            file.write_text(file.read_text().replace("max_fps: 5", "max_fps: 4"))
            assert "one begins anew" in output_of(call("reload"))
        assert "nothing has changed" in output_of(calls["ward"]("reload", "../lobby/live.yaml"))


def output_of(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout


def states(command: Command) -> dict[str, str]:
    return {
        name: camera["state"] for name, camera in json.loads(output_of(command("status", "--json")))["cameras"].items()
    }


def test_a_camera_comes_rests_and_goes(command: Command) -> None:
    added = command("cameras", "add", "door", "rtsp://viewer:${DOOR}@127.0.0.1:9/door", "--set", "transport=udp")
    assert (output_of(added), added.stderr) == ("door is there\n", "")
    listed = output_of(command("cameras", "list"))
    assert "door" in listed
    assert "added by command" in listed
    assert SECRET not in listed
    rows, _, rest = listed.partition("one")
    assert rest
    assert max(map(len, rows.splitlines())) <= 80
    known = json.loads(output_of(command("cameras", "list", "--json")))
    assert (sorted(known["cameras"]), known["by_command"]) == (["door", "one", "two"], ["door"])
    assert "state" in known["cameras"]["door"]
    assert SECRET not in json.dumps(known)
    assert "DOOR" not in json.dumps(known)
    assert output_of(command("cameras", "pause", "door")) == "door rests\n"
    assert states(command)["door"] == "paused"
    assert output_of(command("cameras", "resume", "door")) == "door goes on\n"
    assert states(command)["door"] != "paused"
    assert output_of(command("cameras", "remove", "door")) == "door is gone\n"
    assert sorted(states(command)) == ["one", "two"]
    assert (
        output_of(command("cameras", "add", "door", "-", given="url: rtsp://127.0.0.1:9/door\n")) == "door is there\n"
    )
    assert output_of(command("cameras", "remove", "door")) == "door is gone\n"


def test_a_password_in_the_command_line_is_pointed_out(command: Command) -> None:
    added = command("cameras", "add", "yard", "rtsp://viewer:open@127.0.0.1:9/yard", "--no-wait")
    assert output_of(added) == "yard is on its way\n"
    assert "write ${NAME} in its place" in added.stderr
    output_of(command("cameras", "remove", "yard"))


def test_a_changed_file_is_taken_over(command: Command, tmp_path: Path) -> None:
    assert output_of(command("reload")) == "nothing has changed\n"
    changed = tmp_path / "live.yaml"
    changed.write_text(GRAPH.replace("two", "three").replace("64, 64", "32, 32"))
    result = output_of(command("reload", str(changed)))
    assert result.splitlines() == ["three comes", "two goes", "prepare.0 is started again"]
    assert sorted(states(command)) == ["one", "three"]
    assert set(output_of(command("reload")).splitlines()) == {"two comes", "three goes", "prepare.0 is started again"}


def test_a_file_with_another_structure_is_refused_and_named(command: Command, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    for new, why in (
        (GRAPH + "  more: {use: sink_null, from: prepare}\n", "the stages are others (more (new)) than in the run"),
        (GRAPH.replace("  out:", "  last:"), "the stages are others (last (new), out (gone)) than in the run"),
        (GRAPH.replace("sink_null,", "sink_null, workers: 2,"), "stages are joined or placed in another way than in"),
    ):
        other.write_text(new)
        done = command("reload", str(other))
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"{other}: {why}")
    assert command("reload", ".").stderr.startswith(".: ")


def test_reload_reports_refusals_and_lack_of_room(counting: Command, tmp_path: Path) -> None:
    graph = tmp_path / "live.yaml"
    graph.write_text(COUNTING.replace("path: numbers", "path: no/such/folder"))
    refused = counting("reload")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith(
        "numbers.0 does not open with its new settings, and goes on with those of before: "
    )
    assert "FileNotFoundError" in refused.stderr
    assert "numbers.0 goes on with its settings of before" in output_of(counting("cameras", "list"))

    third = "  c: {frames: 1000000, pace_ms: 20, live: true, bytes: 30000}\n"
    graph.write_text(COUNTING.replace("stages:", third + "stages:").replace("path: numbers", "path: others"))
    left = json.loads(output_of(counting("status", "--json")))["processes"]["left.0"]["pid"]
    before = resource.prlimit(left, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
    short = counting("reload")
    assert (short.returncode, short.stdout) == (3, "numbers.0 is started again\n")
    assert "c was not taken in, and is not there: no room for" in short.stderr
    listed = output_of(counting("cameras", "list"))
    assert "c was not taken in: no room for" in listed
    assert "settings of before" not in listed
    assert output_of(counting("cameras", "remove", "b")) == "b is gone\n"

    resource.prlimit(left, resource.RLIMIT_FSIZE, before)
    assert output_of(counting("reload")) == "b comes\nc comes\n"
    assert "not taken in" not in output_of(counting("cameras", "list"))
    assert output_of(counting("cameras", "remove", "c")) == "c is gone\n"


def test_cameras_are_called_in_any_script(command: Command) -> None:
    """Typed composed or decomposed, a name is the same; processes have the ASCII form of it."""
    names = ("Süd", "вход", "入口", "Sud")
    for name in names:
        added = command("cameras", "add", unicodedata.normalize("NFD", name), "rtsp://127.0.0.1:9/x")
        assert output_of(added) == f"{name} is there\n"
    status = json.loads(output_of(command("status", "--json")))
    assert {*status["cameras"]} == {"one", "two", *names}
    assert {f"capture.{ascii_form(name)}" for name in names} <= {*status["processes"]}
    assert all(process.isascii() for process in status["processes"])
    listed = output_of(command("cameras", "list"))
    shown = output_of(command("status"))
    assert all(name in listed and name in shown for name in names)

    assert output_of(command("cameras", "pause", "Su\u0308d")) == "Süd rests\n"
    assert json.loads(output_of(command("cameras", "list", "--json")))["paused"] == ["Süd"]
    assert output_of(command("cameras", "resume", "Süd")) == "Süd goes on\n"
    twin = command("cameras", "add", ascii_form("Süd"), "rtsp://127.0.0.1:9/x")
    assert (twin.returncode, twin.stdout) == (2, "")
    assert f"the camera Süd has the ASCII form `{ascii_form('Süd')}`" in twin.stderr
    again = command("cameras", "add", "Su\u0308d", "rtsp://127.0.0.1:9/x")
    assert "there is a camera called Süd" in again.stderr
    for name in names:
        assert output_of(command("cameras", "remove", unicodedata.normalize("NFD", name))) == f"{name} is gone\n"
    assert {*json.loads(output_of(command("status", "--json")))["processes"]}.isdisjoint(
        f"capture.{ascii_form(name)}" for name in names
    )


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("add bad rtsp://127.0.0.1/x --set max_fps=-3", "cameras.bad.max_fps: expected more than 0, got -3"),
        ("add bad rtsp://u:${NOT_SET}@127.0.0.1/x", "the environment variable NOT_SET is not set"),
        ("add bad rtps://127.0.0.1/x", "did you mean `rtsp`?"),
        ("add b/d rtsp://127.0.0.1/x", "a camera cannot be called `b/d`"),
        ("add bad --set fps", "expected KEY=VALUE"),
        ("add bad --set max_fps=", "expected KEY=VALUE"),
        ("add bad --set url=[rtsp://me:geheim@h/x", "--set url: not YAML: "),
        ("add bad --set url=*geheim", "--set url: not YAML: "),
        ("add bad rtsp://h/x --set decode=on", "--set decode: `on` is a boolean to some readers of YAML"),
        ("add bad rtsp://me:geh/eim@h/x", "percent-encoded"),
        ("pause on", "no camera called on; there are: one, two; did you mean `one`?"),
        ("add bad --set frobs=2", "url"),
        ("add one rtsp://127.0.0.1/x", "there is a camera called one"),
        ("remove nobody", "no camera called nobody; there are: one, two"),
        ("list --name other", "no run called other; running: lobby"),
    ],
)
def test_what_cannot_be_is_said(command: Command, words: str, why: str) -> None:
    done = command("cameras", *words.split())
    assert done.returncode == 2, done.stdout
    assert why in done.stderr
    assert "Traceback" not in done.stderr
    assert "geh" not in done.stderr


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("", "the standard input: expected `key: value` lines"),
        ("hello", "the standard input: expected `key: value` lines"),
        ("url: rtsp://h/x\nmax_fps: [geheim", "the standard input:3:1: not YAML"),
        ("url: rtsp://h/x\ndecode: off", "the standard input:2:9: `off` is a boolean"),
    ],
)
def test_mistakes_in_given_settings_have_a_place(command: Command, given: str, why: str) -> None:
    done = command("cameras", "add", "bad", "-", given=given)
    assert (done.returncode, done.stdout) == (2, "")
    assert why in done.stderr
    assert "geheim" not in done.stderr


def test_where_nothing_runs_it_is_said_how_to_begin(camgraph: Callable[..., object]) -> None:
    with short_folder() as runtime:
        done = camgraph("cameras", "list", CAMGRAPH_RUN_DIR=f"{runtime}/runs")
    assert isinstance(done, subprocess.CompletedProcess)
    assert (done.returncode, done.stderr) == (2, "nothing is running; `camgraph run GRAPH` starts a graph\n")
