"""Looks at runs from outside: their processes, and what they leave."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

BOUND_S = 60.0
"""Far longer than anything takes, on a machine that is five times slower."""


def until(holds: Callable[[], object], what: str, *, bound_s: float = BOUND_S) -> None:
    """Wait until something holds."""
    late = time.monotonic() + bound_s
    pause = threading.Event()
    while not holds():
        assert time.monotonic() < late, f"not within {bound_s:g} s: {what}"
        pause.wait(0.02)


def children_of(pid: int) -> dict[str, int]:
    """Unit -> process id, of the processes of all runs that this process has."""
    found: dict[str, int] = {}
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            with suppress(FileNotFoundError, ProcessLookupError):
                words = Path(f"/proc/{child}/cmdline").read_bytes().decode().split("\0")
                if any(word.startswith("pipeline.") for word in words):
                    found[words[-2].rpartition("/")[2]] = child
    return found


def left_of(name: str) -> list[str]:
    """Files in /dev/shm of runs whose names begin so."""
    return [path.name for path in Path("/dev/shm").glob(f"camgraph-{os.getuid()}-{name}*")]
