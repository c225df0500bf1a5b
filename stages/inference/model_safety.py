"""What a model file must not do: be larger than anything sensible, read files elsewhere, or bring code of its own.

A model is data from somewhere; it is looked at before ONNX Runtime is.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import onnx
from google.protobuf.message import DecodeError
from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from pipeline.errors import UserError

MAX_BYTES = 2 * 1024**3
"""Protobuf's own limit; larger models keep their weights in files beside them."""
_KNOWN_DOMAINS = frozenset(
    {"", "ai.onnx", "ai.onnx.ml", "ai.onnx.preview.training", "com.microsoft", "com.microsoft.nchwc"}
)


def checked_model(path: Path, *, custom_ops: bool = False) -> ModelProto:
    """The model without the weights that lie in other files. ``custom_ops``: a library for unknown operators is named.

    Raises UserError where it is no model, or one that must not be opened.
    """
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise UserError(
            f"{path}: {size / 1024**3:.1f} GiB; expected at most {MAX_BYTES // 1024**3} GiB for an ONNX file"
        )
    try:
        model = onnx.load(str(path), load_external_data=False)
    except (DecodeError, ValueError, OSError) as error:
        raise UserError(f"{path}: cannot be read as an ONNX model: {error}") from None
    for tensor in _external(model.graph):
        _check_location(path, tensor)
    if not custom_ops:
        _check_domains(path, model)
    return model


def _check_location(path: Path, tensor: TensorProto) -> None:
    """A file of weights lies in the model's folder, or below it."""
    location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
    place = PurePosixPath(location)
    target = (path.parent / place).resolve()
    if not location or place.is_absolute() or not target.is_relative_to(path.parent.resolve()):
        raise UserError(
            f"{path}: weights `{tensor.name}` lie in `{location}`: expected a file in the model's own folder"
        )
    if not target.is_file():
        raise UserError(
            f"{path}: weights `{tensor.name}` lie in `{location}`, which is not there: copy it beside the model"
        )


def _check_domains(path: Path, model: ModelProto) -> None:
    own = {function.domain for function in model.functions}
    unknown = sorted({node.domain for node in _nodes(model.graph)} - _KNOWN_DOMAINS - own)
    if unknown:
        raise UserError(
            f"{path}: it has operators of {', '.join(unknown)}, which ONNX Runtime does not know: name the library "
            "that has them in `custom_ops`"
        )


def _external(graph: GraphProto) -> Iterator[TensorProto]:
    tensors = [*graph.initializer, *(attribute.t for node in _nodes(graph) for attribute in node.attribute)]
    return (tensor for tensor in tensors if tensor.data_location == TensorProto.EXTERNAL)


def _nodes(graph: GraphProto) -> Iterator[NodeProto]:
    """Those of the graph, and of the graphs within them."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _nodes(inner)
