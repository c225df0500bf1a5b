"""Children that a fork server makes: they are ours, look like executed ones, and outlive the server."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from camgraph_test_stages.waiting import until

from camgraph.pipeline.errors import EXIT_GAVE_UP
from camgraph.pipeline.supervision import child_start
from camgraph.pipeline.supervision.child_start import Copy, ForkServer, Started, executed

pytestmark = [pytest.mark.processes, pytest.mark.cold]
LABEL = "lobby/capture.front"


@pytest.fixture
def server() -> Iterator[ForkServer]:
    made = ForkServer("lobby")
    yield made
    made.close()


@contextmanager
def started(server: ForkServer, label: str = LABEL) -> Iterator[tuple[Started, int]]:
    """A child that waits for its plan until the end of the block, and the read end of its standard error."""
    with ExitStack() as stack:
        ours, theirs = socket.socketpair()
        stack.enter_context(ours)
        life, life_end = os.pipe2(os.O_CLOEXEC)
        stack.callback(os.close, life_end)
        said, stderr = os.pipe2(os.O_CLOEXEC)
        stack.callback(os.close, said)
        with theirs:
            descriptors = theirs.fileno(), life, stderr
            child = server.start(label, *descriptors) or executed(label, *descriptors)
        os.close(life)
        os.close(stderr)
        yield child, said
        ours.close()
        assert child.wait() == EXIT_GAVE_UP, "it got no plan"
        assert os.read(said, 1) == b"", "nobody else holds its standard error"


def pid_of_server() -> int:
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    (pid,) = [int(pid) for pid in children if b"fork_server" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return pid


def test_copies_are_children_that_look_like_executed_ones(server: ForkServer) -> None:
    with started(server) as (one, _), started(server, "lobby/infer.0") as (other, _):
        for child, label in ((one, LABEL), (other, "lobby/infer.0")):
            assert isinstance(child, Copy)
            process = Path(f"/proc/{child.pid}")
            until(lambda process=process, label=label: label.encode() in (process / "cmdline").read_bytes())
            words = (process / "cmdline").read_text().rstrip("\0").split("\0")
            assert [*words[1:5], words[-1]] == ["-P", "-m", "camgraph.pipeline.worker.child", "--control", label]
            until(lambda process=process: (process / "comm").read_text().startswith("cg:"))
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            assert (int(fields[1]), int(fields[2])) == (os.getpid(), child.pid), "our child, in a group of its own"
            assert str((process / "fd" / "0").readlink()) == "/dev/null"
            sockets = [str(fd.readlink()) for fd in (process / "fd").iterdir()]
            assert sum(name.startswith("socket:") for name in sockets) == 1, "it holds nothing of the server"


def test_a_long_label_is_cut_off(server: ForkServer) -> None:
    label = "lobby/" + "x" * 240
    with started(server, label) as (child, _):
        line = Path(f"/proc/{child.pid}/cmdline")
        until(lambda: b"lobby/xxx" in line.read_bytes())
        assert line.read_bytes().rstrip(b"\0").endswith(b"x")


def test_children_outlive_the_server_and_another_one_follows(server: ForkServer) -> None:
    with started(server) as (before, _):
        os.kill(pid_of_server(), signal.SIGKILL)
        with started(server) as (between, _):
            with started(server) as (after, _):
                assert (isinstance(between, Copy), isinstance(after, Copy)) == (False, True)
                assert Path(f"/proc/{before.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_server_that_stands_still_is_replaced(server: ForkServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_start, "_FORKS_S", 0.5)
    with started(server):
        stopped = pid_of_server()
        os.kill(stopped, signal.SIGSTOP)
        with started(server) as (child, _):
            assert not isinstance(child, Copy)
            assert not Path(f"/proc/{stopped}").exists()


def test_after_three_dead_servers_children_are_executed(server: ForkServer) -> None:
    for _ in range(3):
        with started(server) as (child, _):
            assert isinstance(child, Copy)
            os.kill(pid_of_server(), signal.SIGKILL)
        with started(server) as (child, _):
            assert not isinstance(child, Copy)
    with started(server) as (child, _):
        assert not isinstance(child, Copy)


def test_orphans_of_others_are_not_left_to_this_process(server: ForkServer) -> None:
    with started(server):
        pass
    orphan = "import os, sys, time\nif os.fork(): os._exit(0)\nos.setsid()\nsys.stdin.read()\nprint(os.getppid())"
    with subprocess.Popen([sys.executable, "-c", orphan], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.wait()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        assert int(process.stdout.read()) != os.getpid()
