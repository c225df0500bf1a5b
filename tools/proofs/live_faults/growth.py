"""Finds resources of which a run holds more after the faults than before them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from tools.measuring.processes import Member, Sample


def grown(before: Sample, after: Sample, *, memory_mb: float, but: str = "") -> list[str]:
    """The resources that grew, in words. A process may gain ``memory_mb``; the process ``but`` is left out."""
    old, new = (_by_process(one, but) for one in (before, after))
    found = [f"{name}: new" for name in new.keys() - old.keys()]
    found += [f"{name}: gone" for name in old.keys() - new.keys()]
    for name in old.keys() & new.keys():
        found += [f"{name}: {what}" for what in _more(old[name], new[name], memory_mb, len(new))]
    if after.shm_files > before.shm_files:
        found.append(f"segments {before.shm_files} -> {after.shm_files}")
    if after.zombies:
        found.append(f"zombies: {len(after.zombies)}")
    return sorted(found)


def _by_process(one: Sample, but: str) -> Mapping[str, Member]:
    return {member.process: member for member in one.living if member.process != but}


def _more(old: Member, new: Member, memory_mb: float, processes: int) -> Iterator[str]:
    """Outgrown segments are bounded by the number of senders, whatever they were before."""
    had, has = old.descriptors - old.outgrown, new.descriptors - new.outgrown
    if has > had:
        yield f"descriptors {had} -> {has}: {dict(Counter(new.open) - Counter(old.open))}"
    if new.outgrown > processes:
        yield f"{new.outgrown} segments that are no more"
    if new.threads > old.threads:
        yield f"threads {old.threads} -> {new.threads}"
    if new.own_kb > old.own_kb + memory_mb * 1000:
        yield f"memory {old.own_kb / 1000:.1f} -> {new.own_kb / 1000:.1f} MB"
