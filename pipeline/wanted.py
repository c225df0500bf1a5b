"""Requests to change a run (to another graph, or by one more camera), and the interface that loads them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from camgraph.pipeline.plan import RunPlan


@dataclass(frozen=True, slots=True)
class WantedGraph:
    """A requested graph. `text`: None to read `file`. `besides`: variables of the requester.

    `folder`: the start of relative paths, by default the folder of `file`. Messages call the graph `file`. `further`:
    cameras that the run has in addition. `removed`: cameras that it had, of which the rules may still speak.
    `env_files`: those of the run from now on; None keeps the present ones.
    """

    file: str
    name: str
    text: str | None = field(default=None, repr=False)
    folder: str = ""
    besides: Mapping[str, str] = field(default_factory=dict, repr=False)
    further: Collection[str] = ()
    removed: Collection[str] = ()
    env_files: Sequence[Path] | None = None


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class LoadedGraph:
    """The plan of a requested graph, and remarks on it.

    `accept` is called when the run has taken the plan over: only then are the env files of this graph those of the run.
    """

    plan: RunPlan
    remarks: Sequence[str] = ()
    accept: Callable[[], None] = field(default=_nothing, repr=False)


@dataclass(frozen=True, slots=True)
class GivenVariables:
    """Variables of the requester of a camera: `first` come before those of the run, `besides` fill in missing names."""

    first: Mapping[str, str] = field(default_factory=dict, repr=False)
    besides: Mapping[str, str] = field(default_factory=dict, repr=False)


class Loader(Protocol):
    """Loads graphs and cameras for one run, one at a time. May take long: not for the loop of the run.

    Raises CamgraphError.
    """

    def plan(self, wanted: WantedGraph) -> LoadedGraph:
        """The graph, loaded."""

    def camera(
        self, name: str, values: Mapping[str, Any], run: RunPlan, given: GivenVariables
    ) -> tuple[dict[str, Any], list[str]]:
        """The request for one more camera of this run, with its variables put in, and remarks."""
