"""How many threads and pictures a run on the CPU should have: what is worth measuring, and what follows from it. Pure.

    threads of the stage: 2, cores: 8      threads of a run  1, 2, 4
                                           pictures of a run 1, 2, 4, 8

The bits of the outputs depend on neither, on ONNX Runtime's CPU provider; only the time does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

_MARGIN = 1.05
"""What is not faster by more than that is noise."""


class Run(NamedTuple):
    """Of one run of the model: threads, and pictures."""

    threads: int
    rows: int

    def __str__(self) -> str:
        return f"{self.threads} x {self.rows}"


class Tuned(NamedTuple):
    """What is to be used. ``rows``: at most so many pictures in a run, None where nothing speaks against many."""

    threads: int = 1
    rows: int | None = None


def rows_worth_trying(sizes: Sequence[int], most: int) -> tuple[int, ...]:
    """Pictures of a run; where only some ``sizes`` are allowed, that is no question."""
    return (sizes[-1],) if sizes else tuple(rows for rows in (1, 2, 4, 8) if rows <= most)


def candidates(cores: int, at_once: int, rows: Sequence[int]) -> tuple[Run, ...]:
    """What is worth measuring, the likeliest first.

    ``at_once``: runs at the same time, one for each thread of the stage; ``rows``: pictures of a run, ascending.
    """
    share = max(1, cores // at_once)
    threads = sorted({1, min(2, share), max(1, share // 2), share})
    runs = [Run(each, count) for each in threads for count in rows]
    first = [Run(1, rows[0]), Run(1, rows[-1]), Run(share, rows[0]), Run(share, rows[-1])]
    return tuple(dict.fromkeys([*first, *runs]))


def best_of(rates: Mapping[Run, float]) -> Tuned:
    """The fastest by pictures per second; where it is hardly faster, one thread and as many pictures as there are."""
    usual = max((run for run in rates if run.threads == 1), default=None)
    if usual is None:
        return Tuned()
    best = max(rates, key=lambda run: rates[run])
    if rates[best] < _MARGIN * rates[usual]:
        return Tuned()
    compared = {run.rows for run in rates}
    return Tuned(best.threads, best.rows if best.rows < max(compared) else None)


def told(rates: Mapping[Run, float]) -> str:
    """What was tried, as threads x pictures, with its rate over that of the first: for people."""
    first = next(iter(rates.values()), 1.0)
    return ", ".join(f"{run} {rate / first:.2f}" for run, rate in rates.items())
