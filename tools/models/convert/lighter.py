"""Makes lighter models: half precision, and eight bits with calibration on the user's own frames.

quantize   weights s8 of seven bits, by channel; activations u8, their ranges from frames; in QDQ form
head       nodes from which an output is reached over fewer than `float_head` convolutions stay in float:
           quantized end nodes gave confidences of zero
"""

from __future__ import annotations

import logging
import tempfile
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import onnx
from numpy.typing import NDArray
from onnx import version_converter

from camgraph.pipeline.errors import UserError
from camgraph.stages.people.inference.engines.engine import one_line
from camgraph.stages.people.inference.model.model_safety import checked_model
from camgraph.stages.people.inference.model.node_order import sort_nodes
from camgraph.tools.models.convert.calibration import CheckedFrames, check_ranges
from camgraph.tools.models.convert.model_output import save_model, written

_LEAST_OPSET = 13
"""Of QuantizeLinear with a scale for each channel."""
_CONVOLUTIONS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})


def halve(model: Path, out: Path) -> None:
    """The model with weights and arithmetic in float16; its inputs and outputs stay as they are.

    Raises UserError, as the others here, if it is no model, or cannot be written.
    """
    from onnxruntime.transformers.float16 import convert_float_to_float16  # noqa: PLC0415 - takes a while

    with written(model, out) as part:
        whole = whole_model(model)
        _check_floats(model, whole)
        converted = convert_float_to_float16(whole, keep_io_types=True, disable_shape_infer=False)
        sort_nodes(converted.graph)  # the converter puts some of its nodes behind all others
        save_model(converted, part)
        _keep_metadata(whole, part)


def quantize(model: Path, out: Path, inputs: Iterator[dict[str, NDArray[Any]]], *, float_head: int) -> int:
    """The model in eight bits, calibrated on ``inputs``; how many nodes stayed in float by their position.

    Raises UserError if nothing in it could be quantized, and if it gives no numbers for one of them.
    """
    from onnxruntime import quantization  # noqa: PLC0415 - takes a while

    with _quantizing(model, out, float_head) as (named, part, kept), _named_failures(model):
        quantization.quantize_static(
            str(named),
            str(part),
            CheckedFrames(model, inputs),
            quant_format=quantization.QuantFormat.QDQ,
            activation_type=quantization.QuantType.QUInt8,
            weight_type=quantization.QuantType.QInt8,
            per_channel=True,
            # With 8 bits, processors without VNNI (AVX2 alone) add two products in 16 bits, and cut off what is larger.
            reduce_range=True,
            nodes_to_exclude=kept,
        )
    return len(kept)


def quantize_dynamic(model: Path, out: Path, *, float_head: int) -> int:
    """The model with weights in eight bits and ranges that are found in each run; as `quantize`."""
    from onnxruntime import quantization  # noqa: PLC0415 - takes a while

    with _quantizing(model, out, float_head) as (named, part, kept):
        quantization.quantize_dynamic(
            str(named), str(part), weight_type=quantization.QuantType.QUInt8, nodes_to_exclude=kept
        )
    return len(kept)


@contextmanager
def _quantizing(model: Path, out: Path, float_head: int) -> Iterator[tuple[Path, Path, list[str]]]:
    """A copy of the model whose nodes have names, the file to write to, and the names of those that stay in float."""
    whole = whole_model(model)
    _check_floats(model, whole)
    whole = _modern(model, whole)
    kept = head_nodes(whole.graph, float_head)
    with written(model, out) as part, tempfile.TemporaryDirectory() as folder:
        named = Path(folder) / "named.onnx"
        save_model(whole, named)
        with _without_advice():
            yield named, part, kept
        _keep_metadata(whole, part)
        made = onnx.load(str(part), format="protobuf").graph
        check_ranges(model, made)
        if not quantized_nodes(made) - quantized_nodes(whole.graph):
            raise UserError(
                f"{model}: nothing in it was quantized, and nothing is written: {len(kept)} of its "
                f"{len(whole.graph.node)} nodes stay in float as its head (--float-head), and no other has weights or "
                "values that fit into eight bits",
                error_id="model-conversion",
            )


