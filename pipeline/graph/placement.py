"""Decides which stages share a process, and which cameras each process has.

    separate   every stage has its own: capture.front, capture.yard, prepare.0, prepare.1, infer.0
    compact    a stage joins the process of the stage that it reads from
    one        everything is one process

Stages of one `group` share a process in `separate` and `compact`. A stage can share if it reads, unnamed, from exactly
one stage of the group, has one thread and needs none of its own, and has the same `workers`. If it leaves `workers`
open, it takes those of the group, unless it is a sink, because several processes must not write one file.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from camgraph.pipeline.graph.arrows import Arrow
from camgraph.pipeline.graph.completion import Completed
from camgraph.pipeline.graph.nodes import EVENTS, OUTBOX, Camera, Node
from camgraph.pipeline.graph.report import Report, dotted
from camgraph.pipeline.plan import EVERY_CAMERA
from camgraph.pipeline.system.cores import usable_cores
from camgraph.pipeline.system.names import ascii_form


class Copies(NamedTuple):
    """The number of processes: at most `workers`, or as many as needed for `cameras` in each.

    `by_default`: the graph does not say it.
    """

    workers: int = 0
    cameras: int = 0
    by_default: bool = False

    def __str__(self) -> str:
        if self.cameras:
            return "a process per camera" if self.cameras == 1 else f"a process per {self.cameras} cameras"
        return f"{self.workers} workers"


ONE = Copies(workers=1)
_MOST_ALONE = 8
"""Up to this number of files, each has a process of its own."""


@dataclass(frozen=True)
class Group:
    """Stages that share their processes, in topological order. `shards`: process name -> its cameras."""

    name: str
    members: tuple[Node, ...]
    copies: Copies
    shards: Mapping[str, tuple[str, ...]]

    @cached_property
    def processes(self) -> Mapping[str, str]:
        """Camera -> the process that has it."""
        return {camera: process for process, cameras in self.shards.items() for camera in cameras}


@dataclass(slots=True)
class _Forming:
    """A group as it grows."""

    name: str
    label: str | None
    members: list[Node]
    copies: Copies


def place(completed: Completed, processes: str, cameras: Mapping[str, Camera]) -> tuple[Group, ...]:
    """The groups of a graph without problems, in topological order of their first stages."""
    together = together_by_default(cameras.values())
    if processes == "one":
        return (Group("all", completed.nodes, ONE, {"all.0": tuple(cameras)}),)
    forming: dict[str, _Forming] = {}
    groups: list[_Forming] = []
    senders_of: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for edge in completed.edges:
        senders_of[edge.reader].append((edge.sender, edge.port))
    for node in completed.nodes:
        senders = senders_of[node.name]
        home = forming.get(senders[0][0]) if senders else None
        wanted = processes == "compact" or node.entry.group is not None
        if home and wanted and home.label == node.entry.group and not obstacle(node, senders, home.copies):
            home.members.append(node)
        else:
            home = _Forming(node.entry.group or node.name, node.entry.group, [node], own_copies(node, together))
            groups.append(home)
        forming[node.name] = home
    return tuple(Group(one.name, tuple(one.members), one.copies, _shards(one, tuple(cameras))) for one in groups)


def together_by_default(cameras: Collection[Camera]) -> int:
    """How many cameras share a process of their source, if the graph does not say it.

    A live camera, or a file that stands for one, has a process of its own, which may die or hang alone. Many other
    files would gain nothing from as many processes: they share as many as there are cores.
    """
    if len(cameras) <= _MOST_ALONE or not all(camera.takes_turns for camera in cameras):
        return 1
    return math.ceil(len(cameras) / max(2, usable_cores()))


def own_copies(node: Node, together: int = 1) -> Copies:
    """How many processes a stage has by itself. ``together``: cameras that share one of a source by default."""
    if node.entry.workers:
        return Copies(workers=node.entry.workers)
    if node.source is None:
        return ONE
    if node.entry.cameras_per_process or node.entry.each:
        return Copies(cameras=node.entry.cameras_per_process or 1)
    return Copies(cameras=together, by_default=True)


def obstacle(node: Node, senders: Sequence[tuple[str, str]], copies: Copies) -> str:
    """Why a stage cannot share the process of the one that it reads from, "" if it can."""
    if node.name == OUTBOX or node.takes_events:
        return "a stage that takes Events has a process of its own"
    if len(senders) != 1:
        return f"it reads from {len(senders)} stages, and a member of a group reads from one"
    if senders[0][1]:
        return "it is a join"
    if node.threads > 1 or (node.stage and node.stage.own_thread):
        return "it has threads of its own, which only the first stage of a group can have"
    return _other_copies(node, copies)


def _other_copies(node: Node, copies: Copies) -> str:
    if node.entry.workers and Copies(workers=node.entry.workers) != copies:
        return f"it has {node.entry.workers} workers, and the group has {copies}"
    if not node.entry.workers and copies != ONE and not node.outputs:
        return f"it is a sink, and the group has {copies}"
    return ""


def _shards(group: _Forming, cameras: Sequence[str]) -> dict[str, tuple[str, ...]]:
    if group.members[0].takes_events and group.members[0].name != OUTBOX:
        # The outbox sends the events of all cameras in one partition.
        return {f"{group.name}.0": (EVERY_CAMERA,)}
    if group.copies.cameras == 1:
        return {f"{group.name}.{ascii_form(camera)}": (camera,) for camera in cameras}
    wanted = group.copies.workers or math.ceil(len(cameras) / group.copies.cameras)
    count = min(wanted, len(cameras))
    return {f"{group.name}.{index}": tuple(cameras[index::count]) for index in range(count)}


def check_groups(nodes: Mapping[str, Node], order: Iterable[str], arrows: Sequence[Arrow], report: Report) -> None:
    """Report stages that cannot share a process with the group that they name."""
    copies: dict[str, Copies] = {}
    members: dict[str, set[str]] = {}
    for name in order:
        node, label = nodes[name], nodes[name].entry.group
        if label is None:
            continue
        path = (*node.path, "group")
        if label == OUTBOX or (label in nodes and nodes[label].entry.group != label):
            text = f"{dotted(path)}: a stage outside of the group is called `{label}`: choose another name"
            report.add(path, text, error_id="name-taken")
        if label in members:
            why = _why_not(node, arrows, members[label], copies[label])
            if why:
                text = f"{dotted(path)}: {name} cannot share the process of {label}: {why}"
                report.add(path, text, error_id="setting-value")
        copies.setdefault(label, own_copies(node))
        members.setdefault(label, set()).add(name)


def _why_not(node: Node, arrows: Iterable[Arrow], members: set[str], copies: Copies) -> str:
    senders = [(arrow.sender, arrow.port) for arrow in arrows if arrow.reader == node.name]
    outside = [sender for sender, _ in senders if sender not in members and sender != EVENTS]
    why = obstacle(node, senders, copies)
    return why or (f"it reads from {outside[0]}, which is not in the group before it" if outside else "")
