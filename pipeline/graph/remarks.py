"""Remarks on a graph: settings that are correct, but perhaps not intended."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from camgraph.pipeline.graph.planning import Graph
from camgraph.pipeline.graph.secret_files import open_to_others
from camgraph.pipeline.stage import Source

_PLAIN_PASSWORD = re.compile(r"://[^\s/@:\"']*:(?!\$\{)[^\s@/]+@")
"""In an address, a password that is not the value of a variable."""


def remarks_on(graph: Graph, further: Collection[str] = ()) -> Iterator[str]:
    """Return the remarks of a graph's stages, a line each. `further`: as in `load_graph`."""
    sizes = {**dict.fromkeys(further), **{name: camera.frame_size for name, camera in graph.cameras.items()}}
    yield from _on_passwords(graph)
    yield from _on_cameras(graph)
    for node in graph.completed.nodes:
        if node.stage is not None:
            for remark in node.stage.remarks(node.settings, graph.base_folder, sizes):
                yield f"{node.name}: {remark}"
    yield from remarks_alone(graph)
    rates = _rates(graph)
    for node in graph.completed.nodes:
        if node.stage is not None and rates:
            for remark in node.stage.remarks_on_rates(node.settings, graph.base_folder, rates):
                yield f"{node.name}: {remark}"


def remarks_alone(graph: Graph) -> Iterator[str]:
    """Return remarks on settings that cannot work for photographs."""
    alone = _cameras_alone(graph)
    for node in graph.completed.nodes:
        if node.stage is not None and alone:
            for remark in node.stage.remarks_alone(node.settings, graph.base_folder, alone):
                yield f"{node.name}: {remark}"


def _on_passwords(graph: Graph) -> Iterator[str]:
    """Whether others may read a password that stands in the graph itself."""
    if graph.path and any(map(_PLAIN_PASSWORD.search, graph.source.lines)):
        remark = open_to_others(Path(graph.path))
        if remark:
            yield f"{remark}, and better write passwords as `${{NAME}}`"


def _source(graph: Graph) -> type[Source[Any]] | None:
    return next((node.source for node in graph.completed.nodes if node.source), None)


def _cameras_alone(graph: Graph) -> list[str]:
    """The cameras whose frames are photographs: each is a moment by itself."""
    source = _source(graph)
    return [
        name
        for name, camera in graph.cameras.items()
        if source and source.frames_alone(camera.settings, graph.base_folder)
    ]


def _rates(graph: Graph) -> dict[str, float]:
    """The cameras of which it is known how many frames a second they bring at most."""
    source = _source(graph)
    known = {name: source.most_fps(camera.settings) if source else None for name, camera in graph.cameras.items()}
    return {name: fps for name, fps in known.items() if fps is not None}


def _on_cameras(graph: Graph) -> Iterator[str]:
    """The source's remarks on its cameras; cameras with the same remark share a line."""
    source = _source(graph)
    cameras_of: dict[str, list[str]] = {}
    for name, camera in graph.cameras.items():
        for remark in source.camera_remarks(camera.settings, graph.base_folder) if source else ():
            cameras_of.setdefault(remark, []).append(name)
    for remark, names in cameras_of.items():
        yield f"{', '.join(names)}: {remark}"
