"""One life of a process: a child, started by a clean exec, with its channel, until it is dead and cleaned up after."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from pipeline.boot import Boot
from pipeline.shm.segments import unlink_prefix
from pipeline.supervision.lines import Lines
from pipeline.system.child_environment import handed_on
from pipeline.system.run_folder import unlink_socket
from pipeline.system.scarcity import require_descriptors
from pipeline.transport.channel import Channel

_PIECE = 1 << 16


class ChildProcess:
    """A child that has been started. `boot` is what it was started with; `pidfd` becomes readable when it is dead.

    It inherits two descriptors, and its arguments hold nothing secret. `stderr_fd` is the end of its standard
    error to read from, to which libraries and Python itself write; -1 when that has ended. Raises OSError where the
    machine does not give enough for it; then nothing of it stays.
    """

    def __init__(self, boot: Boot) -> None:
        require_descriptors()
        with ExitStack() as undo:
            ours, theirs = socket.socketpair()
            undo.callback(ours.close)
            with theirs:
                life_read, life = os.pipe2(os.O_CLOEXEC)
                undo.callback(os.close, life)
                with _closing(life_read):
                    stderr, stderr_in = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
                    undo.callback(os.close, stderr)
                    with _closing(stderr_in):
                        os.set_blocking(stderr_in, True)
                        popen = _executed(f"{boot.run}/{boot.unit.name}", theirs.fileno(), life_read, stderr_in)
            undo.callback(popen.wait)
            undo.callback(popen.kill)
            pidfd = os.pidfd_open(popen.pid)
            undo.pop_all()
        self.boot = boot
        self.channel = Channel(ours)
        self.pidfd = pidfd
        self.stderr_fd = stderr
        self._lines = Lines()
        self._popen, self._life = popen, life

    @property
    def pid(self) -> int:
        """The process id."""
        return self._popen.pid

    def kill(self) -> None:
        """SIGKILL; `pidfd` says when it is dead."""
        self._popen.kill()

    def read_stderr(self) -> list[str]:
        """The lines that have come on `stderr_fd`; of somebody who never stops, not all at once."""
        try:
            piece = os.read(self.stderr_fd, _PIECE)
        except BlockingIOError:
            return []
        if not piece:
            self._end_stderr()
        return self._lines.take(piece) if piece else self._lines.last()

    def _end_stderr(self) -> None:
        if self.stderr_fd >= 0:
            os.close(self.stderr_fd)
            self.stderr_fd = -1

    def bury(self) -> int:
        """Clean up after its death; its exit status, negative for a signal."""
        status = self._popen.wait()
        self.channel.close()
        self._end_stderr()
        os.close(self._life)
        os.close(self.pidfd)
        unlink_socket(self.boot.endpoint)
        unlink_prefix(self.boot.shm_prefix)
        return status


@contextmanager
def _closing(descriptor: int) -> Iterator[None]:
    try:
        yield
    finally:
        os.close(descriptor)


def _executed(label: str, control: int, life: int, stderr: int) -> subprocess.Popen[bytes]:
    """A clean exec of a child that inherits these descriptors."""
    # -P: what lies in the working directory is no module, whatever its name.
    python = [sys.executable, "-P", "-m", "pipeline.worker.child"]
    return subprocess.Popen(  # noqa: S603 - our own interpreter and module
        [*python, "--control", str(control), "--life", str(life), label],
        pass_fds=(control, life),
        stdin=subprocess.DEVNULL,
        stderr=stderr,
        env={**handed_on(os.environ), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        # Ctrl-C goes to all of a terminal's group, and would kill a child that does not ignore it yet.
        process_group=0,
    )
