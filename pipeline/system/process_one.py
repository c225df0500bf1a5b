"""What a command has to do as process 1 of a container: collect orphans, and pass signals on.

    process 1 --fork--> the command      which collects its own children
        ^------------- orphans: what a program of `sink_command` leaves behind, say, when the program ends

Process 1 becomes the parent of all orphans. Only process 1 can collect the exit status of an orphan;
otherwise orphans stay zombies until the container can start no more processes. An image needs no `tini`, and a pod no
shared process namespace.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress

_NOT_PASSED_ON = ("SIGSEGV", "SIGFPE", "SIGILL", "SIGBUS", "SIGTRAP", "SIGABRT", "SIGSYS", "SIGKILL", "SIGSTOP")
"""Faults of process 1 itself, and signals that nobody can wait for."""
_BY_SIGNAL = 128
"""Exit statuses above this one are those of a process that a signal has ended."""


def leave_orphans_to_parent() -> None:
    """If this is process 1: go on in a child, and let process 1 look after orphans. Call it before any thread starts.

    Process 1 ends with the child's status, and with it the container.
    """
    if os.getpid() != 1 or not sys.platform.startswith("linux"):
        return
    passed_on = signal.valid_signals() - {signal.Signals[name] for name in _NOT_PASSED_ON}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, passed_on)
    child = os.fork()
    if child == 0:
        _take_terminal()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return
    os._exit(_look_after(child, passed_on))


def _take_terminal() -> None:
    """Ctrl-C is for the foreground alone: it must not come a second time through process 1."""
    with suppress(OSError):
        if os.tcgetpgrp(0) == os.getpgrp():
            os.setpgid(0, 0)
            os.tcsetpgrp(0, os.getpid())  # while SIGTTOU is blocked


def _look_after(child: int, passed_on: Iterable[int]) -> int:
    """Until the child ends. Returns the exit status for process 1."""
    while True:
        number = signal.sigwait(passed_on)
        if number != signal.SIGCHLD:
            with suppress(ProcessLookupError):
                os.kill(child, number)
        elif (code := _collected(child)) is not None:
            return code if code >= 0 else _BY_SIGNAL - code


def _collected(child: int) -> int | None:
    """Collect all that have ended. Returns the exit code of the child if it is among them."""
    code = None
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == child:
                code = os.waitstatus_to_exitcode(ended[1])
    return code
