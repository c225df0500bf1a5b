"""How busy the machine was, and whether it was quiet enough to judge the effect of a fault on other cameras. Pure.

A camera that loses frames because other processes take the cores proves nothing about camgraph, neither good nor bad.
So a rate is judged only if other processes took little; else the report says that it was not judged, and why.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from camgraph.tools.measuring.processor_time import CpuTime, other_cores, own_cores

MOST_OTHER = 0.15
"""The most that other processes may take, as a part of the cores, before a fault and during it."""
MOST_BUSY = 0.7
"""The most that all processes may take, as a part of the cores, before a fault: up to this load other cameras keep
their rate (guarantee G3)."""


@dataclass(frozen=True, slots=True)
class Load:
    """Cores that were taken over some time: by the run with its simulator and its observers, and by the rest."""

    own: float
    other: float
    cores: int

    @property
    def busy(self) -> float:
        """The part of the machine that worked, 0 to 1."""
        return (self.own + self.other) / self.cores


def load_of(before: CpuTime, after: CpuTime) -> Load:
    """Between two moments."""
    return Load(own_cores(before, after), other_cores(before, after), len(os.sched_getaffinity(0)))


def why_not_judged(before: Load, during: Load, most_other: float = MOST_OTHER) -> str:
    """Why the rates during a fault cannot be compared with those before it; "" if they can."""
    other = max(before.other, during.other)
    if other > most_other * before.cores:
        return f"other processes took {other:.2f} of {before.cores} cores"
    if before.busy > max(MOST_BUSY, most_other):
        return f"the machine was {before.busy:.0%} busy before any fault (the promise holds up to {MOST_BUSY:.0%})"
    return ""
