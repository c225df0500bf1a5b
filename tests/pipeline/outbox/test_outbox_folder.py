"""One run an outbox, and nothing of it left when it is empty."""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.outbox.event_file import open_event_file
from camgraph.pipeline.outbox.outbox_folder import outbox_folder, outbox_held, why_unusable
from camgraph.pipeline.plan import RunPlan
from camgraph.pipeline.system import disk
from camgraph.pipeline.system.disk import try_lock

GRAPH = """
version: 1
name: held
cameras: {a: {frames: 3}}
stages:
  src: {use: count_source}
  emit: {use: emit, from: src}
  log: {use: sink_jsonl, from: emit, with: {path: events.jsonl}}
"""


@pytest.fixture
def plan(tmp_path: Path) -> RunPlan:
    path = tmp_path / "graph.yaml"
    path.write_text(GRAPH)
    return load_plan(path)


def test_outbox_folder_is_private_and_locked(plan: RunPlan) -> None:
    folder = outbox_folder(plan)
    assert folder is not None
    assert why_unusable(folder) == ""
    assert not folder.exists()
    with outbox_held(plan):
        assert folder.stat().st_mode & 0o777 == 0o700
        with pytest.raises(UserError, match=r"is in use by another run \(held, process \d+\): stop that one"):
            with outbox_held(replace(plan, graph="other")):
                pass
    assert not folder.exists()
    with outbox_held(plan):
        (folder / "outbox.sqlite").touch()
    assert [path.name for path in folder.iterdir()] == ["outbox.sqlite"]


@pytest.mark.parametrize("kind", ["folder", "pipe", "symbolic link"])
def test_what_is_no_file_is_to_be_moved_away(plan: RunPlan, kind: str) -> None:
    folder = outbox_folder(plan)
    assert folder is not None
    folder.mkdir(parents=True)
    file = folder / "outbox.sqlite"
    {"folder": file.mkdir, "pipe": lambda: os.mkfifo(file), "symbolic link": lambda: file.symlink_to("/etc")}[kind]()
    why = why_unusable(folder)
    assert why.startswith(f"{file} is a {kind}, expected the file of the outbox; ")
    assert "delivered: move it away, or set " in why
    assert "chown" not in why


def test_a_file_in_the_place_of_the_folder_is_to_be_moved_away(plan: RunPlan) -> None:
    folder = outbox_folder(plan)
    assert folder is not None
    folder.parent.mkdir(parents=True)
    folder.touch()
    why = why_unusable(folder)
    assert "is a file, expected a folder" in why
    assert "delivered: move it away, or set " in why


ONE_EVENT = "INSERT INTO events VALUES (1, 'e', 'p', 'a', 0, 0, 0, 0, '', '', x'', 0, 0, 0, 0)"


@pytest.mark.parametrize("had_event", [True, False])
def test_an_outbox_that_never_had_an_event_is_not_left(plan: RunPlan, had_event: bool) -> None:
    """That of a run which another kept out of its events file, say. One whose events are delivered knows their ids."""
    folder = outbox_folder(plan)
    assert folder is not None
    with outbox_held(plan), closing(open_event_file(folder / "outbox.sqlite", by_time=False)) as file:
        if had_event:
            file.db.execute(ONE_EVENT)
            file.db.execute("DELETE FROM events")
    assert folder.exists() is had_event


