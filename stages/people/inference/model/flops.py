"""How much a model calculates: the multiplications and additions of its convolutions and matrix products.

Both count, so one multiply-accumulate is two operations, in any precision. Everything else a model does is left out: in
networks of this kind it is a few percent. If a node that counts has no known shape, or is of a kind that is not counted
here (LSTM, attention, operators of the model's own), the sum is a lower bound and marked as such.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import onnx
from onnx import GraphProto, NodeProto, shape_inference
from onnx.inliner import inline_local_functions

from camgraph.stages.people.inference.model.extent import bodies_of, graphs_of
from camgraph.stages.people.inference.model.model_safety import too_large_to_analyse
from camgraph.stages.people.inference.model.node_order import sort_nodes

Shape = tuple[int, ...]


class NodeWork(NamedTuple):
    """A node that calculates; ``operations`` is None if their number is not known."""

    name: str
    operator: str
    operations: int | None


@dataclass(frozen=True)
class Work:
    """All nodes of a model that calculate."""

    nodes: tuple[NodeWork, ...] = ()

    @property
    def by_operator(self) -> Counter[str]:
        """Operations, if their number is known."""
        counted: Counter[str] = Counter()
        for node in self.nodes:
            if node.operations is not None:
                counted[node.operator] += node.operations
        return counted

    @property
    def total(self) -> int:
        """The sum over all nodes with a known number; a lower bound if some are ``unknown``."""
        return self.by_operator.total()

    @property
    def unknown(self) -> Counter[str]:
        """The number of nodes with an unknown number of operations, by operator."""
        return Counter(node.operator for node in self.nodes if node.operations is None)


def work_of(model: onnx.ModelProto, sizes: Mapping[str, Shape]) -> Work:
    """The calculations of the model in one run, for inputs of these shapes; nothing is known of one that is too
    large.
    """
    if too_large_to_analyse(model):
        return Work()
    whole = _whole(model)
    shapes = _shapes(_plain(whole), sizes)
    return Work(tuple(_counted(whole.graph, shapes)))


def largest_value(model: onnx.ModelProto, sizes: Mapping[str, Shape]) -> tuple[str, int]:
    """The name and bytes of the largest value between nodes, for inputs of these shapes; ("", 0) if none is known."""
    if too_large_to_analyse(model):
        return "", 0
    graph = _inferred(_plain(_whole(model)), sizes)
    values = [*graph.value_info, *graph.output]
    types = {value.name: value.type.tensor_type.elem_type for value in values}
    bytes_of = {name: prod(shape) * _bytes_each(types[name]) for name, shape in _known(values).items()}
    return max(bytes_of.items(), key=lambda found: found[1], default=("", 0))


def _bytes_each(onnx_type: int) -> int:
    """Of one value; 0 for types that are no numbers."""
    try:
        return onnx.helper.tensor_dtype_to_np_dtype(onnx_type).itemsize
    except KeyError:
        return 0


def _whole(model: onnx.ModelProto) -> onnx.ModelProto:
    """Without functions, and without large weights."""
    light = _without_weights(model)
    return inline_local_functions(light) if light.functions else light


def _without_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy in which large weights have their shapes alone: these are all that counts, and models may be large."""
    light = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import, functions=model.functions)
    graph, found = light.graph, model.graph
    for own, others in (
        (graph.input, found.input), (graph.output, found.output),
        (graph.value_info, found.value_info), (graph.sparse_initializer, found.sparse_initializer),
    ):  # fmt: skip
        own.extend(others)
    graph.initializer.extend(map(_bare, found.initializer))
    graph.node.extend(map(_bare_constant, found.node))
    return light


def _bare(weights: onnx.TensorProto) -> onnx.TensorProto:
    """Without its values, unless it may hold sides that a node reads: those are integers, or few."""
    if weights.data_type in _HOLDS_SIDES or prod(weights.dims) <= _FEW_VALUES:
        return weights
    return onnx.TensorProto(name=weights.name, dims=weights.dims, data_type=weights.data_type)


def _bare_constant(node: NodeProto) -> NodeProto:
    """Some exporters write weights as nodes."""
    if node.op_type != "Constant" or not (values := [entry.t for entry in node.attribute if entry.name == "value"]):
        return node
    return onnx.helper.make_node("Constant", node.input, node.output, node.name, value=_bare(values[0]))


def _counted(graph: GraphProto, shapes: Mapping[str, Shape]) -> Iterator[NodeWork]:
    for node in graph.node:
        if place := _PRODUCTS.get(node.op_type):
            yield NodeWork(node.name, node.op_type, _operations(node, place, shapes))
        elif _may_be_heavy(node) or _is_heavy_within(node):
            yield NodeWork(node.name, node.op_type, None)


def _may_be_heavy(node: NodeProto) -> bool:
    """Whether it is of an unknown kind, or of one that calculates much and is not counted."""
    if node.domain in _STANDARD:
        return node.op_type in _NOT_COUNTED
    return node.domain != _ONNX_RUNTIME or node.op_type not in _LIGHT


def _is_heavy_within(node: NodeProto) -> bool:
    """Whether a graph within a node such as If or Loop has something to count: how often it runs is unknown."""
    inner = (other for graph in graphs_of(node) for body in bodies_of(graph) for other in body.node)
    return any(other.op_type in _PRODUCTS or _may_be_heavy(other) for other in inner)


