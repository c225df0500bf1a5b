"""The two ways to start a child of this process: a copy that the run's fork server makes, or an `exec` of Python.

A copy has imported the runtime already (`pipeline.worker.fork_server`). If no server answers, the `exec` does the same,
and only takes longer.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Protocol

from camgraph.pipeline.plan import RunPlan
from camgraph.pipeline.registry import find_stage, stage_names
from camgraph.pipeline.system.child_environment import handed_on

_SET_REAPER, _GET_REAPER = 36, 37
"""PR_SET_CHILD_SUBREAPER and PR_GET_CHILD_SUBREAPER: whether orphans below this process become its children."""
_IMPORTS_S, _FORKS_S = 60.0, 5.0
"""How long a server may take until it is ready, for which it imports the runtime, and then for a process."""
_TRIES = 3
"""So many servers may die or not answer; then each process is executed."""
_ROOM = 240
"""Characters of the server's label: a process writes its own command line over that of the server."""
_reaping = threading.Lock()
"""Of all runs in one program, one at a time may change who the reaper is."""


class Started(Protocol):
    """What is needed of a child, until it has been waited for."""

    @property
    def pid(self) -> int: ...
    def kill(self) -> None: ...
    def wait(self) -> int: ...


class Copy:
    """A child that the fork server has made."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    @property
    def pid(self) -> int:
        """The process id."""
        return self._pid

    def kill(self) -> None:
        """Send SIGKILL."""
        os.kill(self._pid, signal.SIGKILL)

    def wait(self) -> int:
        """Wait for the child's death: its exit status, negative for a signal."""
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])


def executed(label: str, control: int, life: int, stderr: int) -> subprocess.Popen[bytes]:
    """Start a child by a clean exec, with these descriptors."""
    return _python(
        "camgraph.pipeline.worker.child", ["--control", str(control), "--life", str(life), label], stderr, control, life
    )


def _python(module: str, arguments: Sequence[str], stderr: int, *inherited: int) -> subprocess.Popen[bytes]:
    # -P: Python must not import modules from the working directory.
    return subprocess.Popen(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-P", "-m", module, *arguments],
        pass_fds=inherited,
        stdin=subprocess.DEVNULL,
        stderr=stderr,
        env={**handed_on(os.environ), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        # Ctrl-C goes to the whole group of a terminal, and would kill a child that does not ignore it yet.
        process_group=0,
    )


class ForkServer:
    """The fork server of a run, from its supervisor's side: started with the first process, and anew if it has died.

    `run`: the name of the run. `load`: modules that the server imports.
    """

    def __init__(self, run: str, load: Collection[str] = ()) -> None:
        self._label = f"{run}/fork-server"
        self._load = list(load)
        self._tries_left = _TRIES
        self._server: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None

    def start(self, label: str, control: int, life: int, stderr: int) -> Started | None:
        """A child with these descriptors; None if no server answers. Raises OSError if the machine lacks resources."""
        if not self._tries_left:
            return None
        try:
            requests = self._requests or self._begin()
            with _reaper_of_orphans():
                socket.send_fds(requests, [label.encode()], [control, life, stderr])
                answer = int(requests.recv(32))
        except (OSError, ValueError):  # it is dead (nothing comes), stopped, or no server can be started
            self._tries_left -= 1
            self.close()
            return None
        if answer < 0:
            raise OSError(-answer, os.strerror(-answer))
        return Copy(answer) if self._is_child(answer) else None

    def _is_child(self, pid: int) -> bool:
        """Whether this process can wait for it: not where the system knows no reapers but its first process."""
        try:
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            self._tries_left = 0
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            return False
        return True

    def _begin(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(_IMPORTS_S)
        self._requests = ours
        with theirs:
            words = ["--control", str(theirs.fileno()), "--load", *self._load, "--", self._label.ljust(_ROOM)]
            module = "camgraph.pipeline.worker.fork_server"
            self._server = _python(module, words, subprocess.DEVNULL, theirs.fileno())
        ours.recv(32)  # that it is ready; or nothing, if it is dead, and then the next message tells
        ours.settimeout(_FORKS_S)
        return ours

    def close(self) -> None:
        """End the server. The processes that it has made go on."""
        if self._requests is not None:
            self._requests.close()
            self._requests = None
        if self._server is not None:
            self._server.kill()  # there is nothing that it could lose
            self._server.wait()
            self._server = None


def modules_to_load(plan: RunPlan) -> list[str]:
    """Where the messages are defined that camgraph's own stages take and give: modules of others may start threads."""
    ours = set(stage_names("camgraph"))
    stages = [find_stage(stage.use) for process in plan.processes for stage in process.stages if stage.use in ours]
    return sorted({output.__module__ for stage in stages for output in stage.outputs})


@contextmanager
def _reaper_of_orphans() -> Iterator[None]:
    """Meanwhile, what a dead process below this one leaves becomes a child of this one."""
    with _reaping:
        system, before = ctypes.CDLL(None), ctypes.c_int()
        system.prctl(_GET_REAPER, ctypes.byref(before), 0, 0, 0)
        system.prctl(_SET_REAPER, 1, 0, 0, 0)
        try:
            yield
        finally:
            system.prctl(_SET_REAPER, before.value, 0, 0, 0)
