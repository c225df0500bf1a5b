"""Turns a completed graph into the plan of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pipeline.graph.completion import Completed
from pipeline.graph.definition import GraphFile
from pipeline.graph.depths import window_of
from pipeline.graph.nodes import OUTBOX, Camera, Node
from pipeline.graph.placement import Copies, Group
from pipeline.graph.yaml_source import Source
from pipeline.outbox import EVERY_CAMERA
from pipeline.plan import EdgePlan, GroupPlan, RunPlan, StagePlan, UnitPlan, priorities_of


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph that holds together: what the file says, and what follows from it. Holds passwords: never logged."""

    name: str
    file: GraphFile
    source: Source
    base_folder: Path
    cameras: Mapping[str, Camera]
    completed: Completed
    groups: tuple[Group, ...]
    path: str = ""
    """The file that it was read from, where it can be read again."""

    @property
    def in_process(self) -> bool:
        """True where no process is started."""
        return self.file.processes == "one"

    @property
    def edges(self) -> tuple[EdgePlan, ...]:
        """All edges, those between stages of one process marked as inner."""
        home = {node.name: group.name for group in self.groups for node in group.members}
        return tuple(replace(edge, inner=home[edge.sender] == home[edge.reader]) for edge in self.completed.edges)

    @property
    def camera_settings(self) -> dict[str, Mapping[str, Any]]:
        """Camera -> plain values for the source's `camera_type`."""
        return {name: camera.values for name, camera in self.cameras.items()}

    @property
    def window(self) -> int:
        """Frames of one camera that may be on their way at once."""
        return window_of(self.completed.nodes, len(self.cameras))


def plan_of(graph: Graph) -> RunPlan:
    """The plan of a run of this graph."""
    homes = {node.name: group for group in graph.groups for node in group.members}
    return RunPlan(
        graph=graph.name,
        base_folder=str(graph.base_folder),
        units=tuple(_unit(unit, group, graph.edges, homes, graph) for group in graph.groups for unit in group.shards),
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
    )


def _group(group: Group) -> GroupPlan:
    every = (EVERY_CAMERA,) in group.shards.values()
    copies = Copies() if every else group.copies
    return GroupPlan(group.name, tuple(group.shards), copies.workers, copies.cameras)


def _unit(name: str, group: Group, edges: Sequence[EdgePlan], homes: Mapping[str, Group], graph: Graph) -> UnitPlan:
    own = {node.name for node in group.members}
    touching = tuple(edge for edge in edges if edge.sender in own or edge.reader in own)
    cameras = group.shards[name]
    return UnitPlan(
        name=name,
        stages=tuple(_stage(node) for node in group.members),
        cameras=cameras,
        window=graph.window,
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
        priorities=priorities_of(cameras, graph.camera_settings),
    )


def _routes(edge: EdgePlan, cameras: Sequence[str], reader: Group) -> dict[str, str]:
    leaving = (EVERY_CAMERA,) if edge.sender == OUTBOX else cameras
    return {camera: reader.unit_of(camera) for camera in leaving}


def _stage(node: Node) -> StagePlan:
    batch = node.entry.batch
    return StagePlan(
        name=node.name,
        use=node.entry.use,
        settings=node.entry.with_ or {},
        batch_max=batch.max if batch else 1,
        wait_ms=batch.wait_ms if batch else 0.0,
        threads=node.threads,
        large_messages=node.stage.large_messages(node.settings) if node.stage else 1,
    )
