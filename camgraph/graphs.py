"""Graphs to run: read from a file or a text, or built as `camgraph watch` builds one."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from camgraph.readers import Wishes
from pipeline.graph import Graph as CheckedGraph
from pipeline.graph import parse_graph, plan_of
from pipeline.graph.env_file import Variables
from pipeline.graph.graph_source import GraphSource
from pipeline.graph.loading import Amend, read_graph
from pipeline.plan import RunPlan
from pipeline.wanted import Loader
from tools.commands.graph_commands import checked_lines
from tools.commands.run_command import require_room
from tools.commands.watching.picture_size import with_picture_sizes
from tools.commands.watching.starting import Asked, watch_graph

_log = logging.getLogger("camgraph")
_Parse = Callable[[Amend, str | None, bool], CheckedGraph]
"""What to add, the name of the run (None: the graph's own), and whether files that cannot be read are mistakes."""


class Graph:
    """A graph without mistakes. `load`, `parse` and `build` make one.

    `name`: of its runs. `text`: the YAML that it was read from, without the values of its variables.
    """

    def __init__(
        self, text: str, parsed: _Parse, variables: Variables, remarks: Sequence[str] = (), *, passing: bool = False
    ) -> None:
        self.text = text
        self.passing = passing
        """True where nobody has given it a name: nothing is kept for a later run, and several may go on."""
        self._parsed = parsed
        self._variables = variables
        self._remarks = remarks
        checked = self.checked(Wishes())
        self.name = checked.name
        self.cameras: tuple[str, ...] = tuple(checked.cameras)
        self.stages: tuple[str, ...] = tuple(checked.file.stages)

    def __repr__(self) -> str:
        return f"<camgraph.Graph {self.name}: {len(self.cameras)} cameras, stages {', '.join(self.stages)}>"

    def check(self) -> list[str]:
        """What `camgraph check` says of it: what it needs, and remarks. Cameras are not opened.

        Raises GraphError, also for files that cannot be read, and EnvironmentProblem if this machine cannot run it.
        """
        return list(checked_lines(self.checked(Wishes(), strict=True), self._remarks))

    def checked(self, wishes: Wishes, *, name: str | None = None, strict: bool = False) -> CheckedGraph:
        """The graph with what a program wishes to read of it. Raises GraphError."""
        return self._parsed(wishes.amend, name, strict)

    def planned(self, wishes: Wishes, name: str | None) -> RunPlan:
        """The plan of a run. Raises CamgraphError, also where this machine cannot run it."""
        graph = self.checked(wishes, name=name)
        require_room(graph)
        return with_picture_sizes(plan_of(graph), _log.info)

    def loader(self, wishes: Wishes, finish: Callable[[RunPlan], RunPlan]) -> Loader:
        """Loads the graph anew for a run, when its file has changed."""
        return GraphSource(self._variables, lambda plan, say: finish(with_picture_sizes(plan, say)), amend=wishes.amend)


def load(
    path: str | os.PathLike[str], *, name: str | None = None, env_files: Sequence[str | os.PathLike[str]] = ()
) -> Graph:
    """The graph file at `path`. `name`: of its runs, instead of the graph's own. Relative paths start at its folder.

    `env_files`: NAME=VALUE lines for `${NAME}` in it; a run remembers them for later changes. Raises GraphError with
    all that is wrong, as `camgraph check` prints it. What only your program reads need not be read in the file.
    """
    file = Path(path)
    variables = Variables([Path(one) for one in env_files])
    text = read_graph(file)
    named = _File(str(file), file.parent, str(file.absolute()) if file.is_file() else "")
    return _graph(text, named, name, variables)


def parse(
    text: str,
    *,
    folder: str | os.PathLike[str] = ".",
    name: str | None = None,
    env_files: Sequence[str | os.PathLike[str]] = (),
) -> Graph:
    """As `load`, for a text; its relative paths start at `folder`, and messages call it `<graph>`."""
    return _graph(text, _File("<graph>", Path(folder)), name, Variables([Path(one) for one in env_files]))


class _File(NamedTuple):
    """What messages call a graph, where its relative paths start, and the file from which a run may load it anew."""

    name: str
    folder: Path
    path: str = ""


def _graph(text: str, file: _File, name: str | None, variables: Variables) -> Graph:
    environ, remarks = variables.anew()

    def parsed(amend: Amend, other: str | None, strict: bool) -> CheckedGraph:
        whole = parse_graph(
            text, file.name, base_folder=file.folder, name=other or name, environ=environ, strict=strict, amend=amend
        )
        return replace(whole, path=file.path)

    return Graph(text, parsed, variables, remarks)


def build(
    *sources: str | os.PathLike[str],
    model: str | os.PathLike[str] | None = None,
    size: int | None = None,
    rules: str | os.PathLike[str] | None = None,
    events: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    video: str | os.PathLike[str] | None = None,
    max_fps: float | None = None,
    name: str | None = None,
    env_files: Sequence[str | os.PathLike[str]] = (),
) -> Graph:
    """The graph of `camgraph watch`, with its options; `text` is a file to keep.

    `sources`: video files, folders of videos or pictures, addresses such as rtsp://user:${PASSWORD}@host/path,
    /dev/video0. `model`: a pose model (ONNX), by default MoveNet MultiPose. `size`: the longest side of the model's
    picture in pixels. `rules`: a file of rules. `events`, `video`: a file of events and a folder of annotated videos,
    by default none. `max_fps`: take at most so many frames a second of each camera.

    Raises UserError, GraphError and EnvironmentProblem with the texts of the command.
    """
    asked = Asked(
        sources=tuple(os.fspath(source) for source in sources),
        model=_text(model),
        size=size,
        rules=_text(rules),
        events=_text(events),
        overwrite=overwrite,
        video=_text(video),
        max_fps=max_fps,
        name=name or "watch",
        env_files=tuple(Path(one) for one in env_files),
    )
    made = watch_graph(asked, _log.info)
    if name is None:
        made = replace(made, outbox=f"{made.outbox}-unnamed")

    def parsed(amend: Amend, other: str | None, strict: bool) -> CheckedGraph:
        renamed = replace(made, name=other, outbox=f"{other}-unnamed") if other else made
        return renamed.parsed(amend, strict=strict)

    return Graph(made.text, parsed, made.variables, made.alone, passing=name is None)


def _text(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.fspath(path)
