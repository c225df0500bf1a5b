"""The ONNX form of each TensorFlow operation: one function each, in `OPERATIONS`.

These are the operations that MoveNet has. Sources: the definitions of the TensorFlow operations and of ONNX opset 17.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from camgraph.tools.assets.movenet.builder import Affine, Builder
from camgraph.tools.assets.movenet.tfjs import ConversionError, Node

_ONES = (1, 1, 1, 1)


def placeholder(builder: Builder, node: Node) -> None:
    """NHWC bytes to NCHW floats; transposed as bytes, which are a quarter of the floats."""
    planes = builder.emit("Transpose", (builder.input_name,), f"{node.name}/planes", perm=(0, 3, 1, 2))
    builder.set(node, builder.emit("Cast", (planes,), f"{node.name}/float", to=TensorProto.FLOAT), 3)


def cast(builder: Builder, node: Node) -> None:
    """Everything is float already."""
    if node.text("DstT") != "DT_FLOAT":
        raise ConversionError(f"{node}: expected a cast to DT_FLOAT, got {node.text('DstT')}")
    source = node.inputs[0]
    builder.set(node, builder.values[source], builder.channels[source])


def batch_of_one(builder: Builder, node: Node) -> None:
    """Takes a batch of one apart, or makes one: here any batch stays what it is."""
    source = node.inputs[0]
    match node.op:
        case "ExpandDims":
            axes: tuple[int, ...] = (int(builder.weight(node, 1)),)
        case "Squeeze":
            axes = node.numbers("squeeze_dims", ())
        case _:
            axes = (node.number("axis"),)
    if axes != (0,):
        raise ConversionError(f"{node}: expected the axis 0, which is that of the pictures, got {axes}")
    builder.set(node, builder.values[source], builder.channels[source])


def arithmetic(builder: Builder, node: Node) -> None:
    """A picture plus, minus or times a constant, or the sum of two pictures."""
    left, right = node.inputs
    if builder.is_weight(right):
        builder.set(node, _with_constant(builder, node), builder.channels[left])
    elif node.op == "AddV2" and not builder.is_weight(left):
        pictures = builder.picture(left), builder.picture(right)
        builder.set(node, builder.emit("Add", pictures, builder.output(node)), builder.channels[left])
    else:
        raise ConversionError(f"{node}: expected a picture and a constant, got {left} and {right}")


def _with_constant(builder: Builder, node: Node) -> Affine:
    source, constant = node.inputs[0], builder.weight(node, 1)
    if constant.size not in {1, builder.channels[source]} or constant.shape[:-1] != (1,) * (constant.ndim - 1):
        raise ConversionError(f"{node}: expected one number, or one for each channel, got shape {constant.shape}")
    value, number = builder.affine(source), constant.astype(np.float64).reshape(1, -1, 1, 1)
    match node.op:
        case "Mul":
            return Affine(value.source, value.scale * number, value.shift * number)
        case "Sub":
            return Affine(value.source, value.scale, value.shift - number)
    return Affine(value.source, value.scale, value.shift + number)


def convolution(builder: Builder, node: Node) -> None:
    """Convolution with bias and activation. Kernels go from HWIO to OIHW."""
    source, kernel = _input_and_kernel(builder, node, builder.weight(node, 1).transpose(3, 2, 0, 1))
    _convolution(builder, node, source, kernel, groups=1)


def depthwise_convolution(builder: Builder, node: Node) -> None:
    """One group for each input channel. Kernels (H, W, inputs, outputs of each) become (all outputs, 1, H, W)."""
    rows, columns, groups, each = builder.weight(node, 1).shape
    kernel = builder.weight(node, 1).transpose(2, 3, 0, 1).reshape(groups * each, 1, rows, columns)
    _convolution(builder, node, builder.picture(node.inputs[0]), kernel, groups=groups)


def _input_and_kernel(builder: Builder, node: Node, kernel: NDArray[Any]) -> tuple[str, NDArray[Any]]:
    """The input and the kernel of a convolution, with a factor of the input moved into the kernel."""
    name = node.inputs[0]
    value = builder.values[name]
    if isinstance(value, str) or not value.scale.all():
        return builder.picture(name), kernel
    shift = builder.constant(f"{name}/shifted/shift", (value.shift / value.scale).astype(np.float32))
    return builder.emit("Add", (value.source, shift), f"{name}/shifted"), (kernel * value.scale).astype(np.float32)


def _convolution(builder: Builder, node: Node, source: str, kernel: NDArray[Any], *, groups: int) -> None:
    has_bias, activation = _fused(node)
    inputs = [source, builder.constant(f"{node.name}/kernel", kernel)]
    if has_bias:
        inputs.append(builder.constant(f"{node.name}/bias", builder.weight(node, 2)))
    output = builder.output(node)
    made = f"{node.name}/convolution" if activation else output
    builder.emit("Conv", inputs, made, group=groups, **_window(node, kernel.shape[2:]))
    match activation:
        case "Relu":
            builder.emit("Relu", (made,), output)
        case "Relu6":
            bounds = builder.constant("zero", np.array(0, np.float32)), builder.constant("six", np.array(6, np.float32))
            builder.emit("Clip", (made, *bounds), output)
    builder.set(node, output, kernel.shape[0])


def _fused(node: Node) -> tuple[bool, str]:
    """(has a bias, name of the activation or "")."""
    match node.texts("fused_ops"):
        case ():
            return False, ""
        case ("BiasAdd",):
            return True, ""
        case ("BiasAdd", "Relu" | "Relu6" as activation):
            return True, activation
        case other:
            raise ConversionError(f"{node}: fused {', '.join(other)}; known is BiasAdd, alone or with Relu or Relu6")


def _window(node: Node, size: tuple[int, ...]) -> dict[str, Any]:
    """The attributes of the ONNX node that say how the kernel moves. Sizes are (rows, columns)."""
    padding, layout = node.text("padding"), node.text("data_format", "NHWC")
    if padding not in {"SAME", "VALID"} or layout != "NHWC":
        raise ConversionError(f"{node}: expected NHWC with padding SAME or VALID, got {layout} with {padding}")
    return {
        "auto_pad": "SAME_UPPER" if padding == "SAME" and size != (1, 1) else "VALID",
        "kernel_shape": size,
        "strides": node.numbers("strides", _ONES)[1:3],
        "dilations": node.numbers("dilations", _ONES)[1:3],
    }


def resize_bilinear(builder: Builder, node: Node) -> None:
    """Made larger by a constant factor: the size must be the input's own size times that."""
    factors = np.array([1, 1, *_growth(builder, node)], np.float32)
    grid = "half_pixel" if node.flag("half_pixel_centers") else "asymmetric"
    if node.flag("align_corners"):
        raise ConversionError(f"{node}: align_corners is not known; known are half_pixel_centers or neither")
    source = node.inputs[0]
    inputs = (builder.picture(source), "", builder.constant(f"{node.name}/factors", factors))
    output = builder.emit("Resize", inputs, builder.output(node), mode="linear", coordinate_transformation_mode=grid)
    builder.set(node, output, builder.channels[source])


