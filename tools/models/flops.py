"""How much a model calculates: the multiplications and additions of its convolutions and matrix products.

Both count, so one multiply-accumulate is two operations. Everything else a model does is left out: in networks of this
kind it is a few percent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from math import prod

import onnx
from onnx import NodeProto, shape_inference

Shape = tuple[int, ...]


def flops_of(model: onnx.ModelProto, sizes: Mapping[str, Shape]) -> Counter[str]:
    """Operations of one run by operator, for inputs of these shapes; what has no known shape is left out."""
    shapes = _shapes(model, sizes)
    counted: Counter[str] = Counter()
    for node in model.graph.node:
        count = _COUNTED.get(node.op_type)
        if count is not None:
            counted[node.op_type] += count(node, shapes)
    return counted


def _shapes(model: onnx.ModelProto, sizes: Mapping[str, Shape]) -> dict[str, Shape]:
    """The shape of each value that ONNX can infer."""
    sized = onnx.ModelProto()
    sized.CopyFrom(model)
    for value in sized.graph.input:
        for dim, side in zip(value.type.tensor_type.shape.dim, sizes.get(value.name, ()), strict=False):
            dim.dim_value = side
    # What the exporter wrote down is for its own sizes.
    del sized.graph.value_info[:]
    inferred = shape_inference.infer_shapes(sized, data_prop=True).graph
    shapes = {entry.name: tuple(entry.dims) for entry in inferred.initializer}
    for value in (*inferred.input, *inferred.value_info, *inferred.output):
        dims = value.type.tensor_type.shape.dim
        if all(dim.HasField("dim_value") for dim in dims):
            shapes[value.name] = tuple(dim.dim_value for dim in dims)
    return shapes


def _attribute(node: NodeProto, name: str, default: int) -> int:
    return next((entry.i for entry in node.attribute if entry.name == name), default)


def _convolution(node: NodeProto, shapes: Mapping[str, Shape]) -> int:
    """Each of (rows, out, spatial...) values sums over (in / group, kernel...) products."""
    weights, out = shapes.get(node.input[1]), shapes.get(node.output[0])
    return 2 * prod(out) * prod(weights[1:]) if weights and out else 0


def _transposed(node: NodeProto, shapes: Mapping[str, Shape]) -> int:
    """Each value of the input is spread over (out / group, kernel...) values."""
    weights, given = shapes.get(node.input[1]), shapes.get(node.input[0])
    return 2 * prod(given) * prod(weights[1:]) if weights and given else 0


def _product(node: NodeProto, shapes: Mapping[str, Shape]) -> int:
    given, out = shapes.get(node.input[0]), shapes.get(node.output[0])
    return 2 * prod(out) * given[-1] if given and out else 0


def _gemm(node: NodeProto, shapes: Mapping[str, Shape]) -> int:
    given, out = shapes.get(node.input[0]), shapes.get(node.output[0])
    return 2 * prod(out) * given[0 if _attribute(node, "transA", 0) else 1] if given and out else 0


_COUNTED: Mapping[str, Callable[[NodeProto, Mapping[str, Shape]], int]] = {
    "Conv": _convolution,
    "ConvTranspose": _transposed,
    "MatMul": _product,
    "Gemm": _gemm,
}