def _check_floats(model: Path, whole: onnx.ModelProto) -> None:
    """Raises UserError if its weights are in eight bits or in half precision already."""
    read = {name for node in whole.graph.node if node.op_type in _CONVOLUTIONS for name in node.input}
    halves = [entry.name for entry in whole.graph.initializer if entry.data_type == onnx.TensorProto.FLOAT16]
    if quantized_nodes(whole.graph) or read.intersection(halves):
        kind = "quantized" if quantized_nodes(whole.graph) else "in float16"
        raise UserError(
            f"{model}: it is {kind} already, and nothing lighter is made of it: take the model in float32 that it was "
            "made of",
            error_id="model-conversion",
        )


def _modern(model: Path, whole: onnx.ModelProto) -> onnx.ModelProto:
    """The model in an opset that knows scales by channel, if its own is older. Raises UserError if it cannot be."""
    opset = next((entry.version for entry in whole.opset_import if entry.domain in ("", "ai.onnx")), _LEAST_OPSET)
    if opset >= _LEAST_OPSET:
        return whole
    try:
        made = version_converter.convert_version(whole, _LEAST_OPSET)
    except (RuntimeError, version_converter.ConvertError) as error:
        raise UserError(
            f"{model}: its opset is {opset}, and it cannot be brought to {_LEAST_OPSET}, which quantizing needs "
            f"({one_line(error)}): export the model again with opset {_LEAST_OPSET} or later",
            error_id="model-conversion",
        ) from None
    onnx.helper.set_model_props(made, {entry.key: entry.value for entry in whole.metadata_props})
    return made


@contextmanager
def _named_failures(model: Path) -> Iterator[None]:
    """ONNX Runtime asserts that a scale is a number, if a value between the nodes was none on all frames."""
    try:
        yield
    except AssertionError as error:
        if "scale" not in str(error):
            raise
        raise UserError(
            f"{model}: values between its nodes are no numbers (NaN) for the frames that it is calibrated on, and "
            "cannot be quantized: look at its weights",
            error_id="model-conversion",
        ) from None


@contextmanager
def _without_advice() -> Iterator[None]:
    """ONNX Runtime advises, at each call, to prepare the model first: nobody can do that here, and nothing is lost.

    Its warnings about a model go to stderr, in colours, and help nobody who did not write it.

    Measured with yolo11n-pose and 100 frames: the same people, joints and confidences with it and without it.
    """
    import onnxruntime  # noqa: PLC0415 - takes a while

    onnxruntime.set_default_logger_severity(4)
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def quantized_nodes(graph: onnx.GraphProto) -> int:
    """How many nodes of a graph calculate with eight bits, or go from and to them."""
    return sum("Quantize" in node.op_type or node.op_type.endswith("Integer") for node in graph.node)


def head_nodes(graph: onnx.GraphProto, convolutions: int) -> list[str]:
    """Names of the nodes from which an output is reached over fewer than so many convolutions, themselves counted."""
    made_by = {output: node for node in graph.node for output in node.output}
    nearest: dict[str, int] = {}
    waiting = deque((output.name, 0) for output in graph.output)
    while waiting:
        value, passed = waiting.popleft()
        node = made_by.get(value)
        if node is None or nearest.get(node.output[0], convolutions) <= passed:
            continue
        nearest[node.output[0]] = passed
        waiting.extend((name, passed + (node.op_type in _CONVOLUTIONS)) for name in node.input)
    return [node.name for node in graph.node if node.output and node.output[0] in nearest]


def whole_model(model: Path) -> onnx.ModelProto:
    """The model with its weights, and a name for each node. Raises UserError if it is none."""
    checked_model(model)
    whole = onnx.load(str(model), format="protobuf")
    for number, node in enumerate(whole.graph.node):
        node.name = node.name or f"{node.op_type}_{number}"
    return whole


def _keep_metadata(whole: onnx.ModelProto, part: Path) -> None:
    """The model's own metadata (classes, keypoints) stay true, and are kept."""
    made = onnx.load(str(part), format="protobuf")
    metadata = {entry.key: entry.value for entry in (*made.metadata_props, *whole.metadata_props)}
    onnx.helper.set_model_props(made, metadata)
    save_model(made, part)
