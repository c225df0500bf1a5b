"""One folder a run: private, locked, and swept when its owner is dead."""

from __future__ import annotations

import errno
import fcntl
import gc
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.pipeline.graph import parse_graph
from camgraph.pipeline.supervision.control_client import ask, find_run
from camgraph.pipeline.system import run_folder
from camgraph.pipeline.system.names import MAX_NAME
from camgraph.pipeline.system.paths import runs_folder
from camgraph.pipeline.system.run_folder import CONTROL, RunFolder, remove_run_of, running, unlink_socket

GRAPH = """
version: 1
name: NAME
cameras: {a: {frames: 1}}
stages: {count: {use: count_source}, take: {use: collect, from: count, with: {path: x}}}
"""


@pytest.fixture(autouse=True)
def own_runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with tempfile.TemporaryDirectory(prefix="cgt", dir="/tmp") as folder:
        monkeypatch.setenv("CAMGRAPH_RUN_DIR", f"{folder}/runs")
        yield


def test_two_runs_of_one_name_do_not_meet() -> None:
    folder = RunFolder("lobby")
    assert running(runs_folder()) == ["lobby"]
    with pytest.raises(UserError, match="camgraph stop --name lobby"):
        RunFolder("lobby")
    folder.close()
    assert running(runs_folder()) == []
    RunFolder("lobby").close()


@pytest.mark.parametrize("name", ["", "a/b", "../x", "x" * 41, "-x", "a b"])
def test_a_name_is_plain(name: str) -> None:
    with pytest.raises(UserError, match="--name"):
        RunFolder(name)


@pytest.mark.parametrize("name", ["_", "x" * MAX_NAME, "7-up"])
def test_what_a_graph_may_be_called_a_run_may_be_called(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert parse_graph(GRAPH.replace("NAME", name), "g.yaml", base_folder=tmp_path).name == name
    folder = RunFolder(name)
    monkeypatch.setattr(folder, "path", Path("/" + "r" * 39) / "camgraph" / name)  # the longest runtime folder
    assert len(folder.endpoint(999, 9999).removeprefix("ipc://")) < 107
    monkeypatch.undo()
    folder.close()


def test_a_folder_that_another_run_is_sweeping_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    path = runs_folder() / "lobby"
    path.mkdir(mode=0o700, parents=True)
    runs_folder().chmod(0o700)
    held = (path / "lock").open("w")
    fcntl.flock(held, fcntl.LOCK_EX)

    tried = threading.Event()
    lock = run_folder._lock

    def watched(*args: Any, **named: Any) -> int:
        found = lock(*args, **named)
        tried.set()
        return found

    monkeypatch.setattr(run_folder, "_lock", watched)

    def sweep() -> None:
        assert tried.wait(30)
        shutil.rmtree(path)
        held.close()

    sweeper = threading.Thread(target=sweep)
    sweeper.start()
    folder = RunFolder("lobby")
    sweeper.join()
    assert (folder.path / "lock").exists()
    assert running(runs_folder()) == ["lobby"]
    folder.close()


def test_many_runs_that_start_at_once_do_not_sweep_each_other() -> None:
    code = (
        "import sys, camgraph.pipeline.system.run_folder as r; [r.RunFolder(sys.argv[1]).close() for _ in range(1000)]"
    )
    starting = [subprocess.Popen([sys.executable, "-c", code, f"run{n}"]) for n in range(3)]
    assert [process.wait(250) for process in starting] == [0, 0, 0]
    assert running(runs_folder()) == []


def test_a_folder_that_another_run_removes_while_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    really = os.mkdir

    def mkdir(path: str | Path, *more: int) -> None:
        made.append(Path(path).name)
        if made.count("lobby") == 1 and made[-1] == "lobby":
            raise FileExistsError(errno.EEXIST, "File exists")
        really(path, *more)

    monkeypatch.setattr(os, "mkdir", mkdir)
    RunFolder("lobby").close()
    assert made.count("lobby") == 2


def test_what_a_late_child_of_a_dead_run_put_back_is_swept() -> None:
    for name in ("dead", "lobby"):
        (runs_folder() / name / "state" / "outbox").mkdir(parents=True)
        (runs_folder() / name / "state" / "outbox" / "started").touch()
    runs_folder().chmod(0o700)
    folder = RunFolder("lobby")
    assert sorted(path.name for path in runs_folder().rglob("*")) == sorted(["lobby", "lock", folder.own.name])
    folder.close()


def test_sweeps_again_under_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("camgraph.pipeline.system.run_folder.sweep_runs", lambda root: None)
    (runs_folder() / "lobby" / "state" / "outbox").mkdir(parents=True)
    (runs_folder() / "lobby" / "3.1").touch()
    runs_folder().chmod(0o700)
    folder = RunFolder("lobby")
    assert sorted(path.name for path in folder.path.rglob("*")) == sorted(["lock", folder.own.name])
    folder.close()


def test_late_processes_do_not_touch_next_run() -> None:
    code = (
        "import os; from camgraph.pipeline.system.run_folder import RunFolder; folder = RunFolder('lobby');"
        "print(folder.own, folder.endpoint(0, 1), flush=True); os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    own, endpoint = killed.stdout.split()
    folder = RunFolder("lobby")
    socket_file = Path(folder.endpoint(0, 1).removeprefix("ipc://"))
    socket_file.touch()
    unlink_socket(endpoint)
    (Path(own) / "state" / "outbox").mkdir(parents=True)
    remove_run_of(Path(own))
    assert running(runs_folder()) == ["lobby"]
    assert socket_file.exists()
    assert not (folder.own / "state").exists()
    folder.close()
    assert list(runs_folder().iterdir()) == []


def test_what_stands_in_the_way_of_a_folder_is_named() -> None:
    runs_folder().mkdir(mode=0o700)
    (runs_folder() / "lobby").touch()
    with pytest.raises(EnvironmentProblem, match="lobby, cannot be made: File exists"):
        RunFolder("lobby")


def test_nobody_else_can_look_in() -> None:
    folder = RunFolder("lobby")
    assert folder.path.stat().st_mode & 0o777 == 0o700
    assert runs_folder().stat().st_mode & 0o777 == 0o700
    folder.close()


def test_an_open_folder_for_sockets_is_refused() -> None:
    runs_folder().mkdir(mode=0o777)
    runs_folder().chmod(0o755)
    with pytest.raises(EnvironmentProblem, match="0700"):
        RunFolder("lobby")


def test_what_a_killed_run_left_is_swept_by_the_next() -> None:
    begin = "from camgraph.pipeline.system import run_folder; run_folder.RunFolder('dead')"
    code = f"import os; {begin}; os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", code], check=False)
    assert (runs_folder() / "dead").is_dir()
    assert running(runs_folder()) == []
    folder = RunFolder("lobby")
    assert not (runs_folder() / "dead").exists()
    folder.close()


