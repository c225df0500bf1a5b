"""Turns a TF.js graph for pictures into ONNX, cut at the nodes that are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import onnx

from camgraph.tools.assets.movenet.builder import Builder
from camgraph.tools.assets.movenet.operations import OPERATIONS
from camgraph.tools.assets.movenet.tfjs import ConversionError, Graph, Node


def convert(
    graph: Graph, *, name: str, input_name: str, outputs: Mapping[str, str], metadata: Mapping[str, str]
) -> onnx.ModelProto:
    """The part of `graph` that the nodes `outputs` (new name -> name in the graph) need, as a checked model.

    The input is [batch, height, width, 3] uint8; outputs are [batch, channels, rows, columns] float32. Raises
    ConversionError as `convert_part`.
    """
    builder = convert_part(graph, input_name=input_name, outputs=outputs)
    return builder.model(name, metadata, builder.pictures())


def convert_part(
    graph: Graph, *, input_name: str, outputs: Mapping[str, str], size: tuple[int, int] | None = None
) -> Builder:
    """The same, to go on building with. ``size``: (rows, columns) of the pictures of a graph that takes no others.

    Raises ConversionError if an output is missing or an operation is not known.
    """
    builder = Builder(graph, input_name, {old: new for new, old in outputs.items()}, size)
    for node in in_order(graph, outputs.values()):
        if node.op not in OPERATIONS:
            raise ConversionError(f"{node}: operation not known; known are {', '.join(sorted(OPERATIONS))}")
        OPERATIONS[node.op](builder, node)
    for old in outputs.values():
        builder.picture(old)
    return builder


def in_order(graph: Graph, ends: Iterable[str]) -> list[Node]:
    """The nodes of pictures that `ends` need, each once and after its inputs. Constants and sizes are no pictures."""
    order: dict[str, Node] = {}
    waiting = [(end, False) for end in reversed(list(ends))]
    while waiting:
        name, inputs_done = waiting.pop()
        if name in order or name in graph.weights:
            continue
        if name not in graph.nodes:
            raise ConversionError(f"the graph has no node {name}: is it another model, or another version?")
        node = graph.nodes[name]
        if inputs_done:
            order[name] = node
        else:
            # A second input of a resize is a size, computed from shapes; the operation itself looks at it.
            pictures = node.inputs[:1] if node.op == "ResizeBilinear" else node.inputs
            waiting += [(name, True), *((source, False) for source in reversed(pictures))]
    return list(order.values())
