"""Completes a checked graph: the outbox, and of every edge its policy, its depth, and whether it tells of all frames.

policy   an edge that carries Events blocks. Others block where all cameras are files, and drop the oldest where
         all are live. Where both kinds share the source, its edges must say it themselves.
depth    4 where an edge blocks, 1 where it drops. A port of a join is as much deeper as the longest way that
         leads to the join, counted in the frames that the stages on it hold, is longer than its own.
outbox   where Events are made and read, all of them go through one stage between the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from pipeline.graph.arrows import EVENTS, Arrow
from pipeline.graph.definition import StageEntry
from pipeline.graph.nodes import Camera, Node
from pipeline.graph.report import Report, dotted
from pipeline.graph.structure import OUTBOX, order_of
from pipeline.messages import Event
from pipeline.paths import state_folder
from pipeline.plan import EdgePlan, Policy
from pipeline.registry import find_stage

DEPTH_BLOCK = 4
DEPTH_DROP = 1
MIN_WINDOW = 4
DEPTH_EVENTS = 64
"""From the outbox to a sink: one queue for the events of all cameras."""


@dataclass(frozen=True, slots=True)
class Completed:
    """The stages in topological order, the outbox among them, and the edges between them, none of them inner yet."""

    nodes: tuple[Node, ...]
    edges: tuple[EdgePlan, ...]
    event_filters: Mapping[str, tuple[str, ...]]
    ordered_sinks: tuple[str, ...]


def complete(nodes: Mapping[str, Node], arrows: Sequence[Arrow], cameras: Mapping[str, Camera], run: str) -> Completed:
    """Complete a graph without problems. `run` names the folder of the outbox."""
    filters = _event_filters(nodes, arrows)
    ordered = tuple(name for name in filters if getattr(nodes[name].settings, "order", None) == "time")
    everything = dict(nodes)
    if filters:
        everything[OUTBOX] = _outbox(run, filters, ordered)
    arrows = _through_outbox(nodes, arrows, filters)
    order = order_of(everything, arrows)
    return Completed(
        tuple(everything[name] for name in order),
        _edges(everything, order, arrows, cameras, ordered),
        filters,
        ordered,
    )


# ---- the outbox


def _event_filters(nodes: Mapping[str, Node], arrows: Iterable[Arrow]) -> dict[str, tuple[str, ...]]:
    """Event sink -> the stages whose events it wants; () for all."""
    wanted: dict[str, tuple[str, ...]] = {name: () for name, node in nodes.items() if node.takes_events}
    for arrow in arrows:
        if arrow.reader in wanted and arrow.sender != EVENTS:
            wanted[arrow.reader] += (arrow.sender,)
    return wanted


def _outbox(run: str, filters: Mapping[str, tuple[str, ...]], ordered: Sequence[str]) -> Node:
    values: dict[str, Any] = {
        "path": str(state_folder(run) / "outbox.sqlite"),
        "sinks": {sink: list(producers) for sink, producers in filters.items()},
        "ordered": list(ordered),
    }
    return Node(OUTBOX, StageEntry.model_validate({"use": OUTBOX, "with": values}), find_stage(OUTBOX))


def _through_outbox(nodes: Mapping[str, Node], arrows: Iterable[Arrow], filters: Mapping[str, Any]) -> list[Arrow]:
    """Events go from all that make them to the outbox, and from there to each event sink."""
    kept = [arrow for arrow in arrows if arrow.reader not in filters]
    if not filters:
        return kept
    makers = [name for name, node in nodes.items() if node.makes_events]
    depths = {arrow.reader: arrow.depth for arrow in arrows if arrow.depth}
    into = [Arrow(name, OUTBOX, "", (), type=Event.TYPE) for name in makers]
    out = [Arrow(OUTBOX, sink, "", (), depth=depths.get(sink, DEPTH_EVENTS), type=Event.TYPE) for sink in filters]
    return [*kept, *into, *out]


# ---- edges


def check_mixed(nodes: Mapping[str, Node], arrows: Iterable[Arrow], cameras: Iterable[Camera], report: Report) -> None:
    """Files never lose a frame and live cameras never wait: where both share an edge, somebody must say which it is."""
    live = [camera.name for camera in cameras if camera.live]
    files = [camera.name for camera in cameras if not camera.live]
    if not (live and files):
        return
    for arrow in arrows:
        if nodes[arrow.sender].source and arrow.policy is None:
            text = (
                f"live cameras ({_few(live)}) and files ({_few(files)}) share this edge: use two graphs, or write "
                f"{{stage: {arrow.sender}, policy: block}} (live frames may grow old) "
                "or `policy: drop_oldest` (frames of files may be lost)"
            )
            report.add(arrow.path, f"{dotted(arrow.path)}: {text}")


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _edges(
    nodes: Mapping[str, Node],
    order: Sequence[str],
    arrows: Sequence[Arrow],
    cameras: Mapping[str, Camera],
    ordered: Sequence[str],
) -> tuple[EdgePlan, ...]:
    live = bool(cameras) and all(camera.live for camera in cameras.values())
    lags = _lags(nodes, order, arrows, len(cameras))
    told = _told_of_all(order, arrows, {OUTBOX} if ordered else set())
    return tuple(
        EdgePlan(
            sender=arrow.sender,
            reader=arrow.reader,
            port=arrow.port,
            type=arrow.type,
            policy=_policy(arrow, live),
            depth=arrow.depth or _depth(arrow, arrows, _policy(arrow, live), lags),
            tombstones=arrow.reader in told,
        )
        for arrow in sorted(arrows, key=lambda arrow: (order.index(arrow.sender), order.index(arrow.reader)))
    )


def _policy(arrow: Arrow, live: bool) -> Policy:
    if arrow.type == Event.TYPE:
        return "block"
    return arrow.policy or ("drop_oldest" if live else "block")


def _depth(arrow: Arrow, arrows: Iterable[Arrow], policy: Policy, lags: Mapping[str, int]) -> int:
    base = DEPTH_BLOCK if policy == "block" else DEPTH_DROP
    longest = max(lags[other.sender] for other in arrows if other.reader == arrow.reader)
    return base + (longest - lags[arrow.sender] if arrow.port else 0)


def _lags(nodes: Mapping[str, Node], order: Iterable[str], arrows: Sequence[Arrow], cameras: int) -> dict[str, int]:
    """Stage -> how many frames of one camera the stages on the longest way from the source to its output hold."""
    lags: dict[str, int] = {}
    for name in order:
        before = max((lags[arrow.sender] for arrow in arrows if arrow.reader == name), default=0)
        lags[name] = before + _held_by(nodes[name], cameras)
    return lags


def _held_by(node: Node, cameras: int) -> int:
    return 0 if node.source else frames_held(node, max(1, cameras // (node.entry.workers or 1)))


def frames_held(node: Node, cameras_of_worker: int) -> int:
    """How many frames of one camera a stage holds while it is kept busy: what runs, what is gathered, and two more.

    ceil((threads + 1) x batch.max / cameras of one worker) + 2.
    """
    batch = node.entry.batch.max if node.entry.batch else 1
    return ceil((node.entry.threads + 1) * batch / cameras_of_worker) + 2


def _told_of_all(order: Sequence[str], arrows: Sequence[Arrow], ends: set[str]) -> set[str]:
    """The stages that must hear of every frame: joins, these `ends`, and all that leads to one of them."""
    told = {arrow.reader for arrow in arrows if arrow.port} | ends
    for name in reversed(order):
        if any(arrow.reader in told for arrow in arrows if arrow.sender == name):
            told.add(name)
    return told


def window_of(stage: str, completed: Completed, cameras_of_worker: Mapping[str, int]) -> int:
    """How many frames of one camera may be in the hands of a stage and of those behind it.

    The most that this stage or one behind it holds, at least 4, and never less than the deepest of its own edges.
    """
    behind = {stage}
    for edge in completed.edges:
        if edge.sender in behind:
            behind.add(edge.reader)
    held = [
        frames_held(node, max(1, cameras_of_worker[node.name]))
        for node in completed.nodes
        if node.name in behind and not node.source
    ]
    depths = [edge.depth for edge in completed.edges if edge.sender == stage != OUTBOX]
    return max([MIN_WINDOW, *held, *depths])
