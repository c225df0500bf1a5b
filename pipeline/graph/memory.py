"""How much shared memory a graph needs, as far as that is known before it runs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pipeline.graph.planning import Graph

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - it is the place that is meant


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """`known_bytes`: the slots of these sources; `unknown`: cameras whose pictures only opening would measure."""

    known_bytes: int
    slots: int
    unknown: tuple[str, ...]
    free_bytes: int

    @property
    def fits(self) -> bool:
        """False when the machine has too little."""
        return self.known_bytes <= self.free_bytes


def memory_need(graph: Graph) -> MemoryNeed:
    """What the slots of the sources need; nothing where no picture leaves a source's process."""
    window = graph.window
    cameras = graph.cameras.values() if _pictures_leave_sources(graph) else ()
    known = [camera.slot_bytes for camera in cameras if camera.slot_bytes is not None]
    return MemoryNeed(
        known_bytes=sum(known) * (window + 1),
        slots=len(known) * (window + 1),
        unknown=tuple(camera.name for camera in cameras if camera.slot_bytes is None),
        free_bytes=free_shared_memory(),
    )


def _pictures_leave_sources(graph: Graph) -> bool:
    sources = {node.name for node in graph.completed.nodes if node.source}
    return not graph.in_process and any(edge.sender in sources and not edge.inner for edge in graph.edges)


def free_shared_memory() -> int:
    """Bytes that are free in /dev/shm; 0 where there is none."""
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
