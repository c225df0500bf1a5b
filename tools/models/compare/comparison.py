"""Compares two models or more on the same frames: their findings, their precision, their cost.

memory        of a process of its own for each, before the models are opened here: one that hangs is noticed there
agreement     each frame through all models, one after the other: who is found again, and how well scores, classes and
              joints agree
ms a run      of these runs, one at a time on one thread
runs a second with all cores, in turns
AP            where people's keypoints are known
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from camgraph.pipeline.errors import BadItem, UserError
from camgraph.pipeline.system.cores import usable_cores
from camgraph.stages.messages import Frame, Labels, People, Tensor
from camgraph.tools.models.chain import Activations, Chain, Classes, Meaning
from camgraph.tools.models.compare.accuracy import precision_of
from camgraph.tools.models.compare.agreement import Agreement, counterparts
from camgraph.tools.models.compare.memory import peak_bytes
from camgraph.tools.models.declaration import DeclaredModel
from camgraph.tools.models.frames import frames_of
from camgraph.tools.models.pose_truth import Precision, Truth

_WARM_UP = 3
_ROUNDS = 5
_ROUND_S = 0.6


class Labelled(NamedTuple):
    """How much a precision rests on: pictures, and people in them with known keypoints."""

    pictures: int
    people: int


NOTHING_LABELLED = Labelled(0, 0)


@dataclass
class Compared:
    """One model: its agreement with the first, its precision if there are labels, and its cost.

    ``classes``: their names; ``classifies``: it gives a class for a frame, and finds nobody in it; ``keypoints``: of a
    person; None before a frame was looked at. ``dropped``: frames that a graph would have dropped, because the model
    gave values that are no numbers, or did not take them; a model finds nobody in them. ``meanings``: the apparent
    meaning of a classifier's numbers, frame by frame.
    """

    model: Path
    peak_bytes: int | None = None
    agreement: Agreement = field(default_factory=Agreement)
    keypoints: int | None = None
    dropped: int = 0
    precision: Precision | None = None
    run_ms: list[float] = field(default_factory=list)
    runs_a_second: float | None = None
    classes: tuple[str, ...] = ()
    labelled: Labelled = NOTHING_LABELLED
    classifies: bool = False
    meanings: set[Meaning] = field(default_factory=set)

    @property
    def is_unclear(self) -> bool:
        """Whether it is not known how a classifier's numbers are meant."""
        return "unclear" in self.meanings and "logits" not in self.meanings

    @property
    def classes_seen(self) -> list[str]:
        """The names of the first model's people and things that both found; meant for the first itself."""
        return [self.classes[number] for number in sorted(self.agreement.kinds) if 0 <= number < len(self.classes)]

    @property
    def median_ms(self) -> float | None:
        """Of its runs; None if it had none besides the first ones, which do not count."""
        return median(self.run_ms) if self.run_ms else None


def compare(
    models: Sequence[DeclaredModel],
    sources: Sequence[str],
    count: int,
    *,
    truth: Truth | None = None,
    classes: Classes = None,
    activation: Activations = "auto",
    **settings: Any,
) -> list[Compared]:
    """At most ``count`` frames of ``sources``, or the pictures of ``truth`` if there are none, through all models.

    ``classes`` are looked for, ``activation`` is of `classify`, ``settings`` are of `infer`: each for all models.
    Raises UserError if a model or a source cannot be read, and EnvironmentProblem if a model does not run in a
    process of its own.
    """
    classify = [model.reading().format == "classes" for model in models]
    _check_kinds(models, classify, labelled=truth is not None, chosen=classes not in (None, "all"))
    given = [{**model.declaration.infer, **settings} for model in models]
    compared = [Compared(model.path, peak_bytes(model.path, **its)) for model, its in zip(models, given, strict=True)]
    pictures = [] if truth is None else [str(path) for path in truth.paths.values()]
    with ExitStack() as stack:
        chains = [
            stack.enter_context(Chain(model.path, classes=classes, activation=activation, **its))
            for model, its in zip(models, given, strict=True)
        ]
        for one, chain, classifies in zip(compared, chains, classify, strict=True):
            one.classes, one.classifies = chain.reading.classes, classifies
        last = _agree(compared, chains, frames_of(sources or pictures, count))
        if last is not None:
            rates = runs_a_second(chains, [chain.prepared(last) for chain in chains])
            for one, rate in zip(compared, rates, strict=True):
                one.runs_a_second = rate
        for one, chain in zip(compared, chains, strict=True):
            if truth is not None:
                one.precision, one.labelled = precision_of(chain, truth), Labelled(len(truth.paths), truth.people)
    return compared


