"""The interface of an engine that runs a model: ONNX Runtime with one of its providers, OpenVINO, or a server.

names of providers in a graph ──opening──> the first that really works ──> Engine
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from camgraph.pipeline.messages import Array
from camgraph.pipeline.system.redaction import redacted_line
from camgraph.stages.vision.recognition import Signature

ProviderName = Literal["cpu", "cuda", "tensorrt", "openvino", "directml", "coreml"]
Source = Path | bytes
"""A model: its file, or the content of one."""


class RunFailed(Exception):
    """The model did not take this input; the text is one line of bounded length."""


class OutOfMemory(RunFailed):
    """There is not enough memory for a run of this many rows, on the device or in this process; fewer may fit."""


class WrongOutput(Exception):
    """An output of a model has another shape or type than it promised. `output`: its name."""

    def __init__(self, output: str, text: str) -> None:
        self.output = output
        super().__init__(text)


class NotToBeHad(Exception):
    """This provider does not work on this machine, or does not take this model; the text says why."""


@dataclass(frozen=True)
class Placement:
    """Which provider runs how many of a model's nodes, by operator."""

    nodes: Mapping[str, Counter[str]]
    """Provider -> operator -> how many."""
    names: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Provider -> the names of its nodes, if they have any; fused nodes may have new names."""

    def share(self, provider: str) -> float:
        """Of the nodes that this provider runs, 0 to 1."""
        total = sum(counted.total() for counted in self.nodes.values())
        return self.nodes.get(provider, Counter()).total() / total if total else 0.0

    def shares(self) -> dict[str, float]:
        """Each provider's share, the largest first."""
        return {name: self.share(name) for name in sorted(self.nodes, key=self.share, reverse=True)}


class Engine(Protocol):
    """A model, ready to run; `run` may be called from several threads at once."""

    signature: Signature
    provider: str
    """Who really runs it, in its own words."""
    placement: Placement
    most_rows: int | None
    """The most pictures of one run, if that is bounded and does not show in the signature."""

    def run(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """All outputs by name, in the model's order; they are the caller's, to read.

        Raises RunFailed; an engine on a GPU also NeedsNewProcess, one on another machine Unavailable and WrongOutput.
        """
        ...


@runtime_checkable
class PlansOutputs(Protocol):
    """An engine that sets memory aside for outputs before a run, by the shapes that the model states."""

    def expect_any_rows(self) -> None:
        """Believe no shape any more: how many rows an output has depends on the pictures.

        Raises NeedsNewProcess if the model has to be opened again for that, and is not to be had.
        """


class Opened(NamedTuple):
    """An open model, and the providers that were asked for in vain: provider -> why."""

    engine: Engine
    passed_over: Mapping[str, str]


def one_line(error: Exception | str) -> str:
    """An engine's message, as one line of bounded length: names in it are the model's."""
    return redacted_line(" ".join(str(error).split()), 300)
