"""Tells stages what stands before them: settings that follow from the graph need not be written into it.

infer  describe -> {model}  ──> rules.follow(...) -> {model}      what somebody wrote stays
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline.graph.arrows import Arrow
from pipeline.graph.nodes import Node
from pipeline.graph.structure import order_of
from pipeline.stage import Upstream


def informed(nodes: Mapping[str, Node], arrows: Sequence[Arrow], base_folder: Path) -> dict[str, Node]:
    """The nodes with the settings that follow from what stands before each. Raises UserError or EnvironmentProblem."""
    order = order_of(nodes, arrows)
    done: dict[str, Node] = {}
    said: dict[str, Mapping[str, Any]] = {}
    before: dict[str, set[str]] = {}
    for name in order:
        senders = {arrow.sender for arrow in arrows if arrow.reader == name and arrow.sender in nodes}
        before[name] = senders.union(*(before[sender] for sender in senders))
        upstream = Upstream({other: said[other] for other in order if other in before[name]})
        node = done[name] = _filled(nodes[name], base_folder, upstream)
        said[name] = node.stage.describe(node.settings) if node.stage else {}
    return {name: done[name] for name in nodes}


def _filled(node: Node, base_folder: Path, upstream: Upstream) -> Node:
    if node.stage is None:
        return node
    found = node.stage.follow(node.settings, base_folder, upstream)
    if not found:
        return node
    values = {**(node.entry.with_ or {}), **found}
    settings = node.stage.settings_type.model_validate(values)
    return replace(node, entry=node.entry.model_copy(update={"with_": values}), settings=settings)
