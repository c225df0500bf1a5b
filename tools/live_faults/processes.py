"""What the processes of a run hold, out of /proc and /dev/shm, and what of it has grown."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

_PROC = Path("/proc")
_SHM = Path("/dev/shm")  # noqa: S108 - where the segments are
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Held:
    """By one process. ``open``: what its descriptors are -> how many; ``memory``: bytes of its own in the RAM."""

    open: Mapping[str, int]
    threads: int
    memory: int

    @property
    def descriptors(self) -> int:
        """Without those of `outgrown`."""
        return sum(self.open.values()) - self.outgrown

    @property
    def outgrown(self) -> int:
        """Segments of senders that have larger ones now: a reader keeps a few of each (`pipeline.mappings`)."""
        return sum(n for what, n in self.open.items() if what.startswith(str(_SHM)) and what.endswith(" (deleted)"))


@dataclass(frozen=True, slots=True)
class Sample:
    """Of a whole run. ``held``: by the name of the process; ``segments``: files in /dev/shm."""

    held: Mapping[str, Held]
    zombies: int
    segments: int

    def without(self, names: Collection[str]) -> Sample:
        """The same, but for these processes."""
        return replace(self, held={name: held for name, held in self.held.items() if name not in names})

    @property
    def descriptors(self) -> int:
        return sum(one.descriptors for one in self.held.values())

    @property
    def threads(self) -> int:
        return sum(one.threads for one in self.held.values())

    @property
    def memory_mb(self) -> float:
        return sum(one.memory for one in self.held.values()) / 1e6


def tree(root: int) -> list[int]:
    """The process and all that come from it, itself first."""
    children: dict[int, list[int]] = defaultdict(list)
    for pid, fields in _stats():
        children[int(fields[1])].append(pid)
    found = [root]
    for pid in found:
        found += children[pid]
    return found


def command_lines(pids: Iterable[int]) -> str:
    """All of them, one a line."""
    return "\n".join(_text(_PROC / str(pid) / "cmdline").replace("\0", " ") for pid in pids)


def cpu_s(root: int) -> float:
    """What the tree has worked, its dead included."""
    stats = dict(_stats())
    return sum(sum(map(int, stats[pid][11:15])) for pid in tree(root) if pid in stats) / _TICKS


def machine_cpu_s() -> float:
    """What all cores have worked since the machine was started, for whomever."""
    user, nice, system, _, _, irq, softirq, *_ = map(int, _text(_PROC / "stat").split("\n", 1)[0].split()[1:])
    return (user + nice + system + irq + softirq) / _TICKS


def sample(root: int, run: str) -> Sample:
    """Of the run whose supervisor is ``root``."""
    pids = tree(root)
    states = {pid: fields[0] for pid, fields in _stats()}
    held = {_name(pid, root): _held(pid) for pid in pids if states.get(pid, "Z") != "Z"}
    segments = sum(1 for _ in _SHM.glob(f"camgraph-{os.getuid()}-{run}-*"))
    return Sample(held, sum(states.get(pid) == "Z" for pid in pids), segments)


def grown(before: Sample, after: Sample, *, memory_mb: float) -> list[str]:
    """What there is more of than before, in words; a process may need ``memory_mb`` more. Pure."""
    found = [f"{name}: new" for name in after.held.keys() - before.held.keys()]
    found += [f"{name}: gone" for name in before.held.keys() - after.held.keys()]
    for name in before.held.keys() & after.held.keys():
        old, new = before.held[name], after.held[name]
        if new.descriptors > old.descriptors:
            more = dict(Counter(new.open) - Counter(old.open))
            found.append(f"{name}: descriptors {old.descriptors} -> {new.descriptors}: {more}")
        if new.outgrown > len(after.held):
            found.append(f"{name}: {new.outgrown} segments that are no more")
        if new.threads > old.threads:
            found.append(f"{name}: threads {old.threads} -> {new.threads}")
        if new.memory > old.memory + memory_mb * 1e6:
            found.append(f"{name}: memory {old.memory / 1e6:.1f} -> {new.memory / 1e6:.1f} MB")
    if after.segments > before.segments:
        found.append(f"segments {before.segments} -> {after.segments}")
    if after.zombies:
        found.append(f"zombies: {after.zombies}")
    return sorted(found)


def _stats() -> Iterator[tuple[int, list[str]]]:
    """(pid, fields from the state on) of all processes."""
    for path in _PROC.glob("[0-9]*/stat"):
        text = _text(path)
        if text:
            yield int(path.parent.name), text.rpartition(")")[2].split()


def _name(pid: int, root: int) -> str:
    """As the run calls it."""
    words = _text(_PROC / str(pid) / "cmdline").rstrip("\0").split("\0")
    return "supervisor" if pid == root else words[-1]


def _held(pid: int) -> Held:
    folder = _PROC / str(pid)
    _, resident, shared, *_ = (_text(folder / "statm") or "0 0 0").split()
    return Held(_open(folder / "fd"), _count(folder / "task"), (int(resident) - int(shared)) * _PAGE)


def _open(folder: Path) -> Mapping[str, int]:
    """Of each kind, by what it is; numbers are left out, which are others each time."""
    found: Counter[str] = Counter()
    with suppress(OSError):
        for path in folder.iterdir():
            with suppress(OSError):
                found[re.sub(r"\d+", "N", str(path.readlink()))] += 1
    return found


def _count(folder: Path) -> int:
    with suppress(OSError):
        return sum(1 for _ in folder.iterdir())
    return 0


def _text(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(errors="replace")
    return ""
