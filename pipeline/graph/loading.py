"""From a graph file to a checked graph, or to a report of all its mistakes."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from camgraph.pipeline.errors import GraphError, Problem, UserError
from camgraph.pipeline.graph.arrows import Arrow
from camgraph.pipeline.graph.completion import check_mixed, complete
from camgraph.pipeline.graph.definition import GraphFile
from camgraph.pipeline.graph.informing import informed
from camgraph.pipeline.graph.nodes import Node, check_cameras_of_stages, check_forms, find_cameras, find_nodes
from camgraph.pipeline.graph.placement import check_groups, place
from camgraph.pipeline.graph.planning import Graph, plan_of
from camgraph.pipeline.graph.reading import read_graph_file
from camgraph.pipeline.graph.report import Report, dotted
from camgraph.pipeline.graph.structure import check_structure, order_of
from camgraph.pipeline.graph.yaml_source import load
from camgraph.pipeline.plan import RunPlan
from camgraph.pipeline.system.disk import read_text
from camgraph.pipeline.system.names import A_NAME, MAX_NAME, is_camera_name, is_name, nearest_camera_name, nfc
from camgraph.pipeline.system.paths import id_of_unreadable, instead_of_file
from camgraph.pipeline.system.redaction import hide

Amend = Callable[[GraphFile], GraphFile]
"""Adds stages to a graph that are not in its file, for a program. Raises UserError."""


def unchanged(parsed: GraphFile) -> GraphFile:
    """The `Amend` that adds nothing."""
    return parsed


def load_plan(path: str | Path, *, name: str | None = None, environ: Mapping[str, str] = os.environ) -> RunPlan:
    """Return the plan of the graph file at `path`; `name` replaces the graph's own. Raises GraphError."""
    return plan_of(load_graph(path, name=name, environ=environ))


def load_graph(
    path: str | Path,
    *,
    name: str | None = None,
    further: Collection[str] = (),
    environ: Mapping[str, str] = os.environ,
    strict: bool = False,
    amend: Amend = unchanged,
) -> Graph:
    """Return the checked and completed graph of the file at `path`. Raises GraphError with all mistakes.

    `further`: cameras that a run of this graph has in addition to those of the file. `strict`: an unreadable file of a
    camera is a mistake, too; otherwise the run reports it when it opens the file.
    """
    path = Path(path)
    text = read_graph(path)
    graph = parse_graph(
        text,
        str(path),
        base_folder=path.parent,
        name=name,
        further=further,
        environ=environ,
        strict=strict,
        amend=amend,
    )
    return replace(graph, path=str(path.absolute())) if path.is_file() else graph


def read_graph(path: Path) -> str:
    """The text of a graph file. Raises GraphError if there is none."""
    other = instead_of_file(path)
    if other and other != "a pipe":  # a shell's <(...) is one
        raise GraphError([Problem(str(path), 0, 0, f"is {other}: expected a graph file", error_id="file-kind")])
    try:
        return read_text(path, pipe=True)
    except UnicodeDecodeError as error:
        text, kind = f"not UTF-8 at byte {error.start}: expected a YAML file in UTF-8", "yaml-mistake"
    except OSError as error:
        text, kind = f"cannot be read: {error.strerror}: expected a graph file", id_of_unreadable(error)
    raise GraphError([Problem(str(path), 0, 0, text, error_id=kind)]) from None


def parse_graph(
    text: str,
    file: str,
    *,
    base_folder: Path,
    name: str | None = None,
    outbox: str | None = None,
    further: Collection[str] = (),
    environ: Mapping[str, str] = os.environ,
    strict: bool = False,
    amend: Amend = unchanged,
) -> Graph:
    """Return the graph of a text, as `load_graph` does; messages call it `file`, paths start at `base_folder`.

    `outbox`: another folder for the outbox, for runs of one name that must not deliver each other's events.
    """
    if name is not None and not is_name(name):
        raise UserError(f"`{name}` cannot be the name of a run: expected {A_NAME}", error_id="name-not-allowed")
    report = Report(load(text, file, environ), strict)
    hide(report.source.hidden)
    parsed = read_graph_file(report)
    base_folder = base_folder.absolute()
    if parsed is None:
        raise report.error()
    name = name or parsed.name or default_name(file)
    graph = _checked(amend(parsed), _Names(name, outbox or name, frozenset(further)), base_folder, report)
    graph = replace(graph, environ=environ)
    hide(graph.secrets)
    return graph


