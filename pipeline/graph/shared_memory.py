"""Estimates the shared memory that a graph needs, as far as it is known before the run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from camgraph.pipeline.graph.planning import Graph, processes_of
from camgraph.pipeline.plan import ProcessPlan, slots_of
from camgraph.pipeline.shm.segments import PAGE, data_at, round_up
from camgraph.pipeline.system.paths import SHARED_MEMORY


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """`known_bytes`: the slots of these sources; `unknown`: cameras with pictures of unknown size before the run."""

    known_bytes: int
    slots: int
    unknown: tuple[str, ...]
    free_bytes: int

    @property
    def fits(self) -> bool:
        """False if the machine has too little."""
        return self.known_bytes <= self.free_bytes


def memory_need(graph: Graph) -> MemoryNeed:
    """The memory that the rings of the sources need; nothing if no picture leaves a source's process."""
    sources = [group for group in graph.groups if any(node.source for node in group.members)]
    rings = [ring for group in sources for process in processes_of(group, graph) if (ring := _ring_of(process, graph))]
    known = [ring for ring in rings if ring.slot_bytes]
    return MemoryNeed(
        known_bytes=sum(ring.size for ring in known),
        slots=sum(ring.slots for ring in known),
        unknown=tuple(camera for ring in rings for camera in ring.unknown),
        free_bytes=free_shared_memory(),
    )


@dataclass(frozen=True, slots=True)
class _Ring:
    """The slots of a source's process: all as large as its largest picture, 0 if none is known."""

    slots: int
    slot_bytes: int
    unknown: tuple[str, ...]

    @property
    def size(self) -> int:
        return data_at(self.slots) + self.slots * round_up(self.slot_bytes, PAGE)


def _ring_of(process: ProcessPlan, graph: Graph) -> _Ring | None:
    """None if no picture leaves the process as it is."""
    if graph.in_process or not any(edge.sender in process.sources for edge in process.outgoing):
        return None
    sizes = {camera: graph.cameras[camera].slot_bytes for camera in process.cameras}
    largest = max((size for size in sizes.values() if size is not None), default=0)
    return _Ring(slots_of(process), largest, tuple(camera for camera, size in sizes.items() if size is None))


def free_shared_memory() -> int:
    """Bytes that are free in /dev/shm; 0 if there is none."""
    if not hasattr(os, "statvfs"):
        return 0
    try:
        found = os.statvfs(SHARED_MEMORY)
    except OSError:
        return 0
    return found.f_bavail * found.f_frsize


def in_words(need: MemoryNeed) -> Iterable[str]:
    """Lines for people."""
    if need.slots:
        yield f"shared memory of the sources: {_size(need.known_bytes)} in {need.slots} slots"
    if need.unknown:
        yield f"  not known before it is opened: {', '.join(need.unknown[:5])}{_more(len(need.unknown) - 5)}"
    if need.slots or need.unknown:
        yield f"  free in {SHARED_MEMORY}: {_size(need.free_bytes)}"


def _more(count: int) -> str:
    return f" and {count} more" if count > 0 else ""


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count < 1e9 else f"{count / 1e9:.2f} GB"
