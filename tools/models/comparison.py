"""Two models or more on the same frames, side by side: what they find, how long they take, how large they are."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from stages.messages import People
from tools.models.agreement import Agreement
from tools.models.chain import Chain, frames_of

_WARM_UP = 3


@dataclass
class Compared:
    """One model: its agreement with the first, and how long its runs took, in ms."""

    model: Path
    agreement: Agreement = field(default_factory=Agreement)
    run_ms: list[float] = field(default_factory=list)

    @property
    def median_ms(self) -> float:
        """Of its runs; 0 where it had none."""
        return median(self.run_ms) if self.run_ms else 0.0


def compare(models: Sequence[Path], sources: Sequence[str], count: int, **settings: Any) -> list[Compared]:
    """Each of at most ``count`` frames through all models, one after the other, so that all meet the same machine.

    ``settings`` are of `infer`. Raises UserError where a model or a source cannot be read.
    """
    compared = [Compared(model) for model in models]
    with ExitStack() as stack:
        chains = [stack.enter_context(Chain(model, **settings)) for model in models]
        for number, frame in enumerate(frames_of(sources, count)):
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
    return compared


def is_blessed(one: Compared, least: float) -> bool:
    """Whether it finds what the first model finds, people (F1) and joints (OKS), to at least this share."""
    return one.agreement.f1 >= least and one.agreement.mean_oks >= least


def table(compared: Sequence[Compared], least: float) -> Iterator[str]:
    """The comparison as Markdown: ratios are to the first model."""
    first = compared[0]
    yield "| model | MB | ms a run | speed | people | found again | of its own | OKS | verdict |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for one in compared:
        found = one.agreement
        speed = first.median_ms / one.median_ms if one.median_ms else 0.0
        verdict = "the first" if one is first else "good" if is_blessed(one, least) else f"**below {least:g}**"
        yield (
            f"| {one.model.name} | {one.model.stat().st_size / 1e6:.1f} | {one.median_ms:.1f} | {speed:.2f} x | "
            f"{found.other} | {found.recall:.3f} | {found.precision:.3f} | {found.mean_oks:.3f} | {verdict} |"
        )
    yield ""
    yield (
        f"{first.agreement.frames} frames. *found again*: of the first model's people, those that it finds; *of its "
        "own*: of its people, those that the first has; *OKS*: how well the joints of people in both agree."
    )
