"""Refuses readers of messages that a stage of the graph withholds: no picture may leave a graph that promises that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.graph.arrows import Arrow
from pipeline.graph.nodes import Node
from pipeline.graph.report import Report, dotted


def check_withheld(nodes: Mapping[str, Node], arrows: Sequence[Arrow], report: Report) -> None:
    """Report each reader of what is withheld, at its `from`, and each other stage that would show it."""
    for node in nodes.values():
        withheld = node.stage.withholds(node.settings) if node.stage else {}
        if not withheld:
            continue
        reasons = {kind.TYPE: why for kind, why in withheld.items()}
        for other in nodes.values():
            _check_giver(other, node, reasons, report)
        for arrow in arrows:
            reader = nodes.get(arrow.reader)
            if arrow.type in reasons and reader is not None and reader.stage and not reader.stage.only_for_models:
                report.add(
                    arrow.path,
                    f"{dotted(arrow.path)}: {reader.name} would show {arrow.type}s: {reasons[arrow.type]} "
                    f"({dotted(node.path)}): remove {reader.name}, or change `{node.name}`",
                )


def _check_giver(giver: Node, withholder: Node, reasons: Mapping[str, str], report: Report) -> None:
    """Report a stage that gives away what another one withholds, at its name."""
    for given in giver.stage.gives_away(giver.settings) if giver.stage else ():
        if given.TYPE in reasons:
            report.add(
                giver.path,
                f"{dotted(giver.path)}: it would show {given.TYPE}s: {reasons[given.TYPE]} "
                f"({dotted(withholder.path)}): remove it, or change one of the two",
                at_key=True,
            )