def _growth(builder: Builder, node: Node) -> tuple[int, ...]:
    """(rows, columns) of Mul(StridedSlice(Shape(input), [1], [3], [1]), [rows, columns]), or of a size of its own."""
    source, name = node.inputs
    nodes = builder.graph.nodes
    if builder.size and builder.is_weight(name):
        wanted, own = builder.weight(node, 1).tolist(), _size_of(builder, source)
        if all(after % before == 0 for after, before in zip(wanted, own, strict=True)):
            return tuple(after // before for after, before in zip(wanted, own, strict=True))
    match nodes.get(name):
        case Node(op="Mul", inputs=(sliced, _)) as product:
            growth = builder.weight(product, 1)
            slicing = nodes.get(sliced)
            if slicing and slicing.op == "StridedSlice" and _is_size_of(builder, slicing, source):
                return tuple(int(factor) for factor in growth)
    raise ConversionError(f"{node}: expected the size to be the input's own size times a constant, got {name}")


def _size_of(builder: Builder, name: str) -> tuple[int, ...]:
    """(rows, columns) of a picture, in a graph whose pictures have one size."""
    node = builder.graph.nodes[name]
    if node.op == "Placeholder":
        return builder.size or ()
    if node.op == "ResizeBilinear":
        return tuple(builder.weight(node, 1).tolist())
    before = _size_of(builder, node.inputs[0])
    strides = node.numbers("strides", _ONES)[1:3]
    return tuple(-(-side // stride) for side, stride in zip(before, strides, strict=True))


def _is_size_of(builder: Builder, slicing: Node, source: str) -> bool:
    shape = builder.graph.nodes.get(slicing.inputs[0])
    ends = [builder.weight(slicing, index).tolist() for index in (1, 2, 3)]
    return shape is not None and shape.op == "Shape" and shape.inputs == (source,) and ends == [[1], [3], [1]]


def sigmoid(builder: Builder, node: Node) -> None:
    source = node.inputs[0]
    builder.set(
        node, builder.emit("Sigmoid", (builder.picture(source),), builder.output(node)), builder.channels[source]
    )


OPERATIONS: dict[str, Callable[[Builder, Node], None]] = {
    "AddV2": arithmetic,
    "Cast": cast,
    "DepthwiseConv2dNative": depthwise_convolution,
    "ExpandDims": batch_of_one,
    "FusedDepthwiseConv2dNative": depthwise_convolution,
    "Mul": arithmetic,
    "Placeholder": placeholder,
    "ResizeBilinear": resize_bilinear,
    "Sigmoid": sigmoid,
    "Squeeze": batch_of_one,
    "Sub": arithmetic,
    "Unpack": batch_of_one,
    "_FusedConv2D": convolution,
}
