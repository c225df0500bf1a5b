"""How many processor cores this process may use: of the machine, of its affinity, and of its container.

affinity (taskset, cpuset)  a number of cores
quota (cgroup v2, v1)       time for each period: docker --cpus, CPUQuota= of systemd, a Kubernetes limit
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

CGROUPS = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")
_STAT = Path("/proc/stat")
_V1_NAMES = ("cpu,cpuacct", "cpu")


def usable_cores() -> int:
    """The cores that this process may run on, and not more than its containers' quotas pay for; at least 1.

    A quota of 2.5 cores counts as 2: a process that uses up its quota is stopped for the rest of each period, and other
    stages live on the rest. If the system does not report a limit (Windows, macOS), all cores of the machine count.
    """
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = quota_cores(CGROUPS, _text(MEMBERSHIP))
    return max(1, there if quota is None else min(there, int(quota)))


def quota_cores(cgroups: Path, membership: str) -> float | None:
    """The lowest quota of a process's control groups, in cores; None if none of them has one.

    ``membership``: the text of its /proc/<pid>/cgroup; ``cgroups``: their mount point. A limit of an outer group holds
    for all groups in it, so each is asked up to the root. Inside a container the path may be the host's, of which only
    the root is visible: missing groups are passed over.
    """
    return min(_quotas(cgroups, membership), default=None)


def _quotas(cgroups: Path, membership: str) -> Iterator[float]:
    for line in membership.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            for group in up_to_root(cgroups, path):
                yield from _quota(*(_text(group / "cpu.max").split() or ("max", "")))
        elif "cpu" in controllers.split(","):
            for group in [each for name in _V1_NAMES for each in up_to_root(cgroups / name, path)]:
                yield from _quota(_text(group / "cpu.cfs_quota_us"), _text(group / "cpu.cfs_period_us"))


def up_to_root(root: Path, path: str) -> Iterator[Path]:
    """A control group and those that it lies in, by its path in the text of a membership."""
    inner = PurePosixPath(path.removeprefix("/"))
    if ".." not in inner.parts:
        yield from (root / each for each in (inner, *inner.parents))


def _quota(quota: str, period: str = "") -> Iterator[float]:
    """In cores; nothing for `max`, -1 and texts that are no number."""
    try:
        cores = int(quota) / int(period)
    except (ValueError, ZeroDivisionError):
        return
    if cores > 0:
        yield cores


def busy_s() -> float:
    """Seconds for which the machine's cores have been busy, all together; 0 if the system does not report it."""
    try:
        fields = [int(field) for field in _STAT.read_text().splitlines()[0].split()[1:9]]
        user, nice, system, _idle, _waiting, *interrupts = fields
    except (OSError, ValueError, IndexError):
        return 0.0
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""