def test_the_run_that_a_file_in_use_keeps_out_leaves_nothing(plan: RunPlan, tmp_path: Path) -> None:
    folder = outbox_folder(plan)
    assert folder is not None
    with (tmp_path / "events.jsonl").open("w") as mine:
        assert try_lock(mine.fileno())
        command = [sys.executable, "-m", "camgraph.tools.cli", "run", str(tmp_path / "graph.yaml"), "--quiet"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert "another sink or run is writing to this file" in done.stderr
    assert not folder.exists()


def test_runs_take_turns_on_one_outbox(plan: RunPlan, tmp_path: Path) -> None:
    """Each removes the lock and the folder, while others are about to take them."""
    code = (
        "import sys; from camgraph.pipeline.graph import load_plan; from camgraph.pipeline.errors import UserError;"
        "from camgraph.pipeline.outbox.outbox_folder import outbox_held\n"
        "plan, held = load_plan(sys.argv[1]), 0\n"
        "while held < 200:\n"
        "    try:\n"
        "        with outbox_held(plan): held += 1\n"
        "    except UserError: pass\n"
    )
    graph = tmp_path / "graph.yaml"
    taking = [subprocess.Popen([sys.executable, "-c", code, str(graph)]) for _ in range(3)]
    assert [process.wait(120) for process in taking] == [0, 0, 0]
    folder = outbox_folder(plan)
    assert folder is not None
    assert not folder.exists()


def test_a_killed_run_lets_go_of_its_outbox(plan: RunPlan, tmp_path: Path) -> None:
    code = (
        "import os, sys; from camgraph.pipeline.graph import load_plan\n"
        "from camgraph.pipeline.outbox.outbox_folder import outbox_held\n"
        "with outbox_held(load_plan(sys.argv[1])): os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "graph.yaml")], check=False)
    folder = outbox_folder(plan)
    assert folder is not None
    assert (folder / "lock").exists()
    with outbox_held(plan):
        pass
    assert not folder.exists()


def test_full_disk_does_not_prevent_locking(plan: RunPlan, tmp_path: Path) -> None:
    """What the lock says of its holder is a courtesy. A limit on the size of files stands in for the disk."""
    code = (
        "import resource, signal, sys; from camgraph.pipeline.graph import load_plan;"
        "from camgraph.pipeline.outbox.outbox_folder import outbox_held\n"
        "plan = load_plan(sys.argv[1])\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "with outbox_held(plan): print('held')"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "graph.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("held\n", 0), done.stderr


def test_lack_of_locks_is_reported_without_a_leak(plan: RunPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(_: int) -> bool:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(disk, "try_lock", no_locks)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(EnvironmentProblem, match="lock: cannot be used: No locks available; events are kept there"):
        with outbox_held(plan):
            pass
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.fixture
def left(plan: RunPlan) -> Path:
    """The folder of a run that was killed, with an outbox in which nothing waits; its name is not that of the plan."""
    own = outbox_folder(plan)
    assert own is not None
    folder = own.parent / "watch-0123abcd"
    folder.mkdir(parents=True)
    (folder / "lock").write_text("watch, process 1")
    open_event_file(folder / "outbox.sqlite", by_time=True).close()
    return folder


@pytest.fixture
def outbox(left: Path) -> Iterator[sqlite3.Connection]:
    """Its database."""
    with closing(sqlite3.connect(left / "outbox.sqlite", isolation_level=None)) as db:
        yield db


def wait_in(db: sqlite3.Connection) -> None:
    db.execute("INSERT INTO pending VALUES ('log', 1)")


def start_and_end(plan: RunPlan) -> None:
    with outbox_held(plan):
        pass


def test_next_run_sweeps_folder_of_killed_run(plan: RunPlan, left: Path) -> None:
    start_and_end(plan)
    assert not left.exists()
    left.mkdir()
    (left / "lock").touch()
    start_and_end(plan)
    assert not left.exists(), "killed before it had an outbox"


def test_events_that_wait_stay(plan: RunPlan, left: Path, outbox: sqlite3.Connection) -> None:
    wait_in(outbox)
    outbox.close()
    before = {path.name: path.read_bytes() for path in left.iterdir()}
    start_and_end(plan)
    assert {path.name: path.read_bytes() for path in left.iterdir()} == before


def test_events_stay_that_were_only_in_the_log_of_the_database(plan: RunPlan, left: Path, tmp_path: Path) -> None:
    """As they are when all processes of a run were killed at once."""
    code = (
        "import os, sqlite3, sys; db = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "db.execute('PRAGMA journal_mode = WAL'); db.execute(\"INSERT INTO pending VALUES ('log', 1)\")\n"
        "os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(left / "outbox.sqlite")], check=False)
    assert (left / "outbox.sqlite-wal").stat().st_size
    start_and_end(plan)
    with closing(sqlite3.connect(left / "outbox.sqlite")) as db:
        assert db.execute("SELECT count(*) FROM pending").fetchone() == (1,)


def test_an_outbox_that_a_process_still_has_open_stays(plan: RunPlan, left: Path, outbox: sqlite3.Connection) -> None:
    """Its supervisor was killed, and it delivers what it has."""
    outbox.execute("SELECT count(*) FROM pending").fetchone()
    start_and_end(plan)
    wait_in(outbox)
    assert {"lock", "outbox.sqlite"} <= {path.name for path in left.iterdir()}
    outbox.close()
    with closing(sqlite3.connect(left / "outbox.sqlite")) as db:
        assert db.execute("SELECT count(*) FROM pending").fetchone() == (1,)


def test_the_outbox_of_a_run_that_goes_on_stays(plan: RunPlan, left: Path) -> None:
    descriptor = os.open(left / "lock", os.O_RDWR)
    assert try_lock(descriptor)
    start_and_end(plan)
    assert sorted(path.name for path in left.iterdir()) == ["lock", "outbox.sqlite"]
    os.close(descriptor)
    start_and_end(plan)
    assert not left.exists()


@pytest.mark.parametrize("what", ["a file of somebody", "damage", "a link", "no lock"])
def test_what_may_be_no_outbox_stays(plan: RunPlan, left: Path, tmp_path: Path, what: str) -> None:
    if what == "a file of somebody":
        (left / "notes.txt").touch()
    elif what == "damage":
        (left / "outbox.sqlite").write_bytes(b"no database" * 100)
    elif what == "no lock":
        (left / "lock").unlink()
    else:
        left.rename(tmp_path / "elsewhere")
        left.symlink_to(tmp_path / "elsewhere")
    before = sorted(path.name for path in left.iterdir())
    start_and_end(plan)
    assert sorted(path.name for path in left.iterdir()) == before
