"""Tells stages about their neighbours, so that settings that follow from the graph need not be written into it.

    prepare <── infer.wants(...) -> {size} <── decode.wants(...) -> {format}     from the last readers to the source,
                                                                                 for settings that a stage `adapts`
    infer  describe -> {model}  ──> rules.follow(...) -> {model}                 then from senders to readers

Settings in the file stay. Writing `auto` for a setting that a stage `adapts` leaves it open.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from camgraph.pipeline.errors import SettingError, UserError, id_of
from camgraph.pipeline.graph.arrows import Arrow
from camgraph.pipeline.graph.explain import plainly
from camgraph.pipeline.graph.nodes import EVENTS, Node
from camgraph.pipeline.graph.report import Report, dotted
from camgraph.pipeline.graph.structure import order_of
from camgraph.pipeline.stage import Stage, Upstream

LEFT_OPEN = "auto"


def informed(nodes: Mapping[str, Node], arrows: Sequence[Arrow], base_folder: Path, report: Report) -> dict[str, Node]:
    """The nodes with the settings that follow from their neighbours; contradictions are reported."""
    order = order_of(nodes, arrows)
    adapted = dict(nodes)
    for name in reversed(order):
        adapted[name] = _adapted(nodes[name], adapted, arrows, base_folder, report)
    done: dict[str, Node] = {}
    # Stages without outputs come last, because they read the facts of the stages beside them. Of one another they read
    # those that hold before anything follows for them, so that their order in the file does not matter.
    facts = {name: _described(node) for name, node in adapted.items() if not node.outputs}
    before: dict[str, frozenset[str]] = {}
    all_senders = _senders(nodes, arrows)
    making = frozenset(name for name, node in nodes.items() if node.makes_events)
    for name in sorted(order, key=lambda one: not nodes[one].outputs):
        senders = all_senders.get(name, frozenset())
        before[name] = senders.union(*(before[sender] for sender in senders))
        sharing = _reading_the_same(name, all_senders) if not nodes[name].outputs else frozenset()
        beside = {other: facts[other] for other in order if other in sharing and other in facts}
        known = {other: facts[other] for other in order if other in before[name]}
        upstream = Upstream(known, before, beside, making & before[name])
        node = done[name] = _following(adapted[name], base_folder, upstream, report)
        if node.outputs:
            facts[name] = _described(node)
    return {name: done[name] for name in nodes}


def _senders(nodes: Mapping[str, Node], arrows: Sequence[Arrow]) -> dict[str, frozenset[str]]:
    """Stage -> the stages that it reads from; `events` stands for all stages that make events."""
    making = [node.name for node in nodes.values() if node.makes_events]
    senders: dict[str, set[str]] = {}
    for arrow in arrows:
        named = making if arrow.sender == EVENTS else [arrow.sender]
        senders.setdefault(arrow.reader, set()).update(sender for sender in named if sender in nodes)
    return {reader: frozenset(names) for reader, names in senders.items()}


def _reading_the_same(name: str, senders: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """The stages that share a sender with this one."""
    mine = senders.get(name, frozenset())
    return frozenset(other for other, others in senders.items() if other != name and mine & others)


def _described(node: Node) -> Mapping[str, Any]:
    return node.stage.describe(node.settings) if node.stage else {}


def _adapted(node: Node, nodes: Mapping[str, Node], arrows: Sequence[Arrow], base_folder: Path, report: Report) -> Node:
    """Return the node with settings that its readers want, if the file leaves them open. The readers' are final."""
    if node.stage is None or not (node.stage.adapts or node.stage.adapts_to_all):
        return node
    written = {key: value for key, value in (node.entry.with_ or {}).items() if value != LEFT_OPEN}
    found: dict[str, Any] = {}
    wanting: dict[str, str] = {}
    readers = [nodes[arrow.reader] for arrow in arrows if arrow.sender == node.name and arrow.reader in nodes]
    wishes = [_asked(reader, lambda stage, settings: stage.wants(settings, base_folder), report) for reader in readers]
    for key in set(node.stage.adapts_to_all) - set(written):
        if wishes and all(key in wanted and wanted[key] == wishes[0][key] for wanted in wishes):
            found[key] = wishes[0][key]
    for reader, wanted in zip(readers, wishes, strict=True):
        for key, value in wanted.items():
            if key not in node.stage.adapts or key in written:
                continue
            if found.setdefault(key, value) != value:
                report.add(
                    node.path,
                    f"{dotted(node.path)}: `{wanting[key]}` wants {key} {found[key]}, and `{reader.name}` {value}: "
                    "give each of them its own stage, or write the setting",
                    error_id="stages-do-not-fit",
                )
            wanting.setdefault(key, reader.name)
    return _with(node, found, report)


def _following(node: Node, base_folder: Path, upstream: Upstream, report: Report) -> Node:
    found = _asked(node, lambda stage, settings: stage.follow(settings, base_folder, upstream), report)
    return _with(node, found, report)


def _asked(node: Node, ask: Callable[[type[Stage[Any]], Any], Mapping[str, Any]], report: Report) -> Mapping[str, Any]:
    """A stage's answer; if it refuses, that is reported at its place in the file."""
    if node.stage is None:
        return {}
    try:
        return ask(node.stage, node.settings)
    except UserError as error:
        if not report.touches(node.path):
            path = (*node.path, *_place(error, node.stage))
            report.add(path, f"{dotted(path)}: {error}", error_id=id_of(error))
        return {}


def _place(error: UserError, stage: type[Stage[Any]]) -> tuple[str, ...]:
    """The path of the setting that an error names; empty if it names none, or one of another stage."""
    if isinstance(error, SettingError) and error.path[0] in stage.settings_type.model_fields:
        return ("with", *error.path)
    return ()


def _with(node: Node, found: Mapping[str, Any], report: Report) -> Node:
    """Return the node with these settings; if the stage refuses them, report that and return it unchanged."""
    if not found or node.stage is None:
        return node
    # In the form of a file, because a plan is compared with one that was read again.
    values = {**(node.entry.with_ or {}), **json.loads(json.dumps(found))}
    try:
        settings = node.stage.settings_type.model_validate(values)
    except ValidationError as error:
        report.add(
            node.path,
            f"{dotted(node.path)}: it cannot use the settings that follow from its neighbours ("
            f"{plainly(error, values)}): write the setting, or choose another model",
            error_id="stages-do-not-fit",
        )
        return node
    return replace(node, entry=node.entry.model_copy(update={"with_": values}), settings=settings)
