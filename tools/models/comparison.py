"""Two models or more on the same frames, side by side: what they find, how right they are, what they take.

agreement     each frame through all models, one after the other: who is found again, how well the joints agree
ms a run      of these runs, one at a time on one thread
runs a second with all cores, in turns
memory        of a process of its own for each
AP            where people's keypoints are known
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from pipeline.errors import UserError
from stages.messages import Frame, People
from tools.models.accuracy import precision_of
from tools.models.agreement import Agreement
from tools.models.chain import Chain, frames_of
from tools.models.memory import peak_bytes
from tools.models.throughput import runs_a_second
from tools.pose_accuracy.truth import Precision, Truth

_WARM_UP = 3


@dataclass
class Compared:
    """One model: its agreement with the first, its precision where labels exist, and what it takes."""

    model: Path
    agreement: Agreement = field(default_factory=Agreement)
    precision: Precision | None = None
    run_ms: list[float] = field(default_factory=list)
    runs_a_second: float = 0.0
    peak_bytes: int = 0

    @property
    def median_ms(self) -> float:
        """Of its runs; 0 where it had none."""
        return median(self.run_ms) if self.run_ms else 0.0


@dataclass(frozen=True)
class Limits:
    """What a model may lose. ``least``: of people (F1) and joints (OKS); ``most_lost``: of AP, absolute."""

    least: float = 0.95
    most_lost: float = 0.02


def compare(
    models: Sequence[Path], sources: Sequence[str], count: int, *, truth: Truth | None = None, **settings: Any
) -> list[Compared]:
    """At most ``count`` frames of ``sources``, or the pictures of ``truth`` where there are none, through all models.

    ``settings`` are of `infer`. Raises UserError where a model or a source cannot be read.
    """
    compared = [Compared(model) for model in models]
    pictures = [] if truth is None else [str(path) for path in truth.paths.values()]
    with ExitStack() as stack:
        chains = [stack.enter_context(Chain(model, **settings)) for model in models]
        last = _agree(compared, chains, frames_of(sources or pictures, count))
        rates = runs_a_second(chains, [chain.prepared(last) for chain in chains])
        for one, chain, rate in zip(compared, chains, rates, strict=True):
            one.runs_a_second = rate
            one.peak_bytes = peak_bytes(one.model, **settings)
            one.precision = None if truth is None else precision_of(chain, truth)
    return compared


def _agree(compared: Sequence[Compared], chains: Sequence[Chain], frames: Iterable[Frame]) -> Frame:
    """The last frame. Raises UserError where there was none."""
    last: Frame | None = None
    for number, frame in enumerate(frames):
        first: People | None = None
        for one, chain in zip(compared, chains, strict=True):
            prepared = chain.prepared(frame)
            began = time.perf_counter()
            inferred = chain.inferred(prepared)
            took_ms = (time.perf_counter() - began) * 1e3
            people = chain.people(inferred)
            first = people if first is None else first
            one.agreement.add(first, people)
            if number >= _WARM_UP:
                one.run_ms.append(took_ms)
        last = frame
    if last is None:
        raise UserError("there is no frame in any of the sources; expected videos or pictures")
    return last


def is_blessed(one: Compared, first: Compared, limits: Limits) -> bool:
    """Whether it lost no more than is allowed of what the first model finds and, where that is known, is right in."""
    found = one.agreement
    agrees = found.f1 >= limits.least and found.mean_oks >= limits.least
    return agrees and lost_ap(one, first) <= limits.most_lost


def lost_ap(one: Compared, first: Compared) -> float:
    """How much less average precision it has than the first; 0 where that is not known, or it has more."""
    if one.precision is None or first.precision is None:
        return 0.0
    return max(first.precision.ap - one.precision.ap, 0.0)
