"""Starts the processes of a run as copies of one that has imported the runtime: a `fork` instead of an `exec`.

    python -P -m camgraph.pipeline.worker.fork_server --control FD [--load MODULE ...] LABEL

To import the runtime takes half a second of processor time and 40 MB of memory; a copy has both for nothing. The server
is told of one process at a time:

    server -> supervisor   ready
    supervisor -> server   the label, and three descriptors: the control, the life and the standard error of the process
    server -> supervisor   the process id, or an errno below zero

The new process is a child of the supervisor and not of the server: the server starts a process that starts the new one
and ends, and the supervisor is the reaper of orphans until the answer comes (`pipeline.supervision.child_start`). So
supervisors start, watch and bury copies as they do processes of their own, and the death of the server costs nobody.

The server has one thread, has opened nothing and is told no secret. What it imports must start no threads: modules of
camgraph alone.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import importlib
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from camgraph.pipeline.worker import child

READY = b"ready"
"""What the server says once, when it can start processes."""
MOST_LABEL = 256
"""Bytes of a label, and room in the server's command line for the one that a copy shows."""
DESCRIPTORS = 3
_WITHIN_S = 5.0
"""How long a new process waits until it is a child of the supervisor."""
_ARGUMENTS = 45
"""In /proc/PID/stat, behind the name: the place of `arg_start`, which `arg_end` follows."""


class Start(NamedTuple):
    """A process to be: its label, and the descriptors that it inherits."""

    label: str
    control: int
    life: int
    stderr: int


def serve(requests: socket.socket) -> Start | None:
    """Start processes until the supervisor is gone: None. In a started process, returns what it is."""
    while start := _next(requests):
        if _is_copy(start, requests):
            return start
        for descriptor in start[1:]:
            os.close(descriptor)
    return None


def _next(requests: socket.socket) -> Start | None:
    label, descriptors, _, _ = socket.recv_fds(requests, MOST_LABEL, DESCRIPTORS)
    return Start(label.decode(errors="replace"), *descriptors) if len(descriptors) == DESCRIPTORS else None


def _is_copy(start: Start, requests: socket.socket) -> bool:
    """True in the new process, once it is a child of the supervisor and has said so."""
    server = os.getpid()
    try:
        between = os.fork()
    except OSError as error:
        requests.send(str(-(error.errno or 1)).encode())
        return False
    if between:
        os.waitpid(between, 0)
        return False
    between = os.getpid()
    try:
        if os.fork():
            os._exit(0)
    except OSError as error:
        requests.send(str(-(error.errno or 1)).encode())
        os._exit(0)
    until_s = time.monotonic() + _WITHIN_S
    while os.getppid() in (between, server) and time.monotonic() < until_s:
        time.sleep(0.0005)
    os.setpgid(0, 0)  # Ctrl-C goes to the whole group of a terminal, and would kill a child that does not ignore it yet
    os.dup2(start.stderr, sys.stderr.fileno())
    os.close(start.stderr)
    _rename(start)
    requests.send(str(os.getpid()).encode())
    requests.close()
    return True


def _rename(start: Start) -> None:
    """Take the command line that an `exec` of `child` would have: people and tools know processes by it."""
    sys.argv = [child.__file__, "--control", str(start.control), "--life", str(start.life), start.label]
    with suppress(OSError, ValueError):
        fields = Path("/proc/self/stat").read_text(errors="replace").rpartition(")")[2].split()
        begin, end = map(int, fields[_ARGUMENTS : _ARGUMENTS + 2])
        words = [*sys.orig_argv[:3], child.__spec__.name, *sys.argv[1:]]
        line = b"\0".join(word.encode(errors="surrogateescape") for word in words)[: max(0, end - begin - 1)]
        ctypes.memset(begin, 0, end - begin)
        ctypes.memmove(begin, line, len(line))


def main() -> int:
    """The command line of `python -m camgraph.pipeline.worker.fork_server`."""
    parser = argparse.ArgumentParser(prog="python -m camgraph.pipeline.worker.fork_server")
    parser.add_argument("--control", type=int, required=True)
    parser.add_argument("--load", nargs="*", default=[])
    parser.add_argument("label")
    arguments = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    for module in arguments.load:
        importlib.import_module(module)
    gc.freeze()  # a look for garbage would write to all objects, and so copy their memory
    requests = socket.socket(fileno=arguments.control)
    requests.send(READY)
    start = serve(requests)
    return child.live(start.control, start.life, start.label) if start else 0


if __name__ == "__main__":
    sys.exit(main())
