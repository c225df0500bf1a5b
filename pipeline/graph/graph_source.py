"""Reloads a run's graph, or checks one camera more for the run. The run itself remembers the values of its variables.

So you can change a run without knowing its passwords. All calls may be slow, so the loop of a run must not make them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from camgraph.pipeline.errors import GraphError, UserError
from camgraph.pipeline.graph.env_file import Variables
from camgraph.pipeline.graph.loading import Amend, parse_graph, read_graph, unchanged
from camgraph.pipeline.graph.nodes import Camera, find_camera
from camgraph.pipeline.graph.planning import plan_of
from camgraph.pipeline.graph.remarks import remarks_on
from camgraph.pipeline.graph.report import Report
from camgraph.pipeline.graph.yaml_source import load
from camgraph.pipeline.plan import RunPlan
from camgraph.pipeline.registry import find_stage
from camgraph.pipeline.stage import Source
from camgraph.pipeline.system.names import A_CAMERA_NAME, is_camera_name, nfc
from camgraph.pipeline.system.redaction import hide
from camgraph.pipeline.wanted import GivenVariables, LoadedGraph, WantedGraph

Finish = Callable[[RunPlan, Callable[[str], None]], RunPlan]
"""Settles the settings that a graph leaves open; reports its choices."""


class GraphSource:
    """The `pipeline.wanted.Loader` of one run. `finish`, `amend`: see `Finish` and `Amend`."""

    def __init__(
        self, variables: Variables | None = None, finish: Finish = lambda plan, _: plan, amend: Amend = unchanged
    ) -> None:
        self._amend = amend
        self._variables = variables or Variables()
        self._finish = finish

    def plan(self, wanted: WantedGraph) -> LoadedGraph:
        """See `pipeline.wanted.Loader`. Raises CamgraphError."""
        variables = self._variables if wanted.env_files is None else self._variables.with_files(wanted.env_files)
        environ, remarks = variables.anew(wanted.besides)
        file = Path(wanted.file)
        text = read_graph(file) if wanted.text is None else wanted.text
        folder = Path(wanted.folder) if wanted.folder else file.parent
        graph = parse_graph(
            text,
            str(file),
            base_folder=folder,
            name=wanted.name,
            further=[*wanted.further, *wanted.removed],
            environ=environ,
            amend=self._amend,
        )
        remarks += [*graph.source.remarks, *remarks_on(graph, wanted.further)]
        plan = self._finish(plan_of(graph), remarks.append)
        return LoadedGraph(plan, remarks, accept=lambda: self._remember(variables))

    def _remember(self, variables: Variables) -> None:
        self._variables = variables

    def camera(
        self, name: str, values: Mapping[str, Any], run: RunPlan, given: GivenVariables
    ) -> tuple[dict[str, Any], list[str]]:
        """Return the request for one more camera with its variables filled in, and remarks. Raises CamgraphError."""
        environ, remarks = self._variables.anew(given.besides)
        try:
            checked = check_camera(
                name,
                values,
                source=run.source,
                base_folder=Path(run.base_folder),
                defaults=run.camera_defaults,
                environ={**environ, **given.first},
            )
        except GraphError as error:
            text = "\n".join(problem.text for problem in error.problems)
            raise UserError(text, error_id=error.error_id) from None
        camera = checked.camera
        asked = {"camera": name, "values": dict(camera.values), "size": camera.frame_size, "secrets": checked.secrets}
        return asked, remarks


class Checked(NamedTuple):
    """A camera, and the values in its settings to hide."""

    camera: Camera
    secrets: tuple[str, ...]


def check_camera(
    name: str,
    values: Mapping[str, Any],
    *,
    source: str,
    base_folder: Path,
    defaults: Mapping[str, Any],
    environ: Mapping[str, str] = os.environ,
) -> Checked:
    """Check a camera by itself, for a running graph, like those in its file; `${NAME}` in its settings included.

    `source`: the kind of the graph's source stage. Raises GraphError with all mistakes in the settings, and
    UserError for a name that no camera can have.
    """
    name = nfc(name)
    if not is_camera_name(name):
        raise UserError(f"a camera cannot be called `{name}`: expected {A_CAMERA_NAME}", error_id="name-not-allowed")
    text = yaml.safe_dump({"cameras": {name: dict(values)}}, allow_unicode=True)
    report = Report(load(text, f"camera {name}", environ))
    hide(report.source.hidden)
    report.raise_if_any()
    kind = find_stage(source)
    assert issubclass(kind, Source)
    own = report.source.mapping("cameras", name)
    camera = find_camera(name, {**defaults, **own}, kind, base_folder, report)
    report.raise_if_any()
    assert camera
    return Checked(camera, tuple(sorted(report.source.hidden)))
