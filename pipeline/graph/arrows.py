"""Brings every `from` to one form: arrows from stage to stage, with their places in the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from camgraph.pipeline.graph.definition import EdgeEntry
from camgraph.pipeline.graph.nodes import EVENTS, Node
from camgraph.pipeline.graph.report import Report, dotted
from camgraph.pipeline.graph.yaml_reader import Path
from camgraph.pipeline.messages import Event, Message
from camgraph.pipeline.plan import Policy
from camgraph.pipeline.system.spelling import did_you_mean

_MAKERS_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Arrow:
    """`sender` -> `reader`, as the file has it. `type` is the message type, "" until it is known."""

    sender: str
    reader: str
    port: str
    path: Path
    depth: int | None = None
    policy: Policy | None = None
    type: str = ""


def arrows_of(node: Node) -> Iterator[Arrow]:
    """The arrows that a stage's `from` names."""
    path = (*node.path, "from")
    given = node.entry.from_
    if isinstance(given, list):
        for index, end in enumerate(given):
            yield _arrow(end, node.name, "", (*path, index))
    elif isinstance(given, dict):
        for port, end in given.items():
            yield _arrow(end, node.name, port, (*path, port))
    elif given is not None:
        yield _arrow(given, node.name, "", path)


def _arrow(end: str | EdgeEntry, reader: str, port: str, path: Path) -> Arrow:
    if isinstance(end, str):
        return Arrow(end, reader, port, path)
    return Arrow(end.stage, reader, port, (*path, "stage"), end.depth, end.policy)


def check_ports(node: Node, report: Report) -> None:
    """A join needs all of its ports by name, any other stage one type."""
    if node.stage is None or node.entry.from_ is None:
        return
    path = (*node.path, "from")
    given = node.entry.from_
    if "" in node.ports:
        if isinstance(given, dict):
            text = f"{node.name} has one input, without ports{_long_form_hint(given)}"
            text += "; expected a stage's name or a list of them"
            report.add(path, f"{dotted(path)}: {text}", error_id="stages-do-not-fit")
        return
    if not isinstance(given, dict):
        wanted = ", ".join(f"{port}: STAGE" for port in node.ports)
        text = f"{node.name} joins by frame; expected {{{wanted}}}"
        report.add(path, f"{dotted(path)}: {text}", error_id="stages-do-not-fit")
        return
    for port in sorted(given.keys() - node.ports.keys()):
        known = ", ".join(node.ports)
        text = f"{node.name} has no port `{port}`{did_you_mean(port, node.ports) or f'; it has {known}'}"
        report.add((*path, port), f"{dotted(path)}: {text}", at_key=True, error_id="key-unknown")
    for port in sorted(node.ports.keys() - given.keys()):
        text = f"the port `{port}` is missing; it takes {node.ports[port].__name__}"
        report.add(path, f"{dotted(path)}: {text}", error_id="setting-missing")


def _long_form_hint(given: Mapping[str, object]) -> str:
    return f" (got {', '.join(given)})" + next((did_you_mean(key, ("stage",)) for key in given), "")


def check_from(node: Node, nodes: Mapping[str, Node], written: Iterable[str], report: Report) -> list[Arrow]:
    """Return the arrows into a stage from existing stages; report the others. `written`: all names under `stages`."""
    path = (*node.path, "from")
    if node.source and node.entry.from_ is not None:
        text = f"{dotted(path)}: {node.name} is a source and reads from no stage: remove `from`"
        report.add(path, text, at_key=True, error_id="stages-do-not-fit")
        return []
    check_ports(node, report)
    return [arrow for arrow in _distinct(node, report) if _known(arrow, node, nodes, written, report)]


def _distinct(node: Node, report: Report) -> Iterator[Arrow]:
    seen: set[tuple[str, str]] = set()
    for arrow in arrows_of(node):
        if (arrow.sender, arrow.port) in seen:
            text = f"{dotted(arrow.path)}: `{arrow.sender}` appears twice: remove one of them"
            report.add(arrow.path, text, error_id="setting-value")
            continue
        seen.add((arrow.sender, arrow.port))
        yield arrow


def _known(arrow: Arrow, node: Node, nodes: Mapping[str, Node], written: Iterable[str], report: Report) -> bool:
    if arrow.sender in nodes or (arrow.sender == EVENTS and node.takes_events):
        return True
    if arrow.sender == EVENTS and node.kind is None:  # what it takes is not known
        return False
    if arrow.sender == EVENTS:
        text = f"{dotted(arrow.path)}: `{EVENTS}` means Events, but {node.name} takes none"
        report.add(arrow.path, text, error_id="stages-do-not-fit")
    elif arrow.sender not in written:
        others = () if report.is_full else [name for name in nodes if name != node.name]
        guess = did_you_mean(arrow.sender, others)
        text = f"{dotted(arrow.path)}: no stage of this graph is called `{arrow.sender}`{guess}"
        report.add(arrow.path, text, error_id="stage-not-in-graph")
    return False


def fitting(sender: Node, wanted: type[Message]) -> list[type[Message]]:
    """Return the sender's outputs that a reader of `wanted` takes: the type itself, else all derived types.

    A reader of any Message gets the types that flow frame by frame, and Events only if there are no others.
    """
    exact = [made for made in sender.outputs if made is wanted]
    derived = [made for made in sender.outputs if issubclass(made, wanted)]
    return exact or [made for made in derived if not issubclass(made, Event)] or derived


def check_type(arrow: Arrow, nodes: Mapping[str, Node], report: Report) -> str:
    """The wire type of an arrow, or "" after a mismatch has been reported."""
    sender, reader = nodes[arrow.sender], nodes[arrow.reader]
    wanted = reader.ports.get(arrow.port)
    if wanted is None or sender.kind is None:
        return ""
    fits = fitting(sender, wanted)
    if len(fits) == 1:
        return fits[0].TYPE
    taken = f"{arrow.reader} takes {wanted.__name__}"
    if fits:
        names = " and ".join(made.__name__ for made in fits)
        text = f"{taken}, and {arrow.sender} makes {names}: which one is open"
    else:
        makes = " and ".join(made.__name__ for made in sender.outputs) or "nothing"
        text = f"{taken}, and {arrow.sender} makes {makes}{_makers(nodes, wanted, arrow.reader)}"
    report.add(arrow.path, f"{dotted(arrow.path)}: {text}", error_id="stages-do-not-fit")
    return ""


def _makers(nodes: Mapping[str, Node], wanted: type[Message], reader: str) -> str:
    makers = [name for name, node in nodes.items() if name != reader and fitting(node, wanted)]
    listed = ", ".join(makers[:_MAKERS_SHOWN]) + (", ..." if len(makers) > _MAKERS_SHOWN else "")
    return f"; {wanted.__name__} is made by {listed}" if makers else ""
