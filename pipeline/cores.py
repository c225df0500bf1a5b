"""How many processor cores there are for this process."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Those that it may run on; where the system does not tell (Windows, macOS), all of the machine."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
