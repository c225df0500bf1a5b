"""The expectations for a soaked run, judged on its samples. Pure: no process is looked at here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from camgraph.tools.lab.proofs.trials.flatness import HOUR_S, Bound, Flatness, judge
from camgraph.tools.lab.proofs.trials.subject import KINDS
from camgraph.tools.measuring.processes import SUPERVISOR, Sample

_WARM_UP_PART = 0.25
_LONGEST_WARM_UP_S = 1800.0
"""Memory grows by single steps of malloc for a good while after the start: of 110 minutes undisturbed, mostly early."""
_NOT_ONE = Bound(0, 0.5)
MEMORY = "memory of all (MB)"
LEAK_MB_PER_HOUR = 1.0
"""How much all processes of an undisturbed run may gain together, after it has warmed up."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much may be gained over the judged time. `memory` is of one process (the mean of its kind); MB."""

    memory: Bound = field(default=Bound(0.05, 2))
    total: Bound = field(default=Bound(0.03, 4))
    resident: Bound = field(default=Bound(0.03, 4))
    descriptors: Bound = field(default=Bound(0.02, 4))
    threads: Bound = field(default=Bound(0.02, 2))
    shm: Bound = field(default=Bound(0.02, 0.1))


@dataclass(frozen=True, slots=True)
class Verdict:
    """`flatness` by measured quantity; `faults`: each in a sentence, none if all is well."""

    flatness: Mapping[str, Flatness]
    faults: list[str] = field(default_factory=list)


def undisturbed_bounds(seconds: float) -> Bounds:
    """The bounds for a run that nothing happens to."""
    return Bounds(total=Bound(0, LEAK_MB_PER_HOUR * (seconds - warm_up_s(seconds)) / HOUR_S))


def warm_up_s(seconds: float) -> float:
    """How much of the beginning is not judged."""
    return min(_LONGEST_WARM_UP_S, _WARM_UP_PART * seconds)


def judge_samples(samples: Sequence[Sample], seconds: float, bounds: Bounds) -> Verdict:
    """Flat, and no process that stays a zombie."""
    times, warm = [sample.at_s for sample in samples], warm_up_s(seconds)
    flatness = {
        name: judge(times, values, bound, warm_up_s=warm) for name, (values, bound) in _series(samples, bounds).items()
    }
    faults = [
        f"{name} is not flat: {f.per_hour:+.3g} an hour ({f.least_per_hour:+.3g} to {f.most_per_hour:+.3g}), "
        f"{f.rise:+.3g} over the judged time, bound {f.bound:.3g}"
        for name, f in flatness.items()
        if not f.flat
    ]
    return Verdict(flatness, faults + _zombies(samples))


def _series(samples: Sequence[Sample], bounds: Bounds) -> dict[str, tuple[list[float], Bound]]:
    """Quantity -> its values, one a sample, and how much it may rise."""
    found: dict[str, tuple[list[float], Bound]] = {
        MEMORY: ([s.total("own_kb") / 1000 for s in samples], bounds.total),
        "resident, all, shared pages once (MB)": ([s.total("pss_kb") / 1000 for s in samples], bounds.resident),
        "descriptors": ([s.total("descriptors") for s in samples], bounds.descriptors),
        "threads": ([s.total("threads") for s in samples], bounds.threads),
        "shared memory (MB)": ([s.shm_bytes / 1e6 for s in samples], bounds.shm),
        "files of shared memory": ([float(s.shm_files) for s in samples], _NOT_ONE),
        "processes": ([float(sum(not m.zombie for m in s.members)) for s in samples], _NOT_ONE),
    }
    for kind in (SUPERVISOR, *KINDS):
        found[f"{kind}: memory of one (MB)"] = (_memory_of(kind, samples), bounds.memory)
    return found


def _memory_of(kind: str, samples: Sequence[Sample]) -> list[float]:
    """The mean over the processes of a kind in MB; while there is none, the last mean."""
    values: list[float] = []
    for sample in samples:
        own = [member.own_kb / 1000 for member in sample.kinds().get(kind, [])]
        values.append(sum(own) / len(own) if own else (values[-1] if values else 0.0))
    return values


def _zombies(samples: Sequence[Sample]) -> list[str]:
    """Processes that nobody waited for: a zombie that is collected in time shows in one sample at most, not in two."""
    stayed = {pid for before, after in pairwise(samples) for pid in before.zombies & after.zombies}
    return [f"processes stayed zombies: {', '.join(map(str, sorted(stayed)))}"] if stayed else []