def _plain(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy to find shapes in: in order, with standard operators if they give the shapes of ONNX Runtime's."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    sort_nodes(copy.graph)
    imported = {entry.domain for entry in copy.opset_import}
    # ONNX infers nothing at all if one of them is not imported.
    foreign = {node.domain for node in copy.graph.node} - imported - {"ai.onnx"}
    copy.opset_import.extend(onnx.helper.make_opsetid(domain, 1) for domain in sorted(foreign))
    for node in copy.graph.node:
        standard = _SAME_SHAPE.get(node.op_type)
        if standard is None or (standard == "MatMul" and any(_attribute(node, name, 0) for name in _TURNED)):
            continue
        kept = [entry for entry in node.attribute if not entry.name.startswith(_OF_FUSED)]
        del node.attribute[:]
        node.attribute.extend(kept)
        node.op_type, node.domain = standard, ""
    return copy


def _shapes(sized: onnx.ModelProto, sizes: Mapping[str, Shape]) -> dict[str, Shape]:
    """The shape of each value that ONNX can infer; for others the exporter's, if it holds for these sizes."""
    dims = ((value.name, value.type.tensor_type.shape.dim) for value in sized.graph.input)
    pairs = (pair for name, own in dims for pair in zip(own, sizes.get(name, ()), strict=False))
    written = _known(sized.graph.value_info) if all(dim.dim_value == side for dim, side in pairs) else {}
    inferred = _inferred(sized, sizes)
    weights = {entry.name: tuple(entry.dims) for entry in inferred.initializer}
    return {**written, **weights, **_known([*inferred.input, *inferred.value_info, *inferred.output])}


def _inferred(sized: onnx.ModelProto, sizes: Mapping[str, Shape]) -> GraphProto:
    """The graph with all shapes that ONNX can infer."""
    for value in sized.graph.input:
        for dim, side in zip(value.type.tensor_type.shape.dim, sizes.get(value.name, ()), strict=False):
            dim.dim_value = side
    # ONNX believes written shapes more than inferred ones.
    del sized.graph.value_info[:]
    return shape_inference.infer_shapes(sized, data_prop=True).graph


def _known(values: Iterable[onnx.ValueInfoProto]) -> dict[str, Shape]:
    """The shapes whose sides are all numbers."""
    shapes = {}
    for value in values:
        tensor = value.type.tensor_type
        if tensor.HasField("shape") and all(dim.HasField("dim_value") for dim in tensor.shape.dim):
            shapes[value.name] = tuple(dim.dim_value for dim in tensor.shape.dim)
    return shapes


class _Product(NamedTuple):
    """The places of a product's two factors among its inputs."""

    kind: str
    first: int
    second: int


def _operations(node: NodeProto, product: _Product, shapes: Mapping[str, Shape]) -> int | None:
    if max(product.first, product.second) >= len(node.input):
        return None
    given, weights = shapes.get(node.input[product.first]), shapes.get(node.input[product.second])
    out = shapes.get(node.output[0])
    if product.kind == "convolution":
        # Each of (rows, out, spatial...) values sums over (in / group, kernel...) products.
        return None if weights is None or out is None else 2 * prod(out) * prod(weights[1:])
    if product.kind == "transposed":
        # Each value of the input is spread over (out / group, kernel...) values.
        return None if weights is None or given is None else 2 * prod(given) * prod(weights[1:])
    if given is None or out is None or not given:
        return None
    across = len(given) > 1 and _attribute(node, "transA", 0)
    return 2 * prod(out) * given[-2 if across else -1]


def _attribute(node: NodeProto, name: str, default: int) -> int:
    return next((entry.i for entry in node.attribute if entry.name == name), default)


_FEW_VALUES = 1024
_HOLDS_SIDES = frozenset({onnx.TensorProto.INT64, onnx.TensorProto.INT32})
_PRODUCTS: Mapping[str, _Product] = {
    "Conv": _Product("convolution", 0, 1),
    "FusedConv": _Product("convolution", 0, 1),
    "ConvInteger": _Product("convolution", 0, 1),
    "QLinearConv": _Product("convolution", 0, 3),
    "ConvTranspose": _Product("transposed", 0, 1),
    "MatMul": _Product("matrix", 0, 1),
    "FusedMatMul": _Product("matrix", 0, 1),
    "MatMulInteger": _Product("matrix", 0, 1),
    "MatMulIntegerToFloat": _Product("matrix", 0, 1),
    "DynamicQuantizeMatMul": _Product("matrix", 0, 1),
    "QLinearMatMul": _Product("matrix", 0, 3),
    "Gemm": _Product("matrix", 0, 1),
    "FusedGemm": _Product("matrix", 0, 1),
    "QGemm": _Product("matrix", 0, 3),
}
_SAME_SHAPE = {"FusedConv": "Conv", "FusedMatMul": "MatMul", "FusedGemm": "Gemm"}
"""Operators of ONNX Runtime, which ONNX does not know, and their work besides a factor and an activation."""
_OF_FUSED = ("activation", "alpha")
_TURNED = ("transA", "transB", "transBatchA", "transBatchB")
_NOT_COUNTED = frozenset({"LSTM", "GRU", "RNN", "Einsum", "Attention", "DeformConv"})
_STANDARD = frozenset({"", "ai.onnx", "ai.onnx.ml"})
_ONNX_RUNTIME = "com.microsoft"
_LIGHT = frozenset(
    {
        *("QuantizeLinear", "DequantizeLinear", "QLinearAdd", "QLinearMul", "QLinearSigmoid", "QLinearLeakyRelu"),
        *("QLinearConcat", "QLinearAveragePool", "QLinearGlobalAveragePool", "QLinearSoftmax", "QLinearWhere"),
        *("Gelu", "FastGelu", "QuickGelu", "BiasGelu", "SkipLayerNormalization", "NhwcMaxPool"),
    }
)
"""Of ONNX Runtime's own operators those that are no products."""