def default_name(file: str) -> str:
    """The name of a graph without one: its file's, with unusable characters replaced."""
    stem = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "-" for c in Path(file).stem).lstrip("-")
    return stem[:MAX_NAME] or "graph"


def _correct_name(camera: str) -> str:
    """Return a camera's name, or the suggested name if it is refused."""
    name = nfc(camera)
    return name if is_camera_name(name) else nearest_camera_name(name) or name


class _Names(NamedTuple):
    """Settings from outside the file: names of the run and its outbox, and further cameras of the run."""

    run: str
    outbox: str
    further: frozenset[str]


def _checked(parsed: GraphFile, names: _Names, base_folder: Path, report: Report) -> Graph:
    nodes = find_nodes(parsed, base_folder, report)
    arrows = check_structure(nodes, report)
    sources = [node.source for node in nodes.values() if node.source]
    cameras = find_cameras(parsed, sources[0], base_folder, report) if sources else {}
    if not parsed.cameras and not report.touches(("cameras",)):
        text = "cameras: there is none: expected at least one `name: {...}`"
        report.add(("cameras",), text, at_key=True, error_id="setting-missing")
    if not report.touches(("cameras",)) and not report.touches(("camera_defaults",)):
        check_mixed(nodes, arrows, cameras.values(), report)
    check_forms([*names.further, *parsed.cameras], report)
    written = [_correct_name(name) for name in report.source.mapping("cameras") if isinstance(name, str)]
    if written:
        known = dict.fromkeys([*written, *names.further])
        sizes = {name: cameras[name].frame_size if name in cameras else None for name in known}
        check_cameras_of_stages(nodes.values(), sizes, base_folder, report)
    if parsed.tracing and not report.touches(("tracing",)) and find_spec("opentelemetry") is None:
        text = "tracing: OpenTelemetry is not installed: `pip install 'camgraph[tracing]'`"
        report.add(("tracing",), text, at_key=True, error_id="extra-missing")
    if not report.problems:
        check_groups(nodes, order_of(nodes, arrows), arrows, report)
        check_withheld(nodes, arrows, report)
    report.raise_if_any()
    nodes = informed(nodes, arrows, base_folder, report)
    report.raise_if_any()
    completed = complete(nodes, arrows, cameras, names.outbox, parsed.outbox.model_dump() if parsed.outbox else {})
    groups = place(completed, parsed.processes, cameras)
    return Graph(names.run, parsed, report.source, base_folder, cameras, completed, groups)


def check_withheld(nodes: Mapping[str, Node], arrows: Sequence[Arrow], report: Report) -> None:
    """Report each reader of what is withheld, at its `from`, and each other stage that would show it.

    No picture may leave a graph that promises that.
    """
    for node in nodes.values():
        withheld = node.stage.withholds(node.settings) if node.stage else {}
        if not withheld:
            continue
        reasons = {kind.TYPE: why for kind, why in withheld.items()}
        for other in nodes.values():
            _check_giver(other, node, reasons, report)
        for arrow in arrows:
            reader = nodes.get(arrow.reader)
            if arrow.type in reasons and reader is not None and reader.stage and not reader.stage.only_for_models:
                report.add(
                    arrow.path,
                    f"{dotted(arrow.path)}: {reader.name} would show {arrow.type}s: {reasons[arrow.type]} "
                    f"({dotted(node.path)}): remove {reader.name}, or change `{node.name}`",
                )


def _check_giver(giver: Node, withholder: Node, reasons: Mapping[str, str], report: Report) -> None:
    """Report a stage that gives away what another one withholds, at its name."""
    for given in giver.stage.gives_away(giver.settings) if giver.stage else ():
        if given.TYPE in reasons:
            report.add(
                giver.path,
                f"{dotted(giver.path)}: it would show {given.TYPE}s: {reasons[given.TYPE]} "
                f"({dotted(withholder.path)}): remove it, or change one of the two",
                at_key=True,
            )
