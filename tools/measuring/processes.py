"""A run's processes as the kernel shows them: memory, descriptors, threads, zombies, shared memory."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from camgraph.pipeline.system.paths import SHARED_MEMORY, runs_folder

_PROC = Path("/proc")
SUPERVISOR = "supervisor"


@dataclass(frozen=True, slots=True)
class Member:
    """One process. `own_kb` is its own memory (anonymous); `pss_kb` all that it has in memory, with its share of the
    pages that several processes have. `open`: kind of descriptor -> how many; numbers in names are replaced by an N.
    """

    pid: int
    process: str
    pss_kb: int
    own_kb: int
    threads: int
    open: Mapping[str, int]
    zombie: bool = False

    @property
    def kind(self) -> str:
        """Its process without number or camera."""
        return self.process.partition(".")[0]

    @property
    def descriptors(self) -> int:
        """How many it has open."""
        return sum(self.open.values())

    @property
    def outgrown(self) -> int:
        """Mapped segments whose senders have larger ones now: a reader keeps a few (`pipeline.shm.mappings`)."""
        return sum(
            n for what, n in self.open.items() if what.startswith(str(SHARED_MEMORY)) and what.endswith(" (deleted)")
        )


@dataclass(frozen=True, slots=True)
class Sample:
    """The whole family at one moment, `at_s` on the monotonic clock."""

    at_s: float
    members: tuple[Member, ...]
    shm_bytes: int
    shm_files: int

    @property
    def zombies(self) -> frozenset[int]:
        """Pids of those that are dead and not waited for."""
        return frozenset(member.pid for member in self.members if member.zombie)

    @property
    def living(self) -> tuple[Member, ...]:
        """All others."""
        return tuple(member for member in self.members if not member.zombie)

    def total(self, field: str) -> float:
        """A field of all living members, added up."""
        return float(sum(getattr(member, field) for member in self.living))

    def kinds(self) -> Mapping[str, list[Member]]:
        """The living by kind."""
        found: dict[str, list[Member]] = {}
        for member in self.living:
            found.setdefault(member.kind, []).append(member)
        return found


def sample(supervisor: int, run: str) -> Sample:
    """Look at the supervisor and all processes below it, independently of the run's own status."""
    members = [member for pid in tree(supervisor) if (member := _member(pid, supervisor))]
    sizes = [size for path in SHARED_MEMORY.glob(_segments_of(run)) if (size := _size(path)) is not None]
    return Sample(time.monotonic(), tuple(members), sum(sizes), len(sizes))


def tree(root: int) -> list[int]:
    """The process and all that come from it, itself first."""
    children: dict[int, list[int]] = defaultdict(list)
    for pid in _pids():
        with contextlib.suppress(OSError, IndexError):
            # The name of a program may hold anything, also a parenthesis.
            parent = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()[1]
            children[int(parent)].append(pid)
    found = [root]
    for pid in found:
        found += sorted(children[pid])
    return found


def own_mb(pid: int) -> float:
    """The memory that is a living process's alone (anonymous), in megabytes."""
    return int(_status(pid)["RssAnon"].split()[0]) / 1000


def command_lines(pids: Iterable[int]) -> str:
    """All of them, one a line."""
    return "\n".join(" ".join(_words(pid)) for pid in pids)


def left_over(run: str) -> list[str]:
    """The remains of a run that has ended: segments, its folder with the sockets, processes."""
    segments = [path.name for path in SHARED_MEMORY.glob(_segments_of(run))]
    folder = runs_folder() / run
    return [*segments, *([str(folder)] if folder.exists() else []), *_children_of(run)]


def orphans(run: str) -> list[str]:
    """Segments of a run that goes on whose owner is dead: whose lock nobody holds."""
    found = []
    for path in SHARED_MEMORY.glob(_segments_of(run)):
        with contextlib.suppress(FileNotFoundError, BlockingIOError, PermissionError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            found.append(path.name)
    return found


def sockets(run: str) -> int:
    """How many socket files a run has."""
    return sum(path.is_socket() for path in (runs_folder() / run).rglob("*"))


def _segments_of(run: str) -> str:
    return f"camgraph-{os.getuid()}-{run}-*"


def _size(path: Path) -> int | None:
    with contextlib.suppress(OSError):
        return path.stat().st_size
    return None


def _children_of(run: str) -> list[str]:
    words = {pid: _words(pid) for pid in _pids()}
    return [f"process {pid} {w[-1]}" for pid, w in words.items() if w[-1].startswith(f"{run}/") and _is_child(w)]


def _is_child(words: list[str]) -> bool:
    return "camgraph.pipeline.worker.child" in words


def _pids() -> list[int]:
    return [int(path.name) for path in _PROC.iterdir() if path.name.isdigit()]


def _words(pid: int) -> list[str]:
    with contextlib.suppress(OSError):
        return (_PROC / str(pid) / "cmdline").read_bytes().rstrip(b"\0 ").decode(errors="replace").split("\0")
    return [""]


def _member(pid: int, supervisor: int) -> Member | None:
    """One process; None if it is gone meanwhile."""
    try:
        status = _status(pid)
        zombie = status["State"].split()[0] == "Z"
    except (OSError, KeyError):
        return None
    process = SUPERVISOR if pid == supervisor else _words(pid)[-1].rpartition("/")[2]
    rss, own, threads = (int(status.get(name, "0").split()[0]) for name in ("VmRSS", "RssAnon", "Threads"))
    exact = _exact_sizes(pid)
    pss, own = exact.get("Pss", rss), exact.get("Anonymous", own)
    return Member(pid, process, pss, own, threads, {} if zombie else _open(pid), zombie)


def _exact_sizes(pid: int) -> dict[str, int]:
    """In kB; the numbers in `status` lag behind by some hundred. Nothing of a process that may not be looked into."""
    with contextlib.suppress(OSError):
        lines = (_PROC / str(pid) / "smaps_rollup").read_text().splitlines()[1:]
        return {line.partition(":")[0]: int(line.split()[1]) for line in lines}
    return {}


def _status(pid: int) -> dict[str, str]:
    lines = (_PROC / str(pid) / "status").read_text().splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


def _open(pid: int) -> Mapping[str, int]:
    found: Counter[str] = Counter()
    with contextlib.suppress(OSError):
        for path in (_PROC / str(pid) / "fd").iterdir():
            with contextlib.suppress(OSError):
                found[re.sub(r"\d+", "N", str(path.readlink()))] += 1
    return found
