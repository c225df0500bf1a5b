"""Turns a completed graph into the plan of a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from camgraph.pipeline.graph.completion import Completed
from camgraph.pipeline.graph.definition import GraphFile
from camgraph.pipeline.graph.depths import events_at_work, window_of
from camgraph.pipeline.graph.nodes import OUTBOX, Camera, Node
from camgraph.pipeline.graph.placement import Copies, Group
from camgraph.pipeline.graph.yaml_source import Source
from camgraph.pipeline.plan import EVERY_CAMERA, EdgePlan, GroupPlan, ProcessPlan, RunPlan, StagePlan, priorities_of
from camgraph.pipeline.system.child_environment import named
from camgraph.pipeline.system.redaction import is_called_secret


@dataclass(frozen=True)
class Graph:
    """A consistent graph: the file's content, and everything that follows from it. Holds passwords: never logged."""

    name: str
    file: GraphFile
    source: Source
    base_folder: Path
    cameras: Mapping[str, Camera]
    completed: Completed
    groups: tuple[Group, ...]
    path: str = ""
    """The file that it was read from, if it can be read again."""
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables: those that the file names have been put in already."""

    @property
    def in_process(self) -> bool:
        """True if no process is started."""
        return self.file.processes == "one"

    @cached_property
    def edges(self) -> tuple[EdgePlan, ...]:
        """All edges, those between stages of one process marked as inner."""
        homes = self.homes
        return tuple(replace(edge, inner=homes[edge.sender] is homes[edge.reader]) for edge in self.completed.edges)

    @cached_property
    def camera_settings(self) -> dict[str, Mapping[str, Any]]:
        """Camera -> plain values for the source's `camera_type`."""
        return {name: camera.values for name, camera in self.cameras.items()}

    @property
    def secrets(self) -> frozenset[str]:
        """Values to hide everywhere."""
        own = {name: value for node in self.completed.nodes for name, value in _environment(node, self).items()}
        return self.source.hidden | {value for name, value in own.items() if is_called_secret(name)}

    @cached_property
    def priorities(self) -> dict[str, int]:
        """Camera -> its weight, if that is not 1."""
        return priorities_of(self.cameras, self.camera_settings)

    @cached_property
    def homes(self) -> Mapping[str, Group]:
        """Stage -> its group."""
        return {node.name: group for group in self.groups for node in group.members}

    @cached_property
    def edges_at(self) -> Mapping[str, Sequence[int]]:
        """Stage -> which of the edges touch it."""
        touching: dict[str, list[int]] = defaultdict(list)
        for index, edge in enumerate(self.edges):
            touching[edge.sender].append(index)
            touching[edge.reader].append(index)
        return touching

    @cached_property
    def window(self) -> int:
        """Frames of one camera that may be on their way at once."""
        return window_of(self.completed.nodes, len(self.cameras))


def plan_of(graph: Graph) -> RunPlan:
    """The plan of a run of this graph."""
    return RunPlan(
        graph=graph.name,
        base_folder=str(graph.base_folder),
        processes=tuple(process for group in graph.groups for process in processes_of(group, graph)),
        camera_settings=graph.camera_settings,
        event_filters=graph.completed.event_filters,
        ordered_sinks=graph.completed.ordered_sinks,
        live_cameras=tuple(name for name, camera in graph.cameras.items() if camera.live),
        groups=tuple(_group(group) for group in graph.groups),
        in_process=graph.in_process,
        hang_s=graph.file.hang_s,
        open_s=graph.file.open_s,
        drain_s=graph.file.drain_s,
        file=graph.path,
        camera_defaults=graph.file.camera_defaults or {},
        secrets=tuple(sorted(graph.secrets)),
        tracing=graph.file.tracing.model_dump() if graph.file.tracing else None,
        readable_by=graph.file.readable_by,
    )


def _group(group: Group) -> GroupPlan:
    every = (EVERY_CAMERA,) in group.shards.values()
    copies = Copies() if every else group.copies
    return GroupPlan(group.name, tuple(group.shards), copies.workers, copies.cameras, copies.by_default)


def processes_of(group: Group, graph: Graph) -> Iterator[ProcessPlan]:
    """The processes of one group."""
    touching = sorted({index for node in group.members for index in graph.edges_at.get(node.name, ())})
    edges = tuple(graph.edges[index] for index in touching)
    stages = tuple(_stage(node, graph) for node in group.members)
    for name in group.shards:
        yield _process(name, group, stages, edges, graph)


def _process(
    name: str, group: Group, stages: tuple[StagePlan, ...], touching: tuple[EdgePlan, ...], graph: Graph
) -> ProcessPlan:
    own = {stage.name for stage in stages}
    cameras, homes = group.shards[name], graph.homes
    return ProcessPlan(
        name=name,
        stages=stages,
        cameras=cameras,
        window=max(graph.window, *map(events_at_work, group.members)) if cameras == (EVERY_CAMERA,) else graph.window,
        edges=touching,
        routes={
            edge.name: _routes(edge, cameras, homes[edge.reader])
            for edge in touching
            if edge.sender in own and not edge.inner
        },
        sources=tuple(node.name for node in group.members if node.source),
        senders={
            edge.name: tuple(homes[edge.sender].shards) for edge in touching if edge.reader in own and not edge.inner
        },
        priorities={camera: graph.priorities[camera] for camera in cameras if camera in graph.priorities},
        live=any(graph.cameras[camera].live for camera in cameras if camera in graph.cameras),
        run_cameras=tuple(graph.camera_settings) if cameras == (EVERY_CAMERA,) else (),
    )


def _routes(edge: EdgePlan, cameras: Sequence[str], reader: Group) -> dict[str, str]:
    leaving = (EVERY_CAMERA,) if edge.sender == OUTBOX else cameras
    return {camera: reader.processes[camera] for camera in leaving}


def _stage(node: Node, graph: Graph) -> StagePlan:
    batch = node.entry.batch
    return StagePlan(
        name=node.name,
        use=node.entry.use,
        settings=node.entry.with_ or {},
        batch_max=batch.max if batch else 1,
        wait_ms=batch.wait_ms if batch else 0.0,
        threads=node.threads,
        workers=node.entry.workers or 1,
        large_messages=node.stage.large_messages(node.settings) if node.stage else 1,
        environment=_environment(node, graph),
        awaited=node.stage.awaited if node.stage else True,
        follows_cameras=node.stage.follows_cameras if node.stage else False,
    )


def _environment(node: Node, graph: Graph) -> dict[str, str]:
    kind = node.stage or node.source
    asked = kind.environment(node.settings) if kind else ()
    return named([*graph.file.pass_environment, *asked], graph.environ)
