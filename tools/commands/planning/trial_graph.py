"""The graph of a trial: the user's own, with some of its cameras and without anything that sends or writes.

files    are read again and again, at the pace at which they were recorded, as if they were live
sinks    become `sink_null`, in processes of their own as before; there is no outbox
the rest stays: stages, models, settings, batches, threads, processes
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from camgraph.pipeline.errors import CamgraphError, UserError
from camgraph.pipeline.graph.definition import EdgeEntry, From, GraphFile, StageEntry
from camgraph.pipeline.graph.loading import Amend
from camgraph.pipeline.graph.nodes import EVENTS, Node
from camgraph.pipeline.graph.nodes import Camera as NodeCamera
from camgraph.pipeline.graph.planning import Graph
from camgraph.stages.video import examiner
from camgraph.stages.video.capture import Camera, Capture
from camgraph.stages.video.pictures import is_album

_NULL = "sink_null"
_COPY = "copy-"
_AS_IF_LIVE = {"realtime": True, "loop": True}


def require_plannable(graph: Graph) -> None:
    """Raises UserError for a graph of which a trial would say nothing."""
    if graph.in_process:
        raise UserError(
            f"{graph.source.file}: `processes: one` is for debugging, and its stages take turns: "
            "plan with `processes: separate` or `compact`",
            error_id="run-one-process",
        )
    for camera in graph.cameras.values():
        if isinstance(camera.settings, Camera) and Capture.frames_alone(camera.settings, graph.base_folder):
            raise UserError(
                f"{camera.name} is a folder of photographs, which have no rate: a plan is for videos",
                error_id="option-value",
            )


def sample_of(names: Sequence[str], most: int) -> list[str]:
    """At most so many of the names, evenly spread over all of them."""
    count = min(most, len(names))
    return [names[index * len(names) // count] for index in range(count)]


def copies_of(graph: Graph, names: Sequence[str], most: int) -> dict[str, str]:
    """Further cameras for a trial, up to so many in all, and the cameras whose copies they are.

    A file can be read several times; nobody asks a live camera for more than it gives to a run.
    """
    if any(graph.cameras[name].live for name in names):
        return {}
    copies = (f"{_COPY}{number}" for number in count())
    free = (name for name in copies if name not in graph.cameras)
    return {next(free): names[index % len(names)] for index in range(most - len(names))}


def sinks_of(graph: Graph) -> dict[str, Node]:
    """The stages of the file that a trial replaces: all that only take."""
    nodes = {node.name: node for node in graph.completed.nodes if node.name in graph.file.stages}
    return {name: node for name, node in nodes.items() if node.stage and (not node.outputs or node.takes_events)}


def amend_for_trial(graph: Graph, cameras: Mapping[str, str], max_fps: float | None) -> Amend:
    """What turns the file of ``graph`` into that of its trial.

    ``cameras``: those of the trial, and the cameras of the graph that they are or copy. ``max_fps``: for all of them.
    """
    makers = [node.name for node in graph.completed.nodes if node.makes_events and node.name in graph.file.stages]
    sinks = sinks_of(graph)
    joins = {name for name, node in sinks.items() if "" not in node.ports}
    read = {edge.sender for edge in graph.completed.edges if edge.reader not in joins}
    replaced = {name: dict(_replaced(node, makers, read)) for name, node in sinks.items()}
    chosen = {name: _camera_values(graph, of, max_fps) for name, of in cameras.items()}

    def amend(parsed: GraphFile) -> GraphFile:
        kept = {name: entry for name, entry in parsed.stages.items() if name not in replaced}
        nulls = {name: entry for entries in replaced.values() for name, entry in entries.items()}
        # `camera_defaults` are in the values of each camera already, and may hold what a trial leaves out.
        changes = {"stages": {**kept, **nulls}, "cameras": chosen, "camera_defaults": None, "outbox": None}
        return parsed.model_copy(update=changes)

    return amend


def _replaced(sink: Node, makers: Sequence[str], read: Collection[str]) -> Iterator[tuple[str, StageEntry]]:
    """A `sink_null` instead of a sink; several for a join that is the only reader of several stages."""
    inputs = list(_inputs(sink.entry.from_, makers))
    is_join = isinstance(sink.entry.from_, dict) and "" not in sink.ports
    if is_join:
        inputs = [given for given in inputs if _sender(given) not in read] or inputs[-1:]
    for number, given in enumerate(inputs):
        name = sink.name if number == 0 else f"{sink.name}-input-{number}"
        group = None if is_join else sink.entry.group
        values = {"use": _NULL, "from": given, "workers": sink.entry.workers, "group": group}
        yield name, StageEntry.model_validate({key: value for key, value in values.items() if value is not None})


def _inputs(given: From | None, makers: Sequence[str]) -> Iterator[Any]:
    """What stands in the `from` of a stage, one by one for a join."""
    if given == EVENTS:
        yield makers[0] if len(makers) == 1 else list(makers)
    elif isinstance(given, dict):
        yield from given.values()
    elif given is not None:
        yield given


def _sender(given: Any) -> str:
    return given.stage if isinstance(given, EdgeEntry) else str(given)


def _camera_values(graph: Graph, name: str, max_fps: float | None) -> dict[str, Any]:
    camera = graph.cameras[name]
    known = type(camera.settings).model_fields
    values = dict(camera.values)
    if not camera.live:
        values.update({key: value for key, value in _AS_IF_LIVE.items() if key in known})
        if "realtime" in known:
            values.pop("duration_s", None)
    if max_fps is not None and "max_fps" in known:
        own = values.get("max_fps")
        values["max_fps"] = max_fps if own is None else min(own, max_fps)
    return values


def recorded_fps(camera: NodeCamera, folder: Path) -> float | None:
    """Frames a second that a camera of `capture` would bring if it is a file; None if that is not known."""
    settings = camera.settings
    if camera.live or not isinstance(settings, Camera):
        return None
    try:
        path = settings.path(folder)
        if is_album(path):
            fps = settings.film_fps(path)
        else:
            fps = examiner.examine(path, playlist=settings.playlist, memory_mb=settings.memory_mb).fps
    except CamgraphError:  # reading the file reports it
        return None
    return None if fps is None else min(fps, settings.max_fps or fps)