def _check_kinds(models: Sequence[DeclaredModel], classify: Sequence[bool], *, labelled: bool, chosen: bool) -> None:
    """Raises UserError if there is nothing to compare. ``chosen``: the classes to look for."""
    if not any(classify):
        return
    classifier = models[classify.index(True)].path
    if not all(classify):
        raise UserError(
            f"{classifier} is a classifier, and finds nobody in a frame, as {models[classify.index(False)].path} does; "
            "expected models of one kind",
            error_id="model-does-not-fit",
        )
    if labelled:
        raise UserError(
            f"{classifier} is a classifier, and labels are of people's keypoints; expected --frames without them",
            error_id="model-does-not-fit",
        )
    if chosen:
        raise UserError(
            f"{classifier} is a classifier, and is asked for all of its classes; expected no --classes",
            error_id="model-does-not-fit",
        )


def _agree(compared: Sequence[Compared], chains: Sequence[Chain], frames: Iterable[Frame]) -> Frame | None:
    """The last frame that all models took, if any. Raises UserError if there was no frame."""
    number, last = -1, None
    kinds = [counterparts(compared[0].classes, one.classes) for one in compared]
    for number, frame in enumerate(frames):
        answers = [
            _answer(one, chain, frame, timed=number >= _WARM_UP) for one, chain in zip(compared, chains, strict=True)
        ]
        if None not in answers:
            last = frame
        if (first := answers[0]) is None:
            continue  # nobody knows who should be found in it
        for one, found, kind in zip(compared, answers, kinds, strict=True):
            _add(one.agreement, first, kinds[0], found, kind)
    if number < 0:
        raise UserError(
            "there is no frame in any of the sources; expected videos or pictures", error_id="source-missing"
        )
    return last


def _add(
    agreement: Agreement,
    first: People | Labels,
    first_kinds: NDArray[np.int64],
    found: People | Labels | None,
    kinds: NDArray[np.int64],
) -> None:
    """The first model's findings in a frame, and the other one's."""
    if isinstance(first, Labels):
        agreement.add_labels(first.scores[0], found.scores[0] if isinstance(found, Labels) else None, kinds)
    else:
        other = _renamed(found, kinds) if isinstance(found, People) else _nobody_in(first)
        agreement.add(_renamed(first, first_kinds), other)


def _answer(one: Compared, chain: Chain, frame: Frame, *, timed: bool) -> People | Labels | None:
    """The people that a model finds, or its class for the frame; None if it drops it."""
    prepared = chain.prepared(frame)
    began = time.perf_counter()
    try:
        inferred = chain.inferred(prepared)
        took_ms = (time.perf_counter() - began) * 1e3
        found = chain.found(inferred)
    except BadItem:
        one.dropped += 1
        return None
    if isinstance(found, Labels):
        one.keypoints = 0
        one.meanings.add(chain.meaning(inferred))
    else:
        one.keypoints = found.keypoints.shape[1]
    if timed:
        one.run_ms.append(took_ms)
    return found


def _renamed(people: People, kinds: NDArray[np.int64]) -> People:
    """With the first model's numbers of their classes; a number that the model does not name is nothing's."""
    named = people.classes < len(kinds)
    return replace(people, classes=np.where(named, kinds[np.where(named, people.classes, 0)], -1))


def _nobody_in(people: People) -> People:
    """The result of a model that finds none of these."""
    none = slice(0)
    return replace(
        people,
        boxes=people.boxes[none],
        scores=people.scores[none],
        keypoints=people.keypoints[none],
        classes=people.classes[none],
    )


def runs_a_second(chains: Sequence[Chain], prepared: Sequence[Tensor]) -> list[float]:
    """How many runs a second the opened chains make with all cores, each with a picture of its own in ``prepared``.

    The median over rounds, in which the chains take turns, so that all meet the same machine.
    """
    threads = usable_cores()
    found: list[list[float]] = [[] for _ in chains]
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(_ROUNDS):
            for rates, chain, picture in zip(found, chains, prepared, strict=True):
                rates.append(_round(pool, threads, chain, picture))
    return [median(rates) for rates in found]


def _round(pool: ThreadPoolExecutor, threads: int, chain: Chain, picture: Tensor) -> float:
    began = time.perf_counter()
    until = began + _ROUND_S

    def run() -> int:
        runs = 0
        while time.perf_counter() < until:
            chain.inferred(picture)
            runs += 1
        return runs

    runs = sum(future.result() for future in [pool.submit(run) for _ in range(threads)])
    return runs / (time.perf_counter() - began)
