"""The disks that the stages of a graph write: those of clips should have hard links."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from camgraph.pipeline.errors import CamgraphError
from camgraph.pipeline.graph import load_graph
from camgraph.pipeline.graph.env_file import Variables
from camgraph.pipeline.system.disk import why_no_links
from camgraph.tools.commands.doctor.finding import Finding


def look_at_footage(graph_file: Path, env_files: Sequence[Path] = ()) -> Iterator[Finding]:
    """A finding for each folder of clips. None if the graph cannot be read, which other findings tell."""
    try:
        graph = load_graph(graph_file, environ=Variables(env_files).anew()[0])
    except CamgraphError:
        return
    for node in graph.completed.nodes:
        if node.stage is not None and node.entry.use == "sink_footage" and node.settings.wants_clips:
            for folder in node.stage.written_folders(node.settings, graph.base_folder):
                yield _finding(folder)


def _finding(folder: Path) -> Finding:
    why = why_no_links(folder)
    if not why:
        return Finding("ok", "clips", f"{folder}: incidents can share a clip")
    found = f"{folder}: no hard links ({why}): incidents that share a clip each take its room on the disk"
    return Finding("warning", "clips", found, "put `path` of `sink_footage` on a disk such as ext4, XFS or NTFS")
