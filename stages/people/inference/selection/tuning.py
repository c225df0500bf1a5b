"""How many runs at once, threads and pictures the CPU should have: the combinations to measure, and the choice. Pure.

    threads of the stage: 2, cores: 8      runs at once       2               1
                                           threads of a run   1, 2, 4         8
                                           pictures of a run  1, 2, 4, 8      1, 8

The bits of the outputs depend on none of it, on ONNX Runtime's CPU provider; only the time does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

_MARGIN = 1.05
"""A smaller gain than that is noise."""


class Run(NamedTuple):
    """Of one run of the model: threads, and pictures; and how many there are at once."""

    threads: int
    rows: int
    at_once: int = 1

    def __str__(self) -> str:
        return f"{self.at_once} x {self.threads} x {self.rows}"


class Tuned(NamedTuple):
    """The chosen combination. ``rows``: the most pictures in a run, None if any number is good;
    ``at_once``: fewer runs than the stage has threads, None if each of them may run the model.
    """

    threads: int = 1
    rows: int | None = None
    at_once: int | None = None


def rows_worth_trying(sizes: Sequence[int], most: int) -> tuple[int, ...]:
    """Pictures of a run; not tried if only some ``sizes`` are allowed."""
    return (sizes[-1],) if sizes else tuple(rows for rows in (1, 2, 4, 8) if rows <= most)


def candidates(cores: int, at_once: int, rows: Sequence[int]) -> tuple[Run, ...]:
    """The combinations to measure, the likeliest first.

    ``at_once``: at most so many runs, one for each thread of the stage; ``rows``: pictures of a run, ascending.
    """
    ends = (rows[0], rows[-1])
    share = max(1, cores // at_once)
    first = [Run(each, count, at_once) for each in (1, share) for count in ends]
    fewer = [
        Run(max(1, cores // runs), count, runs)
        for runs in sorted({1, max(1, at_once // 2)} - {at_once})
        for count in ends
    ]
    threads = sorted({1, min(2, share), max(1, share // 2), share})
    others = [Run(each, count, at_once) for each in threads for count in rows]
    return tuple(dict.fromkeys([*first, *fewer, *others]))


def best_of(rates: Mapping[Run, float]) -> Tuned:
    """The fastest by pictures per second.

    If it is hardly faster: all runs at once, one thread each, and as many pictures as there are.
    """
    most = max((run.at_once for run in rates), default=1)
    usual = max((run for run in rates if run.threads == 1 and run.at_once == most), default=None)
    if usual is None:
        return Tuned()
    best = max(rates, key=lambda run: rates[run])
    if rates[best] < _MARGIN * rates[usual]:
        return Tuned()
    compared = {run.rows for run in rates}
    rows = best.rows if best.rows < max(compared) else None
    return Tuned(best.threads, rows, best.at_once if best.at_once < most else None)


def in_words(rates: Mapping[Run, float]) -> str:
    """The tried combinations, as runs at once x threads x pictures, with their rates over the first one's: for
    people.
    """
    first = next(iter(rates.values()), 1.0)
    return ", ".join(f"{run} {rate / first:.2f}" for run, rate in rates.items())
