"""Looks at runs from outside: their processes, and what they leave."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path

BOUND_S = 60.0
"""Far longer than anything takes, on a machine that is five times slower."""


def next_line(process: subprocess.Popen[str]) -> str:
    """The next line of its output, and nothing behind it: `communicate` does not see what `readline` has buffered."""
    assert process.stdout is not None
    line = b""
    while not line.endswith(b"\n") and (one := os.read(process.stdout.fileno(), 1)):
        line += one
    return line.decode()


def children_of(pid: int) -> dict[str, int]:
    """Unit -> process id, of the processes of all runs that this process has."""
    found: dict[str, int] = {}
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        children = ""
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has just ended
            children = task.read_text()
        for child in map(int, children.split()):
            with suppress(FileNotFoundError, ProcessLookupError):
                words = Path(f"/proc/{child}/cmdline").read_bytes().rstrip(b"\0 ").decode().split("\0")
                if any(word.startswith("camgraph.pipeline.") for word in words):
                    found[words[-1].rpartition("/")[2]] = child
    return found


def left_of(name: str) -> list[str]:
    """Files in /dev/shm of runs whose names begin so."""
    return [path.name for path in Path("/dev/shm").glob(f"camgraph-{os.getuid()}-{name}*")]