def test_asking_a_missing_run_is_a_user_error() -> None:
    with pytest.raises(UserError, match="nothing is running"):
        find_run(None)
    folder = RunFolder("lobby")
    with pytest.raises(UserError, match="running: lobby"):
        find_run("yard")
    with pytest.raises(UserError, match="the run lobby has one process and no socket"):
        find_run(None)
    (folder.path / CONTROL).touch()
    assert find_run(None) == "lobby"
    folder.close()


@contextmanager
def run_of(name: str, graph_file: Path) -> Iterator[None]:
    with closing(RunFolder(name, str(graph_file.parent), str(graph_file))) as folder:
        (folder.path / CONTROL).touch()
        yield


@pytest.fixture
def ward_and_lobby(tmp_path: Path) -> Iterator[Path]:
    """Two runs, each of a graph in a folder of its own."""
    for name in ("ward", "lobby"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.yaml").write_text("cameras: {}\nstages: {}\n")
        (tmp_path / name / "rules.yaml").write_text("rules: []\n")
    (tmp_path / "empty").mkdir()
    with run_of("ward", tmp_path / "ward/ward.yaml"), run_of("lobby", tmp_path / "lobby/lobby.yaml"):
        yield tmp_path


def test_the_run_of_this_folders_graph_is_meant(ward_and_lobby: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ward", "lobby"):
        monkeypatch.chdir(ward_and_lobby / name)
        assert find_run(None) == name
        assert find_run("ward") == "ward"


def test_the_run_of_a_named_graph_file_is_meant(ward_and_lobby: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ward_and_lobby / "ward")
    assert find_run(None, graph=Path("../lobby/lobby.yaml")) == "lobby"


def test_of_several_runs_the_question_names_their_graphs(ward_and_lobby: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ward_and_lobby / "empty")
    with pytest.raises(
        UserError, match=r"which run\? choose one with --name; running: lobby \(.*lobby.yaml\), ward \("
    ):
        find_run(None)
    monkeypatch.chdir(ward_and_lobby / "ward")
    with (
        run_of("by-day", ward_and_lobby / "ward/ward.yaml"),
        pytest.raises(UserError, match=r"which run\? .*by-day .*ward"),
    ):
        find_run(None)


def test_the_run_of_another_folder_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "night.yaml").write_text("version: 1\nstages: {}\n")
    (tmp_path / "rules.yaml").write_text("rules: []\n")
    (tmp_path / "dvc.yaml").write_text("stages: {}\n")  # of another program
    monkeypatch.chdir(tmp_path)
    with run_of("ward", Path("/etc/ward/ward.yaml")):
        why = r"the graph night.yaml of this folder is not running; running elsewhere: ward \(/etc/ward/ward.yaml\)"
        why += r"; start the graph with `camgraph run night.yaml`, or choose one with --name"
        with pytest.raises(UserError, match=why):
            find_run(None)
        assert find_run("ward") == "ward"
        (tmp_path / "night.yaml").unlink()
        assert find_run(None) == "ward"


def test_a_folder_that_was_removed_has_no_graphs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with run_of("ward", Path("/etc/ward/ward.yaml")):
        assert find_run(None) == "ward"


def test_a_run_that_does_not_answer_is_said() -> None:
    folder = RunFolder("lobby")
    with pytest.raises(EnvironmentProblem, match="does not answer"):
        ask("lobby", "status", within_s=0.1)
    folder.close()


def test_a_folder_that_cannot_be_made_is_told_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for step in ("_claim", "_empty"):
        with monkeypatch.context() as patch:
            patch.setattr(run_folder, step, full)
            gc.collect()  # else the descriptors of earlier tests may be closed just now
            before = len(list(Path("/proc/self/fd").iterdir()))
            with pytest.raises(EnvironmentProblem, match="cannot be made: No space left on device"):
                RunFolder("lobby")
            assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert running(runs_folder()) == []
    RunFolder("lobby").close()
