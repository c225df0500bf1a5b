"""`providers: auto`: the best provider that really works here, for this model.

tensorrt, cuda, directml, coreml, openvino     each tried in a process of its own, on a picture of patches
                 │ the first whose outputs have the CPU's shapes and are near the CPU's (`closeness`); openvino only
                 │ if it is faster than that, too
                 v
           that one, and the CPU for nodes that it does not know; the CPU alone if there is none
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.messages import Array
from camgraph.stages.people.inference.engines import onnxruntime_engine, openvino_engine
from camgraph.stages.people.inference.engines.engine import Engine, ProviderName, RunFailed
from camgraph.stages.people.inference.selection.closeness import (
    MOST_ANYWHERE,
    MOST_TYPICAL,
    Closeness,
    chooses,
    closeness,
    worse_numbers,
)
from camgraph.stages.people.inference.selection.kept import keep, recall
from camgraph.stages.people.inference.selection.opening import Asked, open_model
from camgraph.stages.people.inference.selection.rates import RIVALS, measured_rate
from camgraph.stages.people.inference.selection.trial import Arrays, Trial, try_in_process
from camgraph.stages.vision.foreign_text import shown
from camgraph.stages.vision.recognition.signature import Side

BEST_FIRST: tuple[ProviderName, ...] = ("tensorrt", "cuda", "directml", "coreml", "openvino")
"""The CPU comes behind them all."""

Try = Callable[[Path, Asked, Arrays], Trial]


class Choice(NamedTuple):
    """Providers, the best first, and those that were tried and are not taken: provider -> why.

    ``found``: the outcome of the first provider; the CPU's is not asked for.
    """

    providers: tuple[ProviderName, ...]
    passed_over: Mapping[str, str]
    found: str = ""


@dataclass(frozen=True)
class Example:
    """The measure of a provider: the CPU's outputs, its speed, and the model's statements about its outputs.

    ``chosen``: it picks its values, so that after rounding there may be others, or another number of them.
    """

    outputs: Arrays
    rate: float = 0.0
    chosen: bool = False
    declared: Mapping[str, tuple[Side, ...]] | None = None

    def fits(self, name: str, got: Array) -> bool:
        """Whether an output has the type and shape that it must have."""
        expected = self.outputs[name]
        if got.dtype != expected.dtype or not self.chosen or self.declared is None:
            return (got.dtype, got.shape) == (expected.dtype, expected.shape)
        sides = zip(got.shape, expected.shape, self.declared[name], strict=False)
        return got.ndim == expected.ndim and all(one == two or not isinstance(side, int) for one, two, side in sides)


def candidates(offered: Collection[ProviderName], *, has_openvino: bool) -> tuple[ProviderName, ...]:
    """Candidates to try: ONNX Runtime was built with it, or its own package is there."""
    return tuple(name for name in BEST_FIRST if name in offered or (name == "openvino" and has_openvino))


def candidates_here() -> tuple[ProviderName, ...]:
    """Providers to try on this machine."""
    return candidates(onnxruntime_engine.offered(), has_openvino=openvino_engine.is_installed())


def choose(path: Path, asked: Asked, inputs: Arrays, attempt: Try = try_in_process) -> Choice:
    """The providers for this model, by trying. Raises UserError if not even the CPU runs it.

    Rates are those of ``asked.at_once`` runs at the same time.
    """
    names = candidates_here()
    if not names:
        return Choice(("cpu",), {})
    example = example_of(path, asked, inputs, with_rate=not set(names).isdisjoint(RIVALS))
    passed_over: dict[str, str] = {}
    for name in names:
        trial = attempt(path, replace(asked, providers=(name, "cpu")), inputs)
        why = why_not(trial, example) or (_too_slow(trial, example) if name in RIVALS else "")
        if not why:
            return Choice((name, "cpu"), passed_over, _found(trial, example))
        passed_over[name] = why
    return Choice(("cpu",), passed_over)


def example_of(path: Path, asked: Asked, inputs: Arrays, *, with_rate: bool = False) -> Example:
    """The CPU's outputs for these inputs. Raises UserError if the CPU does not run the model."""
    engine = open_model(path, replace(asked, providers=("cpu",))).engine
    try:
        outputs = engine.run(inputs)
        rate = measured_rate(engine, inputs, asked.at_once) if with_rate else 0.0
    except RunFailed as error:
        raise UserError(f"{path}: it does not run on a picture: {error}", error_id="model-does-not-run") from None
    declared = {port.name: port.shape for port in engine.signature.outputs}
    return Example(outputs, rate, chooses(_operators(engine)), declared)


def _operators(engine: Engine) -> Iterator[str]:
    for counted in engine.placement.nodes.values():
        yield from counted


def _too_slow(trial: Trial, example: Example) -> str:
    if trial.rate > example.rate:
        return ""
    return f"slower than ONNX Runtime's own on this CPU: {trial.rate:.1f} and {example.rate:.1f} runs/s"


def _found(trial: Trial, example: Example) -> str:
    apart = [closeness(trial.outputs[name], array, chosen=example.chosen) for name, array in example.outputs.items()]
    worst = max((one.worst for one in apart), default=0.0)
    rates = f"; {trial.rate:.1f} runs/s, and {example.rate:.1f} on ONNX Runtime's CPU" if trial.rate else ""
    return (
        f"it runs {trial.share:.0%} of the nodes; outputs differ from the CPU's by {worst:.2g} of their spread{rates}"
    )


def choose_once(file: Path, path: Path, sha256: str, asked: Asked, inputs: Arrays) -> Choice:
    """As `choose`, kept in ``file``: a restarted process of the same run takes the providers of the first.

    ``sha256``: the model's. Another one under the same name is tried anew: a provider need not run it.
    """
    given = {name: (array.dtype.name, array.shape) for name, array in inputs.items()}
    key = {"model": sha256, "asked": repr(asked), "inputs": repr(given)}
    if found := recall(file, key):
        return Choice(tuple(found["providers"]), found["passed_over"], found.get("found", ""))
    choice = choose(path, asked, inputs)
    keep(file, key, choice._asdict())
    return choice


def why_not(trial: Trial, example: Example) -> str:
    """Why a provider is not to be taken; "" if it works as the CPU does."""
    if trial.failure:
        return trial.failure
    if not trial.share:
        return "it runs none of the model's nodes"
    return next((why for name in example.outputs if (why := _wrong(name, trial.outputs.get(name), example))), "")


def _wrong(name: str, got: Array | None, example: Example) -> str:
    """The fault of one output; "" if there is none."""
    expected = example.outputs[name]
    if got is None or not example.fits(name, got):
        message = "nothing" if got is None else f"{got.dtype.name} {list(got.shape)}"
        return f"output `{shown(name)}` is {message}, and {expected.dtype.name} {list(expected.shape)} on the CPU"
    if worse_numbers(got, expected):
        return f"output `{shown(name)}` holds values that are no numbers, and on the CPU they are"
    found = closeness(got, expected, chosen=example.chosen)
    return "" if found.is_near else f"output `{shown(name)}` is another one than on the CPU: {_in_words(found)}"


def _in_words(found: Closeness) -> str:
    return (
        f"its channels differ by {found.typical:.2g} of their spread, the worst by {found.worst:.2g}; expected at most "
        f"{MOST_TYPICAL:g} and {MOST_ANYWHERE:g}"
    )
