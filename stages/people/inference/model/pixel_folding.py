"""Folds the preprocessing of pixels into a model: afterwards it takes uint8 RGB pictures as they are.

    uint8 (B, H, W, 3) RGB -> BGR if it wants that -> (B, 3, H, W) if it wants that -> float
        -> pixel * scale -> (value - mean) / std -> the type that it took -> the model as it was

Everything that moves pixels comes before they become floats: a quarter of the bytes. The arithmetic is chosen so that
the model gets the bits that `Converter` would have given it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from onnx import GraphProto, TensorProto, ValueInfoProto

from camgraph.stages.people.inference.model.node_writer import NodeWriter, rename_reads
from camgraph.stages.vision.model_contract import InputContract, Normalisation, pixel_values

_ELEMENTS = {
    "float32": TensorProto.FLOAT,
    "float16": TensorProto.FLOAT16,
    "uint8": TensorProto.UINT8,
    "int32": TensorProto.INT32,
}


@dataclass(frozen=True)
class Scaling:
    """How pixels become the model's values: in ``dtype``, then as float32."""

    operator: Literal["Mul", "Div"] | None
    by: float
    dtype: Literal["float32", "float64"] = "float32"

    def in_words(self) -> str:
        """As people write it."""
        signs = {"Mul": "x", "Div": "/"}
        return "as they are" if self.operator is None else f"{signs[self.operator]} {self.by:.6g}"


def exact_scaling(scale: float) -> Scaling:
    """The cheapest arithmetic that gives the bits of `Converter` for each of the 256 pixels, which are all tried.

    pixel / 255 gives them, pixel * (1 / 255) in float32 does not: 126 of 256 differ in their last bit. If neither gives
    them, double precision is used, as in `Converter`.
    """
    if scale == 1.0:
        return Scaling(None, 1.0)
    pixels, wanted = np.arange(256, dtype=np.float32), pixel_values(scale)
    divisor = float(np.float32(1 / scale))
    if np.array_equal(pixels * np.float32(scale), wanted):
        return Scaling("Mul", float(np.float32(scale)))
    if np.array_equal(pixels / np.float32(divisor), wanted):
        return Scaling("Div", divisor)
    return Scaling("Mul", scale, "float64")


def fold_pixels(graph: GraphProto, contract: InputContract) -> Scaling:
    """Changes the graph; its input keeps its name, and its open sides stay open."""
    writer = NodeWriter(graph)
    scaling = exact_scaling(contract.scale)
    value = _calculated(writer, _placed(writer, contract), contract, scaling)
    rename_reads(graph, contract.name, value)
    old = list(graph.node)
    del graph.node[:]
    graph.node.extend([*writer.nodes, *old])
    graph.initializer.extend(writer.constants)
    _retype(next(entry for entry in graph.input if entry.name == contract.name), contract)
    return scaling


def _placed(writer: NodeWriter, contract: InputContract) -> str:
    """Channels in the model's order and place; still uint8."""
    value = contract.name
    if contract.order == "bgr":
        value = writer.add("Gather", [value, writer.constant([2, 1, 0])], axis=3)
    return writer.add("Transpose", [value], perm=[0, 3, 1, 2]) if contract.layout == "nchw" else value


def _calculated(writer: NodeWriter, value: str, contract: InputContract, scaling: Scaling) -> str:
    normalisation = contract.normalisation
    if scaling.operator is None and normalisation.changes_nothing:
        same = "Identity" if contract.dtype == "uint8" else "Cast"
        return writer.add(same, [value], **({} if contract.dtype == "uint8" else {"to": _ELEMENTS[contract.dtype]}))
    value = _scaled(writer, value, scaling)
    if not normalisation.changes_nothing:
        value = _normalised(writer, value, contract, normalisation)
    return value if contract.dtype == "float32" else writer.add("Cast", [value], to=_ELEMENTS[contract.dtype])


def _scaled(writer: NodeWriter, value: str, scaling: Scaling) -> str:
    """float32."""
    if scaling.operator is None or scaling.dtype == "float32":
        value = writer.add("Cast", [value], to=TensorProto.FLOAT)
        by = writer.constant(np.array(scaling.by, np.float32))
        return value if scaling.operator is None else writer.add(scaling.operator, [value, by])
    value = writer.add("Cast", [value], to=TensorProto.DOUBLE)
    value = writer.add(scaling.operator, [value, writer.constant(np.array(scaling.by, np.float64))])
    return writer.add("Cast", [value], to=TensorProto.FLOAT)


def _normalised(writer: NodeWriter, value: str, contract: InputContract, by: Normalisation) -> str:
    shape = (1, 3, 1, 1) if contract.layout == "nchw" else (1, 1, 1, 3)
    mean, std = (writer.constant(np.array(values, np.float32).reshape(shape)) for values in (by.mean, by.std))
    return writer.add("Div", [writer.add("Sub", [value, mean]), std])


def _retype(entry: ValueInfoProto, contract: InputContract) -> None:
    """The input as uint8 (B, H, W, 3)."""
    tensor = entry.type.tensor_type
    tensor.elem_type = TensorProto.UINT8
    if contract.layout == "nhwc":
        return
    batch, channels, height, width = (type(side).FromString(side.SerializeToString()) for side in tensor.shape.dim)
    channels.dim_value = 3
    del tensor.shape.dim[:]
    tensor.shape.dim.extend([batch, height, width, channels])
