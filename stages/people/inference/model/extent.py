"""Bounds how much of a model is examined: a small file may stand for a graph without end.

    functions that call each other twice      30 of them are a billion nodes once they are put in
    a function with weights, called often     each call is a copy of them
    nodes, weights, attributes by the 100,000  examining a model takes longer than its square

Within `ANALYSED` everything is examined. Beyond, a model may still run, but checks that need opening or sorting it are
left out, and that is reported. Beyond `OPENED` it is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto

Body = GraphProto | FunctionProto
_GRAPH = ""
"""Stands for the model's graph among its functions, which all have a colon in their names."""


@dataclass(frozen=True, slots=True)
class Extent:
    """How much there is of each kind.

    ``nodes``, and ``copied``, the bytes of functions and their arguments, are counted as often as the functions that
    hold them are called.
    """

    nodes: int
    weights: int
    parts: int
    copied: int = 0

    def beyond(self, limits: Extent) -> str:
        """The parts that exceed these limits, in words; "" if there are none."""
        for name in ("nodes", "weights", "parts", "copied"):
            found, most = getattr(self, name), getattr(limits, name)
            if found > most:
                return f"more than {most:,} {_WORDS[name]}"
        return ""


_WORDS = {
    "nodes": "nodes, with its functions put in where they are called",
    "weights": "weights",
    "parts": "attributes, names and entries",
    "copied": "bytes in its functions, put in where they are called",
}
ANALYSED = Extent(nodes=20_000, weights=20_000, parts=200_000, copied=100_000_000)
"""ONNX Runtime opens models of these sizes in a second or two; of 60,000 weights in 35 s, of 100,000 nodes in 14 s."""
OPENED = Extent(nodes=1_000_000, weights=500_000, parts=500_000, copied=1_000_000_000)
_NOTHING = Extent(0, 0, 0)


@dataclass(slots=True)
class Contents:
    """The extent of a model file, including graphs within nodes and functions."""

    extent: Extent
    tensors: list[TensorProto] = field(default_factory=list)
    sparse: list[SparseTensorProto] = field(default_factory=list)
    domains: set[str] = field(default_factory=set)
    """Of its operators."""
    hands_graphs: bool = False
    """To its functions, which may put them in as often as they like: that is not in `extent`."""


def contents_of(model: ModelProto) -> Contents:
    """Pure. Beyond `OPENED` it stops counting; functions that call themselves have no end.

    Functions of the same name count as one that has the nodes of all.
    """
    functions = set(map(function_name, model.functions))
    found = Contents(_NOTHING)
    nodes: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for function in model.functions:
        sizes[function_name(function)] += function.ByteSize()
    calls: dict[str, Counter[str]] = {}
    weights, parts = 0, len(model.metadata_props) + len(model.opset_import) + len(model.functions)
    handed = [attribute for function in model.functions for attribute in function.attribute_proto]
    found.hands_graphs = any(attribute.HasField("g") or attribute.graphs for attribute in handed)
    largest, taken = max((attribute.ByteSize() for attribute in handed), default=0), Counter[str]()
    for outer in (model.graph, *model.functions):
        key = _GRAPH if isinstance(outer, GraphProto) else function_name(outer)
        calls.setdefault(key, Counter())
        for body in bodies_of(outer):
            nodes[key] += len(body.node)
            parts += len(body.input) + len(body.output) + len(body.value_info)
            if isinstance(body, GraphProto):
                found.tensors += body.initializer
                found.sparse += body.sparse_initializer
                weights += len(body.initializer) + len(body.sparse_initializer)
            for node in body.node:
                called = _called_name(node)
                found.domains.add(node.domain)
                if called in functions:
                    calls[key][called] += 1
                    found.hands_graphs |= any(graphs_of(node))
                    largest = max(largest, node.ByteSize())
                taken[key] += sum(attribute.ref_attr_name != "" for attribute in node.attribute)
                parts += len(node.input) + len(node.output) + len(node.attribute)
                if max(parts, nodes[key]) > OPENED.parts:
                    found.extent = Extent(nodes[key], weights, parts)
                    return found
                _gather(node, found)
    # An attribute that is handed to a function is copied wherever the function takes it, and may be handed on.
    copied = _expanded(sizes, calls, OPENED.copied) + largest * _expanded(taken, calls, OPENED.copied)
    found.extent = Extent(_expanded(nodes, calls, OPENED.nodes, replaced=1), weights, parts, copied)
    found.tensors += (part for sparse in found.sparse for part in (sparse.values, sparse.indices))
    return found


def function_name(function: FunctionProto) -> str:
    """By which calls find it.

    One text, for that is how ONNX Runtime looks functions up: a name with a colon meets an overload without one.
    """
    return _joined(function.domain, function.name, function.overload)


def _called_name(node: NodeProto) -> str:
    return _joined(node.domain, node.op_type, node.overload)


def _joined(domain: str, name: str, overload: str) -> str:
    domain = "" if domain == "ai.onnx" else domain
    return f"{domain}:{name}:{overload}" if overload else f"{domain}:{name}"


def _gather(node: NodeProto, found: Contents) -> None:
    for attribute in node.attribute:
        if attribute.HasField("t"):
            found.tensors.append(attribute.t)
        found.tensors += attribute.tensors
        if attribute.HasField("sparse_tensor"):
            found.sparse.append(attribute.sparse_tensor)
        found.sparse += attribute.sparse_tensors


def _expanded(own: Counter[str], calls: dict[str, Counter[str]], most: int, *, replaced: int = 0) -> int:
    """The extent of the graph with each function in the place of its calls; at most one more than the limit.

    ``replaced``: how much of it goes with each call.
    """
    endless = most + 1
    total: dict[str, int] = {}
    try:
        for key in TopologicalSorter(calls).static_order():
            more = sum(times * (total.get(called, 0) - replaced) for called, times in calls.get(key, Counter()).items())
            total[key] = min(endless, own[key] + more)
    except CycleError:
        return endless
    return total[_GRAPH]


def bodies_of(body: Body) -> Iterator[Body]:
    """A graph or function, and the graphs within its nodes."""
    waiting = [body]
    while waiting:
        one = waiting.pop()
        yield one
        for node in one.node:
            waiting += graphs_of(node)


def graphs_of(node: NodeProto) -> Iterator[GraphProto]:
    """The graphs within a node, such as the branches of an If."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs
