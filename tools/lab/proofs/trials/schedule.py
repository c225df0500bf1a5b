"""When a soaked run is harmed, and how: at random, but always the same for the same seed. Pure."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from camgraph.tools.lab.proofs.trials.subject import KINDS
from camgraph.tools.scenes.simulator.faults import Fault

T = TypeVar("T")

_CUT = Fault(name="cut", value="rst")
_SHORT_S, _LONG_S = 2.0, 8.0

FAULTS: tuple[tuple[Fault, ...], ...] = (
    (Fault(name="cut", value="fin"),),
    (_CUT,),
    (Fault(name="refuse"), _CUT),
    (Fault(name="silence"), _CUT),
    (Fault(name="answer", value="401"), _CUT),
    (Fault(name="answer", value="404"), _CUT),
    (Fault(name="answer", value="503"), _CUT),
    (Fault(name="stall"),),
    (Fault(name="half_open"),),
    (Fault(name="reboot", value="2"),),
    (Fault(name="drop", value="5"),),
    (Fault(name="drop", value="20"),),
    (Fault(name="reorder", value="5"),),
    (Fault(name="corrupt", value="5"),),
    (Fault(name="resize", value="128x96"),),
    (Fault(name="codec", value="h265"),),
    (Fault(name="jump", value="3600"),),
    (Fault(name="jump", value="-3600"),),
    (Fault(name="timestamps", value="duplicate"),),
    (Fault(name="timestamps", value="constant"),),
    (Fault(name="clock", value="86400"),),
    (Fault(name="fps", value="25"), _CUT),
)
"""Faults that show only at the next connection come with a cut. Pictures are resized to smaller ones, because slots
that have grown stay large."""


@dataclass(frozen=True, slots=True)
class Harm:
    """Faults of one camera that begin together, and are healed `for_s` later."""

    at_s: float
    camera: str
    faults: tuple[Fault, ...]
    for_s: float

    @property
    def name(self) -> str:
        """The first of the faults, as a report has it."""
        return f"{self.faults[0].name}:{self.faults[0].value}".removesuffix(":")


@dataclass(frozen=True, slots=True)
class Kill:
    """The death of a process of this kind; `chance` in [0, 1) says which where there are several."""

    at_s: float
    kind: str
    chance: float

    def victim(self, processes: Sequence[str]) -> str | None:
        """Which of these processes it is; None if none is of the kind."""
        fitting = sorted(process for process in processes if process.partition(".")[0] == self.kind)
        return fitting[int(self.chance * len(fitting))] if fitting else None


def harms(cameras: Sequence[str], seed: int, *, every_s: float, until_s: float) -> Iterator[Harm]:
    """One each `every_s`, on a camera that is whole then; every fault once before any comes again."""
    source = random.Random(seed)  # noqa: S311 - nothing that has to be hard to guess
    healed_at = dict.fromkeys(cameras, 0.0)
    at_s, faults = every_s, _in_rounds(FAULTS, source)
    while at_s < until_s:
        whole = [camera for camera in cameras if healed_at[camera] < at_s]
        if whole:
            harm = Harm(at_s, source.choice(whole), next(faults), round(source.uniform(_SHORT_S, _LONG_S), 3))
            # Time to come back before the next one.
            healed_at[harm.camera] = at_s + 2 * harm.for_s
            yield harm
        at_s += every_s


def kills(seed: int, *, every_s: float, until_s: float) -> Iterator[Kill]:
    """One each `every_s`; every kind once before any comes again."""
    source = random.Random(~seed)  # noqa: S311 - as above
    kinds = _in_rounds(KINDS, source)
    at_s = every_s
    while at_s < until_s:
        yield Kill(at_s, next(kinds), source.random())
        at_s += every_s


def _in_rounds(values: Sequence[T], source: random.Random) -> Iterator[T]:
    while True:
        yield from source.sample(list(values), len(values))
