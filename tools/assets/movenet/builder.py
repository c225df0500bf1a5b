"""Collects the nodes and constants of an ONNX model for pictures: NCHW, float32.

Values that are a picture times a constant plus a constant are kept as such (`Affine`) until someone needs them: a
convolution takes the factor into its kernel, so that normalising the input costs one addition.

    x * scale + shift  ->  Conv(kernel * scale)(x + shift / scale)      exact at the border too: both pad with 0
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from camgraph.tools.assets.movenet.tfjs import ConversionError, Graph, Node

# Old enough for every ONNX Runtime that is supported; fixed, so that the bytes do not follow the installed onnx.
OPSET, IR_VERSION = 17, 8
PRODUCER, PRODUCER_VERSION = "camgraph", "1"

F64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Affine:
    """source * scale + shift; scale and shift are (1, 1, 1, 1) or (1, C, 1, 1)."""

    source: str
    scale: F64
    shift: F64


@dataclass
class Builder:
    """The model so far. Keys of `values` and `channels` are names of TensorFlow nodes.

    `new_names`: TensorFlow node -> the name of its value in the model, if it is another. `size`: (rows, columns) of the
    pictures, if the graph takes no others.
    """

    graph: Graph
    input_name: str
    new_names: Mapping[str, str]
    size: tuple[int, int] | None = None
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    initializers: dict[str, onnx.TensorProto] = field(default_factory=dict)
    values: dict[str, str | Affine] = field(default_factory=dict)
    channels: dict[str, int] = field(default_factory=dict)

    def emit(self, op: str, inputs: Iterable[str], output: str, **attributes: Any) -> str:
        """A new node; returns the name of its output."""
        self.nodes.append(helper.make_node(op, list(inputs), [output], name=output, **attributes))
        return output

    def constant(self, name: str, array: NDArray[Any]) -> str:
        """`array` in the file under `name`, once."""
        if name not in self.initializers:
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            data = np.ascontiguousarray(array).tobytes()
            self.initializers[name] = helper.make_tensor(name, kind, array.shape, data, raw=True)
        return name

    def weight(self, node: Node, index: int) -> NDArray[Any]:
        """The constant that `node` takes as its input `index`."""
        name = node.inputs[index]
        if name not in self.graph.weights:
            raise ConversionError(f"{node}: input {index} must be a constant, got {name}")
        return self.graph.weights[name]

    def is_weight(self, name: str) -> bool:
        return name in self.graph.weights

    def output(self, node: Node) -> str:
        return self.new_names.get(node.name, node.name)

    def set(self, node: Node, value: str | Affine, channels: int) -> None:
        self.values[node.name] = value
        self.channels[node.name] = channels

    def picture(self, name: str) -> str:
        """The value of a TensorFlow node as a picture, computed if it was a factor and a sum until now."""
        value = self.values[name]
        if isinstance(value, Affine):
            scale = self.constant(f"{name}/scale", value.scale.astype(np.float32))
            shift = self.constant(f"{name}/shift", value.shift.astype(np.float32))
            scaled = self.emit("Mul", (value.source, scale), f"{name}/scaled")
            value = self.emit("Add", (scaled, shift), self.new_names.get(name, name))
            self.values[name] = value
        return value

    def affine(self, name: str) -> Affine:
        """The value of a TensorFlow node as a factor and a sum."""
        value = self.values[name]
        return value if isinstance(value, Affine) else Affine(value, np.ones((1, 1, 1, 1)), np.zeros((1, 1, 1, 1)))

    def pictures(self) -> list[onnx.ValueInfoProto]:
        """The values with new names as outputs [batch, channels, rows, columns]."""
        return [
            helper.make_tensor_value_info(new, TensorProto.FLOAT, ["batch", self.channels[old], "rows", "columns"])
            for old, new in self.new_names.items()
        ]

    def model(self, name: str, metadata: Mapping[str, str], outputs: Sequence[onnx.ValueInfoProto]) -> onnx.ModelProto:
        """The model: one input [batch, height, width, 3] uint8, and these outputs."""
        shape = ["batch", *(self.size or ("height", "width")), 3]
        pictures = helper.make_tensor_value_info(self.input_name, TensorProto.UINT8, shape)
        graph = helper.make_graph(self.nodes, name, [pictures], outputs, list(self.initializers.values()))
        model = helper.make_model(graph, ir_version=IR_VERSION, opset_imports=[helper.make_opsetid("", OPSET)])
        model.producer_name, model.producer_version = PRODUCER, PRODUCER_VERSION
        helper.set_model_props(model, dict(sorted(metadata.items())))
        onnx.checker.check_model(model, full_check=True)
        return model
