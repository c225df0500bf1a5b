"""Draws a graph as Mermaid or DOT: cameras, processes as boxes around their stages, and the edges between them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from camgraph.pipeline.graph.nodes import Node
from camgraph.pipeline.graph.placement import Group
from camgraph.pipeline.graph.planning import Graph
from camgraph.pipeline.plan import EdgePlan

_MANY_CAMERAS = 8
_MANY_PROCESSES = 4


@dataclass(frozen=True, slots=True)
class Box:
    """Processes with the same stages, drawn once."""

    key: str
    title: str
    stages: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Line:
    """An arrow and its label."""

    sender: str
    reader: str
    label: str
    direct: bool


@dataclass(frozen=True, slots=True)
class Picture:
    """The parts that both formats draw: (key, label) of cameras, boxes of (key, label) of stages, lines between
    them.
    """

    name: str
    cameras: tuple[tuple[str, str], ...]
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]


def picture_of(graph: Graph) -> Picture:
    """Return the parts of a graph to draw, without secrets: variables by name, URLs without passwords."""
    cameras = tuple(_cameras(graph))
    sources = [node.name for node in graph.completed.nodes if node.source]
    filmed = [Line(key, _key("s", source), "", direct=True) for key, _ in cameras for source in sources]
    return Picture(
        graph.source.shown(("name",), graph.name),
        cameras,
        tuple(_box(group, graph) for group in graph.groups),
        (*filmed, *(_line(edge, graph) for edge in graph.edges)),
    )


def _cameras(graph: Graph) -> Iterator[tuple[str, str]]:
    names = tuple(graph.cameras)
    if len(names) > _MANY_CAMERAS:
        yield _key("c", "all"), f"{len(names)} cameras\n{names[0]} ... {names[-1]}"
        return
    for name in names:
        url = graph.cameras[name].values.get("url")
        shown = graph.source.shown(_camera_path(graph, name), url) if isinstance(url, str) else ""
        yield _key("c", name), f"{name}\n{shown}" if shown else name


def _camera_path(graph: Graph, name: str) -> tuple[str, ...]:
    own = graph.file.cameras[name] or {}
    return ("cameras", name, "url") if "url" in own else ("camera_defaults", "url")


def _box(group: Group, graph: Graph) -> Box:
    processes = tuple(group.shards)
    many = len(processes) > _MANY_PROCESSES
    title = f"{processes[0]} ... {processes[-1]} ({len(processes)} processes)" if many else ", ".join(processes)
    return Box(
        _key("p", group.name),
        title,
        tuple((_key("s", node.name), _label(node, graph)) for node in group.members),
    )


def _label(node: Node, graph: Graph) -> str:
    return f"{node.name}\n{graph.source.shown((*node.path, 'use'), node.entry.use)}{_busy(node)}"


def _busy(node: Node) -> str:
    entry = node.entry
    words = [f"batch {entry.batch.max}"] if entry.batch else []
    words += [f"{node.threads} threads"] if node.threads > 1 else []
    return f"\n{', '.join(words)}" if words else ""


def _line(edge: EdgePlan, graph: Graph) -> Line:
    port = f"{edge.port}: " if edge.port else ""
    only = graph.completed.event_filters.get(edge.reader)
    chosen = f"\nof {', '.join(only)}" if only else ""
    queue = "direct" if edge.inner else f"{edge.policy} {edge.depth}"
    label = f"{port}{edge.type}{chosen}\n{queue}"
    return Line(_key("s", edge.sender), _key("s", edge.reader), label, edge.inner)


def _key(kind: str, name: str) -> str:
    return f"{kind}_" + re.sub(r"[^A-Za-z0-9_]", lambda found: f"_{ord(found[0]):x}_", name)


# ---- Mermaid


def mermaid(graph: Graph) -> str:
    """The graph for Mermaid, as Markdown viewers draw it."""
    return "\n".join(_mermaid_lines(picture_of(graph))) + "\n"


def _mermaid_lines(picture: Picture) -> Iterator[str]:
    yield "flowchart LR"
    for key, label in picture.cameras:
        yield f'  {key}(["{_mermaid_text(label)}"])'
    for box in picture.boxes:
        yield f'  subgraph {box.key}["{_mermaid_text(box.title)}"]'
        for key, label in box.stages:
            yield f'    {key}["{_mermaid_text(label)}"]'
        yield "  end"
    for line in picture.lines:
        arrow = "-.->" if line.direct else "-->"
        label = f'|"{_mermaid_text(line.label)}"|' if line.label else ""
        yield f"  {line.sender} {arrow}{label} {line.reader}"


def _mermaid_text(text: str) -> str:
    escaped = re.sub(r"[#\"<>&\[\]{}|`]", lambda found: f"#{ord(found[0])};", text)
    return escaped.replace("\n", "<br>")


# ---- DOT


def dot(graph: Graph) -> str:
    """The graph for Graphviz."""
    return "\n".join(_dot_lines(picture_of(graph))) + "\n"


def _dot_lines(picture: Picture) -> Iterator[str]:
    yield f"digraph {_dot_text(picture.name)} {{"
    yield '  rankdir=LR; node [shape=box, fontname="sans-serif"]; edge [fontname="sans-serif", fontsize=10];'
    for key, label in picture.cameras:
        yield f"  {key} [label={_dot_text(label)}, shape=oval];"
    for box in picture.boxes:
        yield f"  subgraph cluster_{box.key} {{ label={_dot_text(box.title)};"
        yield from (f"    {key} [label={_dot_text(label)}];" for key, label in box.stages)
        yield "  }"
    for line in picture.lines:
        style = ", style=dashed" if line.direct else ""
        yield f"  {line.sender} -> {line.reader} [label={_dot_text(line.label)}{style}];"
    yield "}"


def _dot_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
