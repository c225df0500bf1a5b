"""Refuses readers of messages that a stage of the graph withholds: no picture may leave a graph that promises that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.graph.arrows import Arrow
from pipeline.graph.nodes import Node
from pipeline.graph.report import Report, dotted


def check_withheld(nodes: Mapping[str, Node], arrows: Sequence[Arrow], report: Report) -> None:
    """Report each reader of what is withheld, at its `from`."""
    for node in nodes.values():
        withheld = node.stage.withholds(node.settings) if node.stage else {}
        reasons = {kind.TYPE: why for kind, why in withheld.items()}
        for arrow in arrows:
            reader = nodes.get(arrow.reader)
            if arrow.type in reasons and reader is not None and reader.stage and not reader.stage.only_for_models:
                report.add(
                    arrow.path,
                    f"{dotted(arrow.path)}: {reader.name} would show {arrow.type}s: {reasons[arrow.type]} "
                    f"({dotted(node.path)}): remove {reader.name}, or change `{node.name}`",
                )
