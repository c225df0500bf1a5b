"""The configurations to measure a model in: a provider, a batch, and a split of the cores. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from camgraph.stages.people.inference.engines.engine import ProviderName

MOST_WORKERS = 4
"""By default: each worker holds the whole model."""


@dataclass(frozen=True, slots=True, order=True)
class Split:
    """How the cores are used: so many processes, each with so many runs at once, each run with so many threads."""

    workers: int = 1
    threads: int = 1
    intra_op: int = 1

    def __str__(self) -> str:
        return f"{self.workers} x {self.threads} x {self.intra_op}"


@dataclass(frozen=True, slots=True)
class Configuration:
    """One way of running the model; ``batch``: pictures of one run."""

    provider: ProviderName
    batch: int
    split: Split

    def __str__(self) -> str:
        return f"{self.provider}, batch {self.batch}, {self.split}"


def grid(providers: Sequence[ProviderName], batches: Sequence[int], splits: Sequence[Split]) -> Iterator[Configuration]:
    """Each provider with each batch and each split, in this order, none twice."""
    for provider, batch, split in product(dict.fromkeys(providers), dict.fromkeys(batches), dict.fromkeys(splits)):
        yield Configuration(provider, batch, split)


def usual_splits(cores: int) -> list[Split]:
    """One thread alone, and the ways to use all cores: runs at once, threads of one run, processes."""
    workers = min(cores, MOST_WORKERS)
    ways = [Split(), Split(threads=cores), Split(intra_op=cores), Split(workers=workers, threads=cores // workers)]
    return list(dict.fromkeys(ways))


def declared_splits(workers: Sequence[int], threads: Sequence[int], intra_op: Sequence[int]) -> list[Split]:
    """All combinations of the requested values; 1 for each that was not requested."""
    return [Split(*each) for each in product(workers or [1], threads or [1], intra_op or [1])]


def fitting_batches(batches: Sequence[int], fixed: int | None) -> list[int]:
    """These; or ``fixed`` alone if the model takes only so many pictures in a run."""
    return list(batches) if fixed is None else [fixed]


def cost_per_1000(frames_per_s: float, price_per_hour: float) -> float:
    """The cost of 1,000 frames on a machine of this price that does nothing else; in the price's currency."""
    return price_per_hour / 3600 / frames_per_s * 1000
