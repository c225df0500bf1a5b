"""How much memory this process may use: of the machine, and of its container.

cgroup v2   memory.max               docker --memory, MemoryMax= of systemd, a Kubernetes limit
cgroup v1   memory.limit_in_bytes
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from camgraph.pipeline.system.cores import CGROUPS, MEMBERSHIP, up_to_root

_MEMINFO = Path("/proc/meminfo")


def usable_memory() -> int | None:
    """Bytes of the machine, and not more than its containers are given; None if the system does not say."""
    there = _of_machine(_text(_MEMINFO))
    given = given_memory(CGROUPS, _text(MEMBERSHIP))
    return min((each for each in (there, given) if each is not None), default=None)


def given_memory(cgroups: Path, membership: str) -> int | None:
    """The lowest limit of a process's control groups, in bytes; None if none of them has one.

    The arguments are those of `pipeline.system.cores.quota_cores`.
    """
    return min(_limits(cgroups, membership), default=None)


def _limits(cgroups: Path, membership: str) -> Iterator[int]:
    for line in membership.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            files = [group / "memory.max" for group in up_to_root(cgroups, path)]
        elif "memory" in controllers.split(","):
            files = [group / "memory.limit_in_bytes" for group in up_to_root(cgroups / "memory", path)]
        else:
            continue
        yield from (int(text) for file in files if (text := _text(file)).isdecimal())  # no limit is `max`


def _of_machine(meminfo: str) -> int | None:
    lines = (line.split() for line in meminfo.splitlines() if line.startswith("MemTotal:"))
    return next((int(line[1]) << 10 for line in lines), None)


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""
