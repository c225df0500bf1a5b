"""The peak memory of this process.

The kernel's own high-water mark is read (VmHWM), which starts with the program; that of `getrusage` would start with
the memory of its parent.
"""

from __future__ import annotations

from pathlib import Path

_STATUS = Path("/proc/self/status")


def high_water_bytes() -> int | None:
    """Of this process until now; None if the system does not tell (only Linux does)."""
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), None)
