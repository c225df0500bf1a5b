"""Opens a model on the first of the providers asked for that really works, and says why the others did not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.stages.people.inference.engines import onnxruntime_engine, openvino_engine
from camgraph.stages.people.inference.engines.devices import ON_PROCESSOR
from camgraph.stages.people.inference.engines.engine import Engine, NotToBeHad, Opened, ProviderName, Source
from camgraph.stages.people.inference.engines.openvino_engine import Precision

Made = Mapping[ProviderName, Callable[[], Source]]
"""Provider -> a function that makes the version of a model that this provider runs."""
AS_IT_IS: Made = MappingProxyType({})

_WAY_OUT = "install what is missing, or add cpu to `providers` as a fallback"


class NoProvider(EnvironmentProblem):
    """None of the requested ones works; ``why``: provider -> its error."""

    error_id = "provider-missing"

    def __init__(self, path: Path, why: Mapping[str, str]) -> None:
        super().__init__(f"{path}: {_none_of(why)}; {_WAY_OUT}")
        self.why = why


@dataclass(frozen=True)
class Asked:
    """``threads``: of one run on the CPU; ``precision``: in which OpenVINO calculates."""

    providers: tuple[ProviderName, ...] = ("cpu",)
    threads: int = 1
    precision: Precision = "f32"
    options: Mapping[ProviderName, Mapping[str, str]] = field(default_factory=dict)
    """The options of each provider of ONNX Runtime."""
    libraries: tuple[Path, ...] = ()
    """With operators of the model's own, for ONNX Runtime."""
    at_once: int = 1
    """How many runs there will be at the same time, which OpenVINO wants to know."""
    threads_instead: int = 1
    """As `threads`, if the processor runs the model instead of a device: for that, fewer runs at once are planned."""
    session: Mapping[str, Any] = field(default_factory=dict)
    """The options of ONNX Runtime's session, as `options.SessionOptions.given`."""

    def threads_with(self, provider: ProviderName) -> int:
        """Of one run with this provider, which is one of those asked for."""
        takes_over = provider in ON_PROCESSOR and self.providers[0] not in ON_PROCESSOR
        return max(self.threads, self.threads_instead) if takes_over else self.threads


def open_model(path: Path, asked: Asked, made: Made = AS_IT_IS) -> Opened:
    """The model, or the version ``made`` of it for a provider, on the first one that takes it.

    Raises UserError if the file is no usable model, and NoProvider if none of the providers works.
    """
    passed_over: dict[str, str] = {}
    for place, name in enumerate(asked.providers):
        try:
            return Opened(_open(name, path, asked.providers[place + 1 :], asked, made), passed_over)
        except NotToBeHad as error:
            passed_over[name] = str(error)
    last = asked.providers[-1]
    if last == "cpu":
        raise UserError(f"{path}: cannot be run as an ONNX model: {passed_over[last]}", error_id="model-unreadable")
    raise NoProvider(path, passed_over)


def _open(name: ProviderName, path: Path, behind: Sequence[ProviderName], asked: Asked, made: Made) -> Engine:
    """OpenVINO comes from its own package, unless ONNX Runtime was built with it."""
    threads = asked.threads_with(name)
    if name == "openvino" and name not in onnxruntime_engine.offered():
        signature = onnxruntime_engine.analyse(path, asked.libraries)
        return openvino_engine.open_openvino(
            path, signature, threads=threads, at_once=asked.at_once, precision=asked.precision
        )
    wanted = {each: asked.options.get(each, {}) for each in (name, *behind)}
    model = made[name]() if name in made else path
    return onnxruntime_engine.open_with(
        wanted, model, threads=threads, session=asked.session, libraries=asked.libraries
    )


def _none_of(passed_over: Mapping[str, str]) -> str:
    reasons = "; ".join(f"{name}: {why}" for name, why in passed_over.items())
    return f"none of the providers asked for can be had ({reasons})"
