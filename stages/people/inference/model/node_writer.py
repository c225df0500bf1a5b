"""Writes nodes and constants that are added to a model's graph, under names that it does not have yet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, helper, numpy_helper


class NodeWriter:
    """Keeps new nodes and constants, in their order; the caller puts `nodes` and `constants` into the graph at their
    place.
    """

    def __init__(self, graph: GraphProto) -> None:
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []
        self._taken = names_in(graph)

    def add(self, operator: str, inputs: Sequence[str], *, outputs: int = 1, **attributes: Any) -> str:
        """A node; the name of its last output (TopK gives values and, last, their places)."""
        names = [self.name(operator) for _ in range(outputs)]
        self.nodes.append(helper.make_node(operator, list(inputs), names, name=names[-1], **attributes))
        return names[-1]

    def constant(self, value: NDArray[Any] | Sequence[int]) -> str:
        """A value that is known beforehand; numbers without a type are int64, as shapes and indices are."""
        array = value if isinstance(value, np.ndarray) else np.array(value, np.int64)
        name = self.name("constant")
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def slice(self, value: str, axis: int, first: int, end: int) -> str:
        """``end`` is the first that is left out."""
        bounds = [self.constant([side]) for side in (first, end, axis)]
        return self.add("Slice", [value, *bounds])

    def name(self, what: str) -> str:
        """One that the graph does not have."""
        number = len(self._taken)
        while (found := f"camgraph/{what}_{number}") in self._taken:
            number += 1
        self._taken.add(found)
        return found


def names_in(graph: GraphProto) -> set[str]:
    """Of the values and nodes of a graph and of those within it."""
    found = {value.name for value in (*graph.input, *graph.output, *graph.initializer)}
    for node in graph.node:
        found.update((node.name, *node.input, *node.output))
    for inner in graphs_in(graph):
        found |= names_in(inner)
    return found


def rename_reads(graph: GraphProto, old: str, new: str) -> None:
    """Let readers of the value ``old`` read ``new`` instead, also in the graphs within."""
    for node in graph.node:
        node.input[:] = [new if name == old else name for name in node.input]
    for inner in graphs_in(graph):
        rename_reads(inner, old, new)


def graphs_in(graph: GraphProto) -> Iterator[GraphProto]:
    """Those of its nodes' attributes (bodies of If, Loop and Scan)."""
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield attribute.g
            yield from attribute.graphs
