"""The decoder that a MoveNet was published with, run node by node in numpy: slow, and a reference for ours.

It takes the heads of one picture and gives what the TF.js model itself would. Each operation has
one entry in `_OPERATIONS`, written after TensorFlow's definition of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from camgraph.tools.assets.movenet.multipose import HEADS
from camgraph.tools.assets.movenet.tfjs import ConversionError, Graph, Node

Array = NDArray[Any]
Value = Array | tuple[Array, ...]

RESULT = "Identity"
_CASTS = {"DT_FLOAT": np.float32, "DT_INT32": np.int32}


def published_decoder(graph: Graph, heads: Mapping[str, Array], names: Mapping[str, str] = HEADS) -> Array:
    """The graph's result for one picture's heads, each (channels, rows, columns), ``names`` being their nodes.

    MultiPose: (6, 56) float32, a row is 17 x (y, x, confidence), then ymin, xmin, ymax, xmax as fractions of the
    picture, then the score. Lightning and Thunder: (1, 17, 3), y, x, confidence.
    """
    known: dict[str, Value] = {name: heads[head].transpose(1, 2, 0)[None] for head, name in names.items()}
    known.update(graph.weights)
    return np.asarray(_value(graph, known, RESULT)[0])


def _value(graph: Graph, known: dict[str, Value], name: str) -> Array:
    """The output `name` or `name:index` of a node, after all that it needs."""
    base, _, index = name.partition(":")
    if base not in known:
        node = graph.nodes[base]
        if node.op not in _OPERATIONS:
            raise ConversionError(f"{node}: operation not known; known are {', '.join(sorted(_OPERATIONS))}")
        known[base] = _OPERATIONS[node.op](node, *(_value(graph, known, source) for source in node.inputs))
    value = known[base]
    return np.asarray(value[int(index or 0)] if isinstance(value, tuple) else value)


def _strided_slice(node: Node, array: Array, begin: Array, end: Array, step: Array) -> Array:
    def masked(mask: str, position: int) -> bool:
        return bool(node.number(mask) >> position & 1)

    key: list[Any] = []
    for i in range(len(begin)):
        if masked("new_axis_mask", i):
            key.append(np.newaxis)
        elif masked("shrink_axis_mask", i):
            key.append(int(begin[i]))
        else:
            first = None if masked("begin_mask", i) else int(begin[i])
            key.append(slice(first, None if masked("end_mask", i) else int(end[i]), int(step[i])))
    return np.asarray(array[tuple(key)])


def _max_pool(node: Node, picture: Array) -> Array:
    """Of one channel, stride 1, same size."""
    _, rows, columns, _ = node.numbers("ksize", ())
    highest = cv2.dilate(np.ascontiguousarray(picture[0, :, :, 0]), np.ones((rows, columns), np.uint8))
    return np.asarray(highest)[None, :, :, None]


def _top(node: Node, array: Array, count: Array) -> Value:
    """The largest of each row; of equal ones the first comes first."""
    order = np.argsort(-array, axis=-1, kind="stable")[..., : int(count)]
    return np.take_along_axis(array, order, axis=-1), order.astype(np.int32)


def _unpack(node: Node, array: Array) -> Value:
    return tuple(np.moveaxis(array, node.number("axis"), 0))


def _plain(function: Callable[..., Array]) -> Callable[..., Array]:
    """An operation that looks at its inputs only."""
    return lambda node, *inputs: function(*inputs)


def _over(function: Callable[..., Array]) -> Callable[..., Array]:
    """An operation along the axes that its second input names."""

    def reduce(node: Node, array: Array, axes: Array) -> Array:
        return np.asarray(function(array, axis=tuple(np.ravel(axes).tolist()), keepdims=node.flag("keep_dims")))

    return reduce


_int32 = partial(np.asarray, dtype=np.int32)

_OPERATIONS: Mapping[str, Callable[..., Value]] = {
    "Abs": _plain(np.abs),
    "AddN": _plain(lambda *terms: sum(terms[1:], start=terms[0])),
    "AddV2": _plain(np.add),
    "ArgMax": _plain(lambda array, axis: _int32(array.argmax(axis=int(axis)))),
    "Cast": lambda node, array: array.astype(_CASTS[node.text("DstT")]),
    "ConcatV2": _plain(lambda *inputs: np.concatenate(inputs[:-1], axis=int(inputs[-1]))),
    "Equal": _plain(np.equal),
    "Exp": _plain(np.exp),
    "ExpandDims": _plain(lambda array, axis: np.expand_dims(array, int(axis))),
    "Fill": _plain(np.full),
    "FloorDiv": _plain(np.floor_divide),
    "GatherNd": _plain(lambda array, indices: array[tuple(np.moveaxis(indices, -1, 0))]),
    "Greater": _plain(np.greater),
    "GreaterEqual": _plain(np.greater_equal),
    "Identity": _plain(np.asarray),
    "Less": _plain(np.less),
    "LogicalAnd": _plain(np.logical_and),
    "Max": _over(np.max),
    "MaxPool": _max_pool,
    "Maximum": _plain(np.maximum),
    "Minimum": _plain(np.minimum),
    "Mul": _plain(np.multiply),
    "Pack": lambda node, *inputs: np.stack(inputs, axis=node.number("axis")),
    "Range": _plain(lambda first, end, step: np.arange(first, end, step, dtype=first.dtype)),
    "RealDiv": _plain(np.true_divide),
    "Reciprocal": _plain(np.reciprocal),
    "Reshape": _plain(lambda array, shape: array.reshape(shape)),
    "Select": _plain(np.where),
    "Shape": _plain(lambda array: _int32(array.shape)),
    "Size": _plain(lambda array: _int32(array.size)),
    "Split": lambda node, axis, array: tuple(np.split(array, node.number("num_split"), axis=int(axis))),
    "Sqrt": _plain(np.sqrt),
    "SquaredDifference": _plain(lambda left, right: np.square(left - right)),
    "Squeeze": lambda node, array: np.squeeze(array, axis=node.numbers("squeeze_dims", ())),
    "StridedSlice": _strided_slice,
    "Sub": _plain(np.subtract),
    "Sum": _over(np.sum),
    "Tile": _plain(np.tile),
    "TopKV2": _top,
    "Unpack": _unpack,
}
