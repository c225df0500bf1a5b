"""Completes a checked graph: adds the outbox, and gives each edge its policy, its depth, and its tombstones.

policy       an edge that carries Events blocks. Others block if all cameras are files, and drop the oldest
             if all are live. If both kinds share the source, the file must give the policy.
tombstones   report a frame without output: on all ways to a join, and to the outbox if a sink
             wants its events in order of time.
outbox       all Events go through this one stage, between their producers and their readers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from camgraph.pipeline.graph.arrows import Arrow
from camgraph.pipeline.graph.definition import StageEntry
from camgraph.pipeline.graph.depths import (
    DEPTH_TO_SINK,
    cameras_of_worker,
    depth_of,
    events_at_work,
    frames_at_work,
    lags_of,
    window_of,
)
from camgraph.pipeline.graph.nodes import EVENTS, OUTBOX, Camera, Node
from camgraph.pipeline.graph.report import Report, dotted
from camgraph.pipeline.graph.structure import order_of
from camgraph.pipeline.messages import Event
from camgraph.pipeline.plan import EdgePlan, Policy
from camgraph.pipeline.registry import find_stage
from camgraph.pipeline.system.paths import state_folder


@dataclass(frozen=True, slots=True)
class Completed:
    """The stages in topological order, the outbox among them, and the edges between them, none of them inner yet."""

    nodes: tuple[Node, ...]
    edges: tuple[EdgePlan, ...]
    event_filters: Mapping[str, tuple[str, ...]]
    ordered_sinks: tuple[str, ...]


def complete(
    nodes: Mapping[str, Node],
    arrows: Sequence[Arrow],
    cameras: Mapping[str, Camera],
    outbox: str,
    outbox_settings: Mapping[str, Any] = MappingProxyType({}),
) -> Completed:
    """Complete a graph without problems. `outbox`: the name of its folder."""
    filters = _event_filters(nodes, arrows)
    ordered = tuple(name for name in filters if nodes[name].wants_order_of_time)
    everything = dict(nodes)
    if filters:
        makers = [name for name, node in nodes.items() if node.makes_events]
        emitters = tuple(name for name in filters if nodes[name].emits)
        place = {"path": str(state_folder(outbox) / "outbox.sqlite"), **outbox_settings}
        live = any(camera.live for camera in cameras.values())
        everything[OUTBOX] = _outbox({**place, "live": live}, makers, filters, ordered, emitters)
    arrows = _through_outbox(nodes, arrows, filters)
    order = order_of(everything, arrows)
    tombstoned = _with_tombstones(order, arrows, {OUTBOX} if ordered else set())
    return Completed(
        tuple(everything[name] for name in order),
        _edges(everything, order, arrows, cameras, tombstoned),
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


def _outbox(
    settings: Mapping[str, Any],
    makers: Sequence[str],
    filters: Mapping[str, tuple[str, ...]],
    ordered: Sequence[str],
    emitters: Sequence[str],
) -> Node:
    values: dict[str, Any] = {
        **settings,
        "producers": list(makers),
        "sinks": {sink: list(producers) for sink, producers in filters.items()},
        "ordered": list(ordered),
        "emitters": list(emitters),
    }
    return Node(OUTBOX, StageEntry.model_validate({"use": OUTBOX, "with": values}), find_stage(OUTBOX))


def _through_outbox(nodes: Mapping[str, Node], arrows: Sequence[Arrow], filters: Mapping[str, Any]) -> list[Arrow]:
    """Events go from all that make them to the outbox, and from there to each event sink."""
    kept = [arrow for arrow in arrows if arrow.reader not in filters]
    if not filters:
        return kept
    makers = [name for name, node in nodes.items() if node.makes_events]
    depths = {arrow.reader: arrow.depth for arrow in arrows if arrow.depth}
    into = [Arrow(name, OUTBOX, "", (), type=Event.TYPE) for name in makers]
    usual = {sink: max(DEPTH_TO_SINK, events_at_work(nodes[sink]) + 1) for sink in filters}
    out = [Arrow(OUTBOX, sink, "", (), depth=depths.get(sink, usual[sink]), type=Event.TYPE) for sink in filters]
    return [*kept, *into, *out]


# ---- edges


def check_mixed(nodes: Mapping[str, Node], arrows: Iterable[Arrow], cameras: Iterable[Camera], report: Report) -> None:
    """Files never lose a frame and live cameras never wait. If both share an edge, the user must choose."""
    everyone = list(cameras)
    live = [camera.name for camera in everyone if camera.live]
    files = [camera.name for camera in everyone if not camera.live]
    if not (live and files):
        return
    for arrow in arrows:
        if arrow.sender != EVENTS and nodes[arrow.sender].source and arrow.policy is None:
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
    tombstoned: set[str],
) -> tuple[EdgePlan, ...]:
    live = bool(cameras) and all(camera.live for camera in cameras.values())
    lags = lags_of(nodes, order, arrows, len(cameras))
    window = window_of(nodes.values(), len(cameras))
    places = {name: place for place, name in enumerate(order)}
    longest: dict[str, int] = {}
    for arrow in arrows:
        longest[arrow.reader] = max(longest.get(arrow.reader, 0), lags[arrow.sender])
    edges = []
    for arrow in sorted(arrows, key=lambda arrow: (places[arrow.sender], places[arrow.reader])):
        reader = nodes[arrow.reader]
        policy = _policy(arrow, live)
        at_work = frames_at_work(reader, cameras_of_worker(reader, len(cameras)))
        behind = longest[arrow.reader] - lags[arrow.sender]
        depth = depth_of(arrow, policy, at_work=at_work, window=window, behind=behind)
        tombstones = arrow.reader in tombstoned
        edges.append(EdgePlan(arrow.sender, arrow.reader, arrow.port, arrow.type, policy, depth, tombstones))
    return tuple(edges)


def _policy(arrow: Arrow, live: bool) -> Policy:
    if arrow.type == Event.TYPE:
        return "block"
    return arrow.policy or ("drop_oldest" if live else "block")


def _with_tombstones(order: Sequence[str], arrows: Sequence[Arrow], ends: set[str]) -> set[str]:
    """Return the stages that need a message or a tombstone for every frame.

    They are joins, merges, these `ends`, and all stages on the way to one of them.
    """
    inputs = Counter(arrow.reader for arrow in arrows)
    merges = {arrow.reader for arrow in arrows if arrow.type != Event.TYPE and inputs[arrow.reader] > 1}
    readers: dict[str, list[str]] = defaultdict(list)
    for arrow in arrows:
        readers[arrow.sender].append(arrow.reader)
    tombstoned = {arrow.reader for arrow in arrows if arrow.port} | merges | ends
    for name in reversed(order):
        if not tombstoned.isdisjoint(readers[name]):
            tombstoned.add(name)
    return tombstoned
