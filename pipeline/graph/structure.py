"""Checks the graph as a whole: one source, no loops, nothing unread, and settings that fit their stage."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from camgraph.pipeline.errors import MOST_REPORTED
from camgraph.pipeline.graph.arrows import Arrow, arrows_of, check_from, check_type
from camgraph.pipeline.graph.definition import StageEntry
from camgraph.pipeline.graph.nodes import EVENTS, OUTBOX, RESERVED, Node
from camgraph.pipeline.graph.report import Report, dotted
from camgraph.pipeline.messages import Event
from camgraph.pipeline.system.spelling import nearest


def check_structure(nodes: Mapping[str, Node], report: Report) -> list[Arrow]:
    """Report all mistakes between stages, and return the correct arrows with their types."""
    torn = _torn(report)
    for node in nodes.values():
        _check_node(node, report)
        if node.stage and node.entry.from_ is None and node.name not in torn:
            _miss_from(node, report)
    written = report.source.mapping("stages")
    known = [arrow for node in nodes.values() for arrow in check_from(node, nodes, written, report)]
    arrows = [typed for arrow in known for typed in _typed(arrow, nodes, report)]
    _check_loops([arrow for arrow in known if not report.covers(arrow.path)], nodes, report)
    _check_events(nodes, arrows, report)
    _check_sources(nodes, report)
    if not torn:
        _check_read(nodes, arrows, report)
    return arrows


def order_of(names: Iterable[str], arrows: Iterable[Arrow]) -> list[str]:
    """Sort the names so that each follows its senders; otherwise keep their order. Raises CycleError on a loop."""
    places = {name: place for place, name in enumerate(names)}
    sorter: TopologicalSorter[str] = TopologicalSorter({name: [] for name in places})
    for arrow in arrows:
        if arrow.sender in places:
            sorter.add(arrow.reader, arrow.sender)
    sorter.prepare()
    named = list(places)
    order: list[str] = []
    ready: list[int] = []
    while sorter.is_active():
        for name in sorter.get_ready():
            heapq.heappush(ready, places[name])
        order.append(named[heapq.heappop(ready)])
        sorter.done(order[-1])
    return order


# ---- one stage


def _check_node(node: Node, report: Report) -> None:
    if node.name in RESERVED and node.entry.use != OUTBOX:
        text = f"a stage cannot be called `{node.name}`: {RESERVED[node.name]}"
        report.add(node.path, text, at_key=True, error_id="name-not-allowed")
    if node.source:
        _check_source(node, report)
    elif node.stage:
        _check_stage(node, report)


def _check_source(node: Node, report: Report) -> None:
    def refuse(key: str, why: str) -> None:
        text = f"{dotted(node.path)}.{key}: {node.name} is a source: {why}"
        report.add((*node.path, key), text, at_key=True, error_id="setting-value")

    if node.entry.threads != 1:
        refuse("threads", "every camera has a thread already; remove `threads`")
    if node.entry.batch:
        refuse("batch", "it makes one message at a time; remove `batch`")
    if node.entry.each and node.entry.workers:
        refuse("workers", "with `each: cameras` it has a process per camera; remove one of the two")
    elif node.entry.cameras_per_process and (node.entry.each or node.entry.workers):
        other = "each" if node.entry.each else "workers"
        refuse(
            "cameras_per_process",
            f"with `{other}` its cameras are distributed already; remove one of the two",
        )


def _check_stage(node: Node, report: Report) -> None:
    assert node.stage is not None
    name = dotted(node.path)
    if node.entry.each:
        text = f"{name}.each: only a source has a copy per camera; `workers: N` deals the cameras among N processes"
        report.add((*node.path, "each"), text, at_key=True, error_id="setting-value")
    if node.entry.cameras_per_process:
        text = f"{name}.cameras_per_process: is for sources; `workers: N` deals the cameras among N processes"
        report.add((*node.path, "cameras_per_process"), text, at_key=True, error_id="setting-value")
    if node.entry.threads > 1 and not node.stage.thread_safe:
        text = f"{name}.threads: {node.entry.use} is not safe in several threads: expected 1; use `workers` instead"
        report.add((*node.path, "threads"), text, error_id="setting-value")
    least = node.stage.least_workers(node.settings) if node.settings is not None else 1
    if (node.entry.workers or 1) < least:
        text = f"{name}.workers: its settings are for {least} processes, got {node.entry.workers or 1}: write {least}"
        report.add((*node.path, "workers"), text, error_id="setting-value")
    if node.entry.batch and node.entry.batch.wait_ms and node.entry.batch.max == 1:
        text = f"{name}.batch.wait_ms: nothing waits for a batch of one: set `max` to 2 or more, or remove `wait_ms`"
        report.add((*node.path, "batch", "wait_ms"), text, error_id="setting-value")
    if node.takes_events and (node.entry.workers or 1) > 1:
        text = f"{name}.workers: an event sink takes all cameras' events in one line: expected 1"
        report.add((*node.path, "workers"), text, error_id="setting-value")
    if node.takes_events and node.makes_events:
        text = f"{name}.use: {node.entry.use} takes Events and makes Events, which would go round for ever"
        report.add((*node.path, "use"), text, error_id="stage-broken")
    if any(issubclass(wanted, Event) for port, wanted in node.ports.items() if port):
        text = f"{name}.use: {node.entry.use} joins Events, which are not one a frame"
        report.add((*node.path, "use"), text, error_id="stage-broken")


def _miss_from(node: Node, report: Report) -> None:
    wanted = " and ".join(kind.__name__ for kind in node.ports.values())
    report.add(
        node.path,
        f"{dotted(node.path)}: `from` is missing: where does it get its {wanted}?",
        at_key=True,
        about=(*node.path, "from"),
        error_id="setting-missing",
    )


def _check_sources(nodes: Mapping[str, Node], report: Report) -> None:
    sources = [node for node in nodes.values() if node.source]
    for other in sources[1:]:
        text = f"{dotted(other.path)}: {sources[0].name} is the source already, and a graph has one: remove this stage"
        report.add(other.path, text, at_key=True, about=(*other.path, "use"))
    understood = nodes.keys() == report.source.mapping("stages").keys() and all(node.kind for node in nodes.values())
    if not sources and understood and not report.covers(("stages",)):
        report.add(("stages",), "no stage is a source: expected one such as `capture: {use: capture}`", at_key=True)


# ---- between stages


def _check_loops(arrows: Sequence[Arrow], nodes: Mapping[str, Node], report: Report) -> None:
    left = [arrow for arrow in arrows if arrow.sender != EVENTS]
    while left and not report.is_full:
        try:
            order_of(nodes, left)
        except CycleError as error:
            ring: list[str] = error.args[1]
            steps = set(pairwise(ring))
            cut = min((arrow for arrow in left if (arrow.sender, arrow.reader) in steps), key=lambda arrow: arrow.path)
            start = ring.index(cut.reader)
            turned = [*ring[start:-1], *ring[:start], cut.reader]
            text = f"{dotted(cut.path)}: a loop: {' > '.join(turned)}; a frame would never leave it"
            report.add(cut.path, text, error_id="graph-loop")
            left.remove(cut)
        else:
            return


def _typed(arrow: Arrow, nodes: Mapping[str, Node], report: Report) -> list[Arrow]:
    if arrow.sender == EVENTS:
        return [replace(arrow, type=Event.TYPE)]
    found = check_type(arrow, nodes, report)
    return [replace(arrow, type=found)] if found else []


def _check_events(nodes: Mapping[str, Node], arrows: Sequence[Arrow], report: Report) -> None:
    makers = [name for name, node in nodes.items() if node.makes_events]
    unknown = any(node.kind is None for node in nodes.values())
    named: dict[str, list[str]] = defaultdict(list)
    for arrow in arrows:
        if arrow.sender != EVENTS:
            named[arrow.reader].append(arrow.sender)
    for arrow in arrows:
        if arrow.type == Event.TYPE and arrow.policy not in (None, "block"):
            text = "edges that carry Events always block: remove `policy`"
            path = (*arrow.path[:-1], "policy")
            report.add(path, f"{dotted(path)}: {text}", error_id="setting-value")
        if arrow.sender == EVENTS and not makers and not unknown:
            text = "no stage of this graph makes Events"
            report.add(arrow.path, f"{dotted(arrow.path)}: {text}", error_id="stages-do-not-fit")
        if arrow.sender == EVENTS and (others := named[arrow.reader]):
            text = f"`{EVENTS}` means {', '.join(others)} as well: keep one of them"
            report.add(arrow.path, f"{dotted(arrow.path)}: {text}", error_id="setting-value")


def _check_read(nodes: Mapping[str, Node], arrows: Sequence[Arrow], report: Report) -> None:
    meant = [arrow.sender for node in nodes.values() for arrow in arrows_of(node)]
    # One mistake for a mistyped name is enough: the stage that was probably meant counts as read.
    mistyped = [name for name in dict.fromkeys(meant) if name not in nodes and name != EVENTS]
    if len(mistyped) > MOST_REPORTED:  # finding the intended names is slow, and enough mistakes have been reported
        return
    read = {*meant, *(near for name in mistyped for near in nearest(name, nodes))}
    for node in nodes.values():
        if not node.outputs or node.name in read or (node.makes_events and EVENTS in read):
            continue
        made = " and ".join(kind.__name__ for kind in node.outputs)
        text = f"{dotted(node.path)}: no stage reads its {made}: name it in the `from` of a stage, or remove it"
        report.add(node.path, text, at_key=True, about=(*node.path, "readers"))


def _torn(report: Report) -> set[str]:
    """The stages whose `from` could not be read, so that their senders are unknown."""
    stages = report.source.mapping("stages")
    known = {field.alias or name for name, field in StageEntry.model_fields.items()}
    return {
        name
        for name, entry in stages.items()
        if not isinstance(entry, dict) or entry.keys() - known or report.touches(("stages", name, "from"))
    }
