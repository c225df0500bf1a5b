"""One child process, from its start until it is dead and cleaned up."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from camgraph.pipeline.boot import Boot
from camgraph.pipeline.shm.segments import unlink_prefix
from camgraph.pipeline.supervision.child_start import ForkServer, Started, executed
from camgraph.pipeline.supervision.lines import Lines
from camgraph.pipeline.system.run_folder import unlink_socket
from camgraph.pipeline.system.scarcity import require_descriptors
from camgraph.pipeline.transport.channel import Channel

_PIECE = 1 << 16


class ChildProcess:
    """A started child. `boot` is its start message; `pidfd` becomes readable when the child is dead.

    It inherits two descriptors, and its arguments contain no secret. `stderr_fd` is the read end of its standard
    error, to which libraries and Python itself write; -1 after its end of file. Raises OSError if the machine lacks
    resources for the child; then nothing of it is left.
    """

    def __init__(self, boot: Boot, fork_server: ForkServer) -> None:
        require_descriptors()
        label = f"{boot.run}/{boot.plan.name}"
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
                        descriptors = theirs.fileno(), life_read, stderr_in
                        started: Started = fork_server.start(label, *descriptors) or executed(label, *descriptors)
            undo.callback(started.wait)
            undo.callback(started.kill)
            pidfd = os.pidfd_open(started.pid)
            undo.pop_all()
        self.boot = boot
        self.channel = Channel(ours)
        self.pidfd = pidfd
        self.stderr_fd = stderr
        self._lines = Lines()
        self._started, self._life = started, life

    @property
    def pid(self) -> int:
        """The process id."""
        return self._started.pid

    def kill(self) -> None:
        """Send SIGKILL; `pidfd` becomes readable when the child is dead."""
        self._started.kill()

    def read_stderr(self) -> list[str]:
        """Return the lines that have arrived on `stderr_fd`, at most one piece a call."""
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

    def reap(self) -> int:
        """Clean up after the child's death, and return its exit status, negative for a signal."""
        status = self._started.wait()
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
