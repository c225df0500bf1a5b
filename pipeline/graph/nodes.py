"""The stages and cameras of a graph, each with its class and its validated settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

from camgraph.pipeline.errors import CamgraphError, GraphError, SettingError, id_of
from camgraph.pipeline.graph.definition import UNKNOWN_USE, GraphFile, StageEntry
from camgraph.pipeline.graph.reading import validated
from camgraph.pipeline.graph.report import Report, dotted
from camgraph.pipeline.graph.yaml_reader import Path
from camgraph.pipeline.messages import Event, Message
from camgraph.pipeline.registry import AnyStage, find_stage
from camgraph.pipeline.stage import FrameSize, Source, Stage
from camgraph.pipeline.system.names import ascii_form, is_camera_name

EVENTS = "events"
"""Under `from`, this name stands for all stages that make events."""

OUTBOX = "outbox"
"""The name of the stage that is inserted between the stages that make events and the event sinks."""

RESERVED = {
    EVENTS: "it means all stages that make events",
    OUTBOX: "camgraph adds the outbox to every graph with events",
}

SettingProblems = Iterable[tuple[tuple[str | int, ...], str]]
"""(path of a key, text) of each wrong setting."""


@dataclass(frozen=True, slots=True)
class Node:
    """One stage of the graph. `kind`: the class; None if no class was found, which has been reported."""

    name: str
    entry: StageEntry
    kind: AnyStage | None
    settings: Any = None

    @property
    def path(self) -> Path:
        """The stage's place in the file."""
        return ("stages", self.name)

    @property
    def source(self) -> type[Source[Any]] | None:
        """The stage's class, if the stage is a source; else None."""
        return self.kind if self.kind is not None and issubclass(self.kind, Source) else None

    @property
    def stage(self) -> type[Stage[Any]] | None:
        """The stage's class, if the stage is no source; else None."""
        return self.kind if self.kind is not None and issubclass(self.kind, Stage) else None

    @property
    def ports(self) -> Mapping[str, type[Message]]:
        """Port -> message type; "" is the port of a stage with one unnamed input."""
        if self.stage is None:
            return {}
        inputs = self.stage.inputs
        return {"": inputs} if isinstance(inputs, type) else inputs

    @property
    def outputs(self) -> tuple[type[Message], ...]:
        """The message types that the stage makes."""
        return self.kind.outputs if self.kind else ()

    @property
    def threads(self) -> int:
        """The number of threads in each process: the file's number, else the stage's."""
        if "threads" in self.entry.model_fields_set or self.stage is None or self.settings is None:
            return self.entry.threads
        return self.stage.usual_threads(self.settings, self.entry.workers or 1)

    @property
    def wants_order_of_time(self) -> bool:
        """True for an event sink that gets the events of all cameras in the order of their time."""
        return self.stage is not None and self.stage.ordered_by_time(self.settings)

    @property
    def takes_events(self) -> bool:
        """True for event sinks. An event sink reads from the outbox, whichever stages are named under `from`."""
        wanted = self.ports.get("")
        return wanted is not None and issubclass(wanted, Event)

    @property
    def emits(self) -> bool:
        """True for an event sink that gives events of its own to the outbox."""
        return self.stage is not None and self.stage.emits and self.takes_events

    @property
    def makes_events(self) -> bool:
        """True if the stage's outputs go to the outbox."""
        return any(issubclass(made, Event) for made in self.outputs)


@dataclass(frozen=True, slots=True)
class Camera:
    """One camera: `values` as the graph gives them (defaults included), `settings` as the source understands them."""

    name: str
    values: Mapping[str, Any] = field(repr=False)
    settings: Any = field(repr=False)
    live: bool
    slot_bytes: int | None
    frame_size: FrameSize | None = None
    takes_turns: bool = False


def find_nodes(graph: GraphFile, base_folder: FilePath, report: Report) -> dict[str, Node]:
    """All stages, by name, in the order of the file. Unknown stages and mistakes in settings are reported."""
    return {name: _node(name, entry, base_folder, report) for name, entry in graph.stages.items()}


