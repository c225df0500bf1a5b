"""Two models or more on the same frames, side by side: what they find, how right they are, what they take.

memory        of a process of its own for each, before the models are opened here: one that hangs is noticed there
agreement     each frame through all models, one after the other: who is found again, how well the joints agree
ms a run      of these runs, one at a time on one thread
runs a second with all cores, in turns
AP            where people's keypoints are known
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from pipeline.errors import BadItem, UserError
from stages.messages import Frame, People
from tools.models.accuracy import precision_of
from tools.models.agreement import Agreement
from tools.models.chain import Chain
from tools.models.frames import frames_of
from tools.models.memory import peak_bytes
from tools.models.throughput import runs_a_second
from tools.pose_accuracy.truth import Precision, Truth

_WARM_UP = 3


@dataclass
class Compared:
    """One model: its agreement with the first, its precision where labels exist, and what it takes.

    ``keypoints``: of a person; None before a frame was looked at. ``dropped``: frames that a graph would have dropped,
    for the model gave values that are no numbers, or did not take them; a model finds nobody in them.
    """

    model: Path
    peak_bytes: int | None = None
    agreement: Agreement = field(default_factory=Agreement)
    keypoints: int | None = None
    dropped: int = 0
    precision: Precision | None = None
    run_ms: list[float] = field(default_factory=list)
    runs_a_second: float | None = None

    @property
    def median_ms(self) -> float | None:
        """Of its runs; None where it had none besides the first ones, which do not count."""
        return median(self.run_ms) if self.run_ms else None


def compare(
    models: Sequence[Path], sources: Sequence[str], count: int, *, truth: Truth | None = None, **settings: Any
) -> list[Compared]:
    """At most ``count`` frames of ``sources``, or the pictures of ``truth`` where there are none, through all models.

    ``settings`` are of `infer`. Raises UserError where a model or a source cannot be read, and EnvironmentProblem where
    a model does not run in a process of its own.
    """
    compared = [Compared(model, peak_bytes(model, **settings)) for model in models]
    pictures = [] if truth is None else [str(path) for path in truth.paths.values()]
    with ExitStack() as stack:
        chains = [stack.enter_context(Chain(model, **settings)) for model in models]
        last = _agree(compared, chains, frames_of(sources or pictures, count))
        if last is not None:
            rates = runs_a_second(chains, [chain.prepared(last) for chain in chains])
            for one, rate in zip(compared, rates, strict=True):
                one.runs_a_second = rate
        for one, chain in zip(compared, chains, strict=True):
            one.precision = None if truth is None else precision_of(chain, truth)
    return compared


def _agree(compared: Sequence[Compared], chains: Sequence[Chain], frames: Iterable[Frame]) -> Frame | None:
    """The last frame that all models took, if any. Raises UserError where there was no frame."""
    number, last = -1, None
    for number, frame in enumerate(frames):
        answers = [
            _answer(one, chain, frame, timed=number >= _WARM_UP) for one, chain in zip(compared, chains, strict=True)
        ]
        if None not in answers:
            last = frame
        if (first := answers[0]) is None:
            continue  # nobody knows who should be found in it
        for one, found in zip(compared, answers, strict=True):
            one.agreement.add(first, _nobody_in(first) if found is None else found)
    if number < 0:
        raise UserError("there is no frame in any of the sources; expected videos or pictures")
    return last


def _answer(one: Compared, chain: Chain, frame: Frame, *, timed: bool) -> People | None:
    """Whom a model finds; None where it drops the frame."""
    prepared = chain.prepared(frame)
    began = time.perf_counter()
    try:
        inferred = chain.inferred(prepared)
        took_ms = (time.perf_counter() - began) * 1e3
        people = chain.people(inferred)
    except BadItem:
        one.dropped += 1
        return None
    one.keypoints = people.keypoints.shape[1]
    if timed:
        one.run_ms.append(took_ms)
    return people


def _nobody_in(people: People) -> People:
    """What a model says that finds none of these."""
    none = slice(0)
    return replace(
        people,
        boxes=people.boxes[none],
        scores=people.scores[none],
        keypoints=people.keypoints[none],
        classes=people.classes[none],
    )
