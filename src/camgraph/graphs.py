"""Graphs to run: read from a file or a text, or built like the graph of `camgraph watch`."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.foreign_text import shown
from camgraph.pipeline.graph import Graph as CheckedGraph
from camgraph.pipeline.graph import parse_graph, plan_of
from camgraph.pipeline.graph.env_file import Variables
from camgraph.pipeline.graph.graph_source import GraphSource
from camgraph.pipeline.graph.loading import Amend, read_graph
from camgraph.pipeline.plan import RunPlan
from camgraph.pipeline.system.paths import require_path
from camgraph.pipeline.wanted import Loader
from camgraph.readers import Wishes
from camgraph.tools.commands.graph_commands import checked_lines
from camgraph.tools.commands.run_command import require_room
from camgraph.tools.commands.watching.picture_size import with_picture_sizes
from camgraph.tools.commands.watching.starting import Asked, watch_graph

_log = logging.getLogger("camgraph")
_Parse = Callable[[Amend, str | None, bool], CheckedGraph]
"""Arguments: the sinks to add, the name of the run (None: the graph's), whether unreadable files are mistakes."""


class Graph:
    """A checked graph without mistakes, made by `load`, `parse` or `build`.

    `name`: the name of its runs. `text`: its YAML, with variables in place of their values.
    """

    def __init__(
        self, text: str, parsed: _Parse, variables: Variables, remarks: Sequence[str] = (), *, passing: bool = False
    ) -> None:
        self.text = text
        self.passing = passing
        """True if the caller gave no name: the run keeps nothing for a later one, and several may run at once."""
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
        """Return the lines that `camgraph check` prints: the graph's needs, and remarks. Opens no camera.

        Raises GraphError, also for files that cannot be read, and EnvironmentProblem if this machine cannot run it.
        """
        return list(checked_lines(self.checked(Wishes(), strict=True), self._remarks))

    def checked(self, wishes: Wishes, *, name: str | None = None, strict: bool = False) -> CheckedGraph:
        """Return the checked graph with the sinks for a program's wishes. Raises GraphError."""
        return self._parsed(wishes.amend, name, strict)

    def planned(self, wishes: Wishes, name: str | None) -> RunPlan:
        """Return the plan of a run. Raises CamgraphError, also if this machine cannot run it."""
        graph = self.checked(wishes, name=name)
        require_room(graph)
        return with_picture_sizes(plan_of(graph), _log.info)

    def loader(self, wishes: Wishes, finish: Callable[[RunPlan], RunPlan]) -> Loader:
        """Return the loader with which a run reloads the graph after its file has changed."""
        return GraphSource(
            self._variables, lambda plan, show: finish(with_picture_sizes(plan, show)), amend=wishes.amend
        )


def load(
    path: str | os.PathLike[str], *, name: str | None = None, env_files: Sequence[str | os.PathLike[str]] = ()
) -> Graph:
    """Load the graph file at `path`. `name` replaces the graph's own name. Relative paths start at the file's folder.

    `env_files`: files of NAME=VALUE lines for `${NAME}` in the graph; a run reads them again when it reloads the graph.
    Raises GraphError with every mistake, as `camgraph check` prints them. Outputs that only your program reads need no
    sink in the file.
    """
    file = _path("path", path)
    variables = Variables(_env_files(env_files))
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
    """Load a graph from a text, as `load` does. Relative paths start at `folder`; messages call it `<graph>`."""
    if not isinstance(text, str):
        raise _wrong("text", "the text of a graph (camgraph.load takes the path of a file)", text)
    return _graph(text, _File("<graph>", _path("folder", folder)), name, Variables(_env_files(env_files)))


class _File(NamedTuple):
    """A graph's origin: its name in messages, the folder of its relative paths, the file to reload it from."""

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
    tracks: str | os.PathLike[str] | None = None,
    max_fps: float | None = None,
    name: str | None = None,
    env_files: Sequence[str | os.PathLike[str]] = (),
) -> Graph:
    """Build the graph of `camgraph watch` from the command's options; save its `text` to keep it as a graph file.

    `sources`: video files, folders of videos or pictures, addresses such as rtsp://user:${PASSWORD}@host/path,
    /dev/video0. `model`: a pose model (ONNX), by default MoveNet MultiPose. `size`: the longest side of the model's
    picture in pixels. `rules`: a file of rules. `events`, `video`, `tracks`: a file for events, a folder for annotated
    videos and a file for tracks, by default none. `max_fps`: the most frames a second to take from each camera.

    Raises UserError, GraphError and EnvironmentProblem with the texts of the command.
    """
    if not sources:
        raise UserError(
            "no source: expected a video, a folder of videos or pictures, an address or a device",
            error_id="source-missing",
        )
    asked = Asked(
        sources=tuple(_text("source", source) for source in sources),
        model=_optional("model", model),
        size=size,
        rules=_optional("rules", rules),
        events=_optional("events", events),
        overwrite=overwrite,
        video=_optional("video", video),
        tracks=_optional("tracks", tracks),
        max_fps=max_fps,
        name="watch" if name is None else name,
        env_files=_env_files(env_files),
    )
    made = watch_graph(asked, _log.info)
    if name is None:
        made = replace(made, outbox=f"{made.outbox}-unnamed")

    def parsed(amend: Amend, other: str | None, strict: bool) -> CheckedGraph:
        renamed = replace(made, name=other, outbox=f"{other}-unnamed") if other else made
        return renamed.parsed(amend, strict=strict)

    return Graph(made.text, parsed, made.variables, made.alone, passing=name is None)


def _env_files(paths: Sequence[str | os.PathLike[str]]) -> tuple[Path, ...]:
    """Raises UserError."""
    if isinstance(paths, str | bytes | os.PathLike) or not isinstance(paths, Iterable):
        raise _wrong("env_files", "a list of paths", paths)
    return tuple(_path("env_files", one) for one in paths)


def _path(name: str, path: str | os.PathLike[str]) -> Path:
    """Raises UserError for an address, and for no path."""
    text = _text(name, path)
    require_path(text)
    return Path(text)


def _optional(name: str, path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else _text(name, path)


def _text(name: str, path: str | os.PathLike[str]) -> str:
    """Raises UserError: programs may give anything."""
    if isinstance(path, os.PathLike):
        path = os.fspath(path)
    if not isinstance(path, str):
        raise _wrong(name, "a path as str or pathlib.Path", path)
    return path


def _wrong(name: str, expected: str, got: object) -> UserError:
    return UserError(f"{name}: expected {expected}, got {shown(repr(got), 60)}", error_id="option-value")