def _node(name: str, entry: StageEntry, base_folder: FilePath, report: Report) -> Node:
    path: Path = ("stages", name)
    if entry.use == UNKNOWN_USE:
        return Node(name, entry, None)
    if entry.use == OUTBOX:
        text = f"{dotted(path)}.use: {RESERVED[OUTBOX]}: remove this stage"
        report.add((*path, "use"), text, error_id="name-not-allowed")
        return Node(name, entry, None)
    try:
        kind = find_stage(entry.use)
    except CamgraphError as error:
        report.add((*path, "use"), f"{dotted(path)}.use: {error}", error_id=error.error_id)
        return Node(name, entry, None)
    settings = _settings(kind, entry, path, report)
    if settings is not None:
        _check(lambda: kind.check(settings, base_folder), (*path, "with"), report, lambda rest: (*path, "with", *rest))
    return Node(name, entry, kind, settings)


def _settings(kind: AnyStage, entry: StageEntry, path: Path, report: Report) -> Any:
    if report.covers((*path, "with")):
        return None

    def origin(rest: Path) -> Path:
        return (*path, "with", *rest) if rest or "with" in report.source.mapping(*path) else path

    return validated(kind.settings_type, entry.with_ or {}, report, origin)


def _check(check: Callable[[], SettingProblems], around: Path, report: Report, origin: Callable[[Path], Path]) -> None:
    """Run a stage's own check, which may read files, and report the problems that the check finds."""
    try:
        for rest, text in check():
            path = origin(rest)
            if not report.covers(path):
                report.add(path, f"{dotted(path)}: {text}", error_id=id_of(text))
    except GraphError as error:
        # A file that the graph names, with places of its own.
        report.take(error.problems)
    except CamgraphError as error:
        path = origin(error.path) if isinstance(error, SettingError) else around
        report.add(path, f"{dotted(path)}: {error}", error_id=id_of(error))


# ---- cameras


def find_cameras(
    graph: GraphFile, source: type[Source[Any]], base_folder: FilePath, report: Report
) -> dict[str, Camera]:
    """All cameras, by name, in the order of the file. Mistakes in settings of cameras are reported."""
    cameras: dict[str, Camera] = {}
    for name, own in graph.cameras.items():
        camera = find_camera(name, {**(graph.camera_defaults or {}), **(own or {})}, source, base_folder, report)
        if camera:
            cameras[name] = camera
    return cameras


def check_forms(names: Iterable[str], report: Report) -> None:
    """Report each camera with the ASCII form of an earlier camera: the two would share paths and addresses."""
    owners: dict[str, str] = {}
    for name in names:
        form = ascii_form(name)
        owner = owners.setdefault(form, name)
        if owner != name and is_camera_name(name):
            text = f"`{name}` and `{owner}` have the same ASCII form `{form}`, for paths and addresses: rename one"
            report.add(("cameras", name), f"cameras: {text}", at_key=True, error_id="name-taken")


def find_camera(
    name: str, values: dict[str, Any], source: type[Source[Any]], base_folder: FilePath, report: Report
) -> Camera | None:
    """One camera with the settings `values`; None if a setting is wrong, which is reported."""
    path: Path = ("cameras", name)
    own = report.source.mapping(*path)

    def origin(rest: Path) -> Path:
        from_default = rest and rest[0] not in own and rest[0] in values
        return ("camera_defaults", *rest) if from_default else (*path, *rest)

    settings = validated(source.camera_type, values, report, origin)
    if settings is None:
        return None
    _check(lambda: source.check_camera(settings, base_folder), path, report, origin)
    if report.strict:
        _check(lambda: source.unreadable(settings, base_folder), path, report, origin)
    try:
        slot_bytes, size = source.slot_bytes(settings, base_folder), source.frame_size(settings, base_folder)
    except CamgraphError:
        # `check_camera` reports problems; these are estimates.
        slot_bytes = size = None
    return Camera(name, values, settings, source.is_live(settings), slot_bytes, size, source.takes_turns(settings))


def check_cameras_of_stages(
    nodes: Iterable[Node], cameras: Mapping[str, FrameSize | None], base_folder: FilePath, report: Report
) -> None:
    """Report settings of stages that name missing cameras, or that do not fit the stage's cameras."""
    for node in nodes:
        if node.stage is not None and node.settings is not None:
            _ask_of_cameras(node, node.stage, cameras, base_folder, report)


def _ask_of_cameras(
    node: Node,
    stage: type[Stage[Any]],
    cameras: Mapping[str, FrameSize | None],
    base_folder: FilePath,
    report: Report,
) -> None:
    path = (*node.path, "with")
    _check(lambda: stage.check_cameras(node.settings, base_folder, cameras), path, report, lambda rest: (*path, *rest))
