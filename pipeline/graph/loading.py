"""From a graph file to a graph that holds together, or to all that is wrong with it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pipeline.errors import GraphError, Problem, UserError
from pipeline.graph.completion import check_mixed, complete
from pipeline.graph.definition import GraphFile
from pipeline.graph.informing import informed
from pipeline.graph.nodes import find_cameras, find_nodes
from pipeline.graph.placement import check_groups, place
from pipeline.graph.planning import Graph, plan_of
from pipeline.graph.reading import read_graph_file
from pipeline.graph.report import Report
from pipeline.graph.structure import check_structure, order_of
from pipeline.graph.yaml_source import load
from pipeline.names import A_NAME, MAX_NAME, is_name
from pipeline.paths import instead_of_file
from pipeline.plan import RunPlan


def load_plan(path: str | Path, *, name: str | None = None, environ: Mapping[str, str] = os.environ) -> RunPlan:
    """The plan of the graph file at `path`; `name` stands in for the graph's own. Raises GraphError."""
    return plan_of(load_graph(path, name=name, environ=environ))


def load_graph(path: str | Path, *, name: str | None = None, environ: Mapping[str, str] = os.environ) -> Graph:
    """The checked and completed graph of the file at `path`. Raises GraphError with everything that is wrong."""
    path = Path(path)
    graph = parse_graph(_read(path), str(path), base_folder=path.parent, name=name, environ=environ)
    return replace(graph, path=str(path.absolute())) if path.is_file() else graph


def _read(path: Path) -> str:
    other = instead_of_file(path)
    if other and other != "a pipe":  # a shell's <(...) is one
        raise GraphError([Problem(str(path), 0, 0, f"is {other}: expected a graph file")])
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        text = f"not UTF-8 at byte {error.start}: expected a YAML file in UTF-8"
    except OSError as error:
        text = f"cannot be read: {error.strerror}: expected a graph file"
    raise GraphError([Problem(str(path), 0, 0, text)]) from None


def parse_graph(
    text: str,
    file: str,
    *,
    base_folder: Path,
    name: str | None = None,
    outbox: str | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Graph:
    """As `load_graph`, for a text that is called `file` in messages; its relative paths start at `base_folder`.

    `outbox`: the folder of the outbox, where runs of one name are not to hand on what an earlier one has left.
    """
    if name is not None and not is_name(name):
        raise UserError(f"`{name}` cannot be the name of a run: expected {A_NAME}")
    report = Report(load(text, file, environ))
    parsed = read_graph_file(report)
    base_folder = base_folder.absolute()
    if parsed is None:
        raise GraphError(report.problems)
    name = name or parsed.name or default_name(file)
    return _checked(parsed, name, outbox or name, base_folder, report)


def default_name(file: str) -> str:
    """The name of a graph that has none: its file's, with what a name cannot hold replaced."""
    stem = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "-" for c in Path(file).stem).lstrip("-")
    return stem[:MAX_NAME] or "graph"


def _checked(parsed: GraphFile, name: str, outbox: str, base_folder: Path, report: Report) -> Graph:
    nodes = find_nodes(parsed, base_folder, report)
    arrows = check_structure(nodes, report)
    sources = [node.source for node in nodes.values() if node.source]
    cameras = find_cameras(parsed, sources[0], base_folder, report) if sources else {}
    if not parsed.cameras and not report.touches(("cameras",)):
        report.add(("cameras",), "cameras: there is none: expected at least one `name: {...}`", at_key=True)
    if not report.touches(("cameras",)) and not report.touches(("camera_defaults",)):
        check_mixed(nodes, arrows, cameras.values(), report)
    if not report.problems:
        check_groups(nodes, order_of(nodes, arrows), arrows, report)
    report.raise_if_any()
    nodes = informed(nodes, arrows, base_folder, report)
    report.raise_if_any()
    completed = complete(nodes, arrows, cameras, outbox)
    groups = place(completed, parsed.processes, tuple(cameras))
    return Graph(name, parsed, report.source, base_folder, cameras, completed, groups)
