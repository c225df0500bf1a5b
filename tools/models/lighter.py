"""Makes lighter models: half precision, and eight bits with calibration on the user's own frames.

quantize   weights s8, by channel; activations u8, their ranges from frames; in QDQ form
head       nodes from which an output is reached over fewer than `float_head` convolutions stay in float:
           quantized end nodes gave confidences of zero
"""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
from numpy.typing import NDArray

from pipeline.errors import UserError
from stages.inference.model_safety import checked_model

_CONVOLUTIONS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})


def halve(model: Path, out: Path) -> None:
    """The model with weights and arithmetic in float16; its inputs and outputs stay as they are."""
    from onnxruntime.transformers.float16 import convert_float_to_float16  # noqa: PLC0415 - takes a while

    converted = convert_float_to_float16(whole_model(model), keep_io_types=True, disable_shape_infer=False)
    _save(converted, model, out)


def quantize(model: Path, out: Path, inputs: Iterator[dict[str, NDArray[Any]]], *, float_head: int) -> int:
    """The model in eight bits, calibrated on ``inputs``; how many nodes stayed in float by their position."""
    from onnxruntime import quantization  # noqa: PLC0415 - takes a while

    kept = head_nodes(whole_model(model).graph, float_head)
    with tempfile.TemporaryDirectory() as folder:
        named = _named(model, Path(folder))
        quantization.quantize_static(
            str(named),
            str(new_file(out)),
            _Reader(inputs),
            quant_format=quantization.QuantFormat.QDQ,
            activation_type=quantization.QuantType.QUInt8,
            weight_type=quantization.QuantType.QInt8,
            per_channel=True,
            nodes_to_exclude=kept,
        )
    _keep_metadata(model, out)
    return len(kept)


def quantize_dynamic(model: Path, out: Path, *, float_head: int) -> int:
    """The model with weights in eight bits and ranges that are found in each run; as `quantize`."""
    from onnxruntime import quantization  # noqa: PLC0415 - takes a while

    kept = head_nodes(whole_model(model).graph, float_head)
    with tempfile.TemporaryDirectory() as folder:
        named = _named(model, Path(folder))
        quantization.quantize_dynamic(
            str(named), str(new_file(out)), weight_type=quantization.QuantType.QUInt8, nodes_to_exclude=kept
        )
    _keep_metadata(model, out)
    return len(kept)


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


class _Reader:
    """Frames as ONNX Runtime's calibration asks for them."""

    def __init__(self, inputs: Iterator[dict[str, NDArray[Any]]]) -> None:
        self._inputs = inputs

    def get_next(self) -> dict[str, NDArray[Any]] | None:
        return next(self._inputs, None)


def _named(model: Path, folder: Path) -> Path:
    """A copy whose nodes have names: by these they are left out."""
    named = folder / "named.onnx"
    onnx.save(whole_model(model), str(named))
    return named


def whole_model(model: Path) -> onnx.ModelProto:
    """The model with its weights, and a name for each node. Raises UserError where it is none."""
    checked_model(model)
    whole = onnx.load(str(model))
    for number, node in enumerate(whole.graph.node):
        node.name = node.name or f"{node.op_type}_{number}"
    return whole


def new_file(out: Path) -> Path:
    """A file that can be written. Raises UserError where its folder is none."""
    if not out.parent.is_dir():
        raise UserError(f"{out}: {out.parent} is no folder")
    return out


def _save(made: onnx.ModelProto, model: Path, out: Path) -> None:
    onnx.save(made, str(new_file(out)))
    _keep_metadata(model, out)


def _keep_metadata(model: Path, out: Path) -> None:
    """What the model says of itself (classes, keypoints) stays true, and is kept."""
    metadata = {entry.key: entry.value for entry in onnx.load(str(model), load_external_data=False).metadata_props}
    made = onnx.load(str(out))
    known = {entry.key: entry.value for entry in made.metadata_props}
    onnx.helper.set_model_props(made, {**known, **metadata})
    onnx.save(made, str(out))
