"""`providers: auto`: the best provider that really works here, for this model.

tensorrt, cuda, directml, coreml, openvino     each tried in a process of its own, with one picture
                 │ the first whose answer has the shape of the CPU's, and openvino only where it is faster than that
                 v
           that one, and the CPU for nodes that it does not know; the CPU alone where there is none
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from pipeline.errors import UserError
from pipeline.messages import Array
from stages.inference import onnxruntime_engine, openvino_engine
from stages.inference.engine import ProviderName, RunFailed
from stages.inference.kept import keep, recall
from stages.inference.opening import Asked, open_model
from stages.inference.rates import RIVALS, look
from stages.inference.trial import Answer, Inputs, Trial, answer_of, try_in_process
from stages.vision.foreign_text import shown

BEST_FIRST: tuple[ProviderName, ...] = ("tensorrt", "cuda", "directml", "coreml", "openvino")
"""The CPU comes behind them all."""

Try = Callable[[Path, Asked, Inputs], Trial]


class Choice(NamedTuple):
    """Providers, the best first, and those that were tried and do not work: provider -> why."""

    providers: tuple[ProviderName, ...]
    passed_over: Mapping[str, str]


def candidates(offered: Collection[ProviderName], *, has_openvino: bool) -> tuple[ProviderName, ...]:
    """What is worth a try: ONNX Runtime was built with it, or its own package is there."""
    return tuple(name for name in BEST_FIRST if name in offered or (name == "openvino" and has_openvino))


def choose(path: Path, asked: Asked, inputs: Mapping[str, Array], attempt: Try = try_in_process) -> Choice:
    """The providers for this model, by trying. Raises UserError where not even the CPU runs it.

    Rates are those of ``asked.at_once`` runs at the same time.
    """
    names = candidates(onnxruntime_engine.offered(), has_openvino=openvino_engine.is_installed())
    if not names:
        return Choice(("cpu",), {})
    on_cpu = open_model(path, replace(asked, providers=("cpu",))).engine
    try:
        expected = answer_of(on_cpu.run(inputs))
        to_beat = look(on_cpu, inputs, asked.at_once) if set(names).intersection(RIVALS) else 0.0
    except RunFailed as error:
        raise UserError(f"{path}: it does not run on a black picture: {error}") from None
    shapes = {name: (array.dtype.name, array.shape) for name, array in inputs.items()}
    passed_over: dict[str, str] = {}
    for name in names:
        trial = attempt(path, replace(asked, providers=(name, "cpu")), shapes)
        why = why_not(trial, expected)
        if not why and name in RIVALS and trial.rate <= to_beat:
            why = f"slower than ONNX Runtime's own on this CPU: {trial.rate:.1f} and {to_beat:.1f} runs/s"
        if not why:
            return Choice((name, "cpu"), passed_over)
        passed_over[name] = why
    return Choice(("cpu",), passed_over)


def choose_once(file: Path, path: Path, asked: Asked, inputs: Mapping[str, Array]) -> Choice:
    """As `choose`, kept in ``file``: a process that is started again in the same run takes what the first has taken."""
    key = {"model": str(path), "asked": repr(asked), "inputs": repr(answer_of(inputs))}
    if found := recall(file, key):
        return Choice(tuple(found["providers"]), found["passed_over"])
    choice = choose(path, asked, inputs)
    keep(file, key, choice._asdict())
    return choice


def why_not(trial: Trial, expected: Answer) -> str:
    """Why a provider is not to be taken; "" where it works as the CPU does."""
    if trial.failure:
        return trial.failure
    if not trial.share:
        return "it runs none of the model's nodes"
    for name, (dtype, shape) in expected.items():
        got = trial.answer.get(name)
        if got != (dtype, shape):
            said = f"{got[0]} {list(got[1])}" if got else "nothing"
            return f"output `{shown(name)}` is {said}, and {dtype} {list(shape)} on the CPU"
    return ""
