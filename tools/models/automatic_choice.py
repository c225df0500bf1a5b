"""The providers that `providers: auto` takes for a model on this machine, and the results of all others."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from camgraph.stages.people.inference.engines.engine import ProviderName
from camgraph.stages.people.inference.infer_settings import InferSettings
from camgraph.stages.people.inference.model_inputs import first_size, inputs_of, sample
from camgraph.stages.people.inference.selection.automatic import BEST_FIRST, Choice, candidates_here, choose
from camgraph.stages.people.inference.selection.opening import Asked
from camgraph.stages.vision.foreign_text import shown
from camgraph.tools.models.declaration import DeclaredModel


def chosen(model: DeclaredModel) -> Choice:
    """As a graph chooses for a stage with one thread. Raises UserError if the model does not run on the CPU."""
    settings = InferSettings.model_validate({"model": str(model.path), **model.declaration.infer})
    contract, feeds = inputs_of(model.signature, settings)
    size = first_size(contract, model.signature, settings)
    return choose(
        model.path, Asked(libraries=model.declaration.libraries), sample(contract, feeds, contract.batch or 1, size)
    )


def lines(choice: Choice, tried: Collection[ProviderName] | None = None) -> Iterator[str]:
    """The choice as people read it, a line for each provider; ``tried``: those worth a try, by default on this machine.

    Reasons have names of the model's in them.
    """
    there = candidates_here() if tried is None else tried
    taken = choice.providers[0]
    yield shown(f"auto takes {taken}: {choice.found or _why_cpu(there)}")
    for name in BEST_FIRST:
        if name != taken:
            yield shown(f"  not {name}: {_why_not(name, choice, there)}")


def _why_cpu(there: Collection[ProviderName]) -> str:
    return "of the others none is to be taken" if there else "no other is installed here"


def _why_not(name: ProviderName, choice: Choice, there: Collection[ProviderName]) -> str:
    if name in choice.passed_over:
        return choice.passed_over[name]
    if name in there:
        return f"not tried, for {choice.providers[0]} comes before it"
    return "its package is not installed" if name == "openvino" else "this ONNX Runtime was built without it"
