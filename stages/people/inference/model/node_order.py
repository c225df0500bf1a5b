"""The order of a graph's nodes: each behind those whose values it reads, as ONNX demands and not all tools write it."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator

from onnx import GraphProto, NodeProto

from camgraph.stages.people.inference.model.extent import bodies_of, graphs_of


def sort_nodes(graph: GraphProto) -> None:
    """Put them into order; otherwise they stay as they are. A graph with a ring in it is left alone."""
    nodes = ordered(graph)
    if len(nodes) == len(graph.node):
        del graph.node[:]
        graph.node.extend(nodes)


def ordered(graph: GraphProto) -> list[NodeProto]:
    """Copies of the nodes; those in a ring, and behind one, are left out."""
    nodes = [NodeProto.FromString(node.SerializeToString()) for node in graph.node]
    maker = {output: number for number, node in enumerate(nodes) for output in node.output if output}
    behind: dict[int, list[int]] = defaultdict(list)
    waits_for: list[int] = []
    for number, node in enumerate(nodes):
        makers = {maker[name] for name in _read(node) if name in maker}
        waits_for.append(len(makers))
        for one in makers:
            behind[one].append(number)
    ready, found = [number for number, count in enumerate(waits_for) if not count], []
    while ready:
        number = heapq.heappop(ready)
        found.append(nodes[number])
        for one in behind[number]:
            waits_for[one] -= 1
            if not waits_for[one]:
                heapq.heappush(ready, one)
    return found


def _read(node: NodeProto) -> Iterator[str]:
    """The values that a node reads, with those that the graphs within it (of If and Loop) take from around them."""
    yield from node.input
    for graph in graphs_of(node):
        for body in bodies_of(graph):
            for inner in body.node:
                yield from inner.input
