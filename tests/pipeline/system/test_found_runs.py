"""Which runs of the machine are found, and what a stranger's sockets can make of that: nothing."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.system import found_runs as module
from camgraph.pipeline.system.found_runs import found_runs, refuse_second_run
from camgraph.pipeline.system.run_folder import CONTROL, RunFolder

HEAD = "Num       RefCount Protocol Flags    Type St Inode Path"
LISTENS = "00000000fd10f6f5: 00000002 00000000 00010000 0001 01 102190"


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where nobody has chosen a folder for runs, so that the whole machine is looked at."""
    with tempfile.TemporaryDirectory(prefix="cgf", dir="/tmp") as folder:
        monkeypatch.delenv("CAMGRAPH_RUN_DIR")
        monkeypatch.delenv("RUNTIME_DIRECTORY", raising=False)
        (Path(folder) / "login").mkdir(mode=0o700)
        monkeypatch.setenv("XDG_RUNTIME_DIR", f"{folder}/login")
        yield Path(folder)


@contextmanager
def listening(path: Path) -> Iterator[Path]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        yield path


@contextmanager
def run_in_another_login(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> Iterator[Path]:
    """A run that this process could not start here; its folder."""
    login = folder / "other"
    login.mkdir(mode=0o700, exist_ok=True)
    with monkeypatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(login))
        run = RunFolder(name)
    with listening(run.path / CONTROL):
        yield run.path
    run.close()


def here(name: str) -> list[Path]:
    return [run.folder for run in found_runs() if run.name == name]


def test_a_run_of_another_login_is_found_by_its_socket(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"f{os.getpid()}"
    with run_in_another_login(folder, monkeypatch, name) as path:
        [run] = [run for run in found_runs() if run.name == name]
        assert (run.folder, run.own, run.here, run.answers) == (path, True, False, True)
        with pytest.raises(UserError, match="is going on, started elsewhere"):
            refuse_second_run(name, folder)
        refuse_second_run(name, path)
    assert here(name) == []


@pytest.mark.parametrize(
    "invented",
    [
        "x\nA B C ZZ E F G /camgraph.control",
        f"x\n{LISTENS.replace('00010000', '0001000G')} /r/{CONTROL}",
        f"x\n{LISTENS} /nowhere/r/{CONTROL}",
        f"x\n{LISTENS} /n\x1b/r/{CONTROL}",
        f"x\r{LISTENS} /nowhere/r/{CONTROL}",
    ],
)
def test_socket_path_that_fakes_table_lines(folder: Path, invented: str) -> None:
    with listening(folder / invented.lstrip("/")):
        assert not [run for run in found_runs() if str(folder) in str(run.folder) or run.name == "r"]


def test_a_path_that_is_no_utf_8_breaks_nothing(folder: Path) -> None:
    with listening(Path(os.fsdecode(os.fsencode(folder) + b"/\xff/r/")) / CONTROL):
        assert here("r") == []


def test_dead_run_is_not_revived_by_a_faked_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed run leaves its socket; a line of somebody's invention says that it listens."""
    name = f"f{os.getpid()}"
    left = folder / "other" / name
    left.mkdir(parents=True, mode=0o700)
    with listening(left / CONTROL):
        pass
    table = folder / "table"
    table.write_text(f"{HEAD}\n{LISTENS} {left}/{CONTROL}\n")
    monkeypatch.setattr(module, "_SOCKETS", table)
    assert here(name) == []
    refuse_second_run(name, folder)


def test_malformed_lines_are_skipped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"f{os.getpid()}"
    with run_in_another_login(folder, monkeypatch, name) as path:
        table = folder / "table"
        wrong = ["", "A B C ZZ E F G /x", LISTENS, f"{LISTENS} @abstract", "\x85", f"{LISTENS} /a\x0bb/{CONTROL}"]
        table.write_text("\n".join([HEAD, *wrong, f"{LISTENS} {path}/{CONTROL}", ""]))
        monkeypatch.setattr(module, "_SOCKETS", table)
        assert here(name) == [path]
        table.unlink()
        assert here(name) == []


def test_graphs_are_told_from_other_yaml_files(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("version: 1\nstages: {}\n")
    (tmp_path / "a.yml").write_text("cameras: {}\nstages: {}\n")
    (tmp_path / "pipeline.yaml").write_text("stages: [build]\n")
    (tmp_path / ".hidden.yaml").write_text("version: 1\nstages: {}\n")
    (tmp_path / "folder.yaml").mkdir()
    assert [graph.name for graph in module.graphs_in(tmp_path)] == ["a.yml", "b.yaml"]


def test_a_removed_folder_is_no_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    assert module.current_folder() == gone
    gone.rmdir()
    assert module.current_folder() is None
