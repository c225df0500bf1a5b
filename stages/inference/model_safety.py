"""What a model file must not do: be larger than anything sensible, read files elsewhere, or bring code of its own.

A model is data from somewhere; it is looked at before ONNX Runtime is.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from pathlib import Path, PurePosixPath

import onnx
from google.protobuf.message import DecodeError
from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from pipeline.errors import UserError
from stages.vision.foreign_text import shown

MAX_BYTES = 2 * 1024**3
"""Protobuf's own limit; larger models keep their weights in files beside them."""
MAX_STORED_BYTES = 64 * 1024**3
"""With the weights in other files."""
MAX_VALUES = 2**31
"""Of an input or output, as far as its sides are stated."""
_SHOWN = 100
_KNOWN_DOMAINS = frozenset(
    {"", "ai.onnx", "ai.onnx.ml", "ai.onnx.preview.training", "com.microsoft", "com.microsoft.nchwc"}
)


def checked_model(path: Path, *, custom_ops: bool = False) -> ModelProto:
    """The model without the weights that lie in other files. ``custom_ops``: a library for unknown operators is named.

    Raises UserError where it is no model, or one that must not be opened.
    """
    model = _loaded(path)
    beside = weight_files(path, model)
    _check_sizes(path, model, sum(file.stat().st_size for file in (path, *beside)))
    if not custom_ops:
        _check_domains(path, model)
    return model


def weight_files(path: Path, model: ModelProto | None = None) -> tuple[Path, ...]:
    """The files beside the model that hold its weights, each once, by name.

    Raises UserError where one lies elsewhere, or is not there.
    """
    model = model or _loaded(path)
    return tuple(sorted({_location(path, tensor) for tensor in _external(model.graph)}))


def _loaded(path: Path) -> ModelProto:
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise UserError(
                f"{path}: {size / 1024**3:.1f} GiB; expected at most {MAX_BYTES // 1024**3} GiB for an ONNX file"
            )
        # Without the format its suffix would decide it, whatever the file holds.
        return onnx.load(str(path), format="protobuf", load_external_data=False)
    except (DecodeError, ValueError, OSError) as error:
        raise UserError(f"{path}: cannot be read as an ONNX model: {error}") from None


def _location(path: Path, tensor: TensorProto) -> Path:
    """A file of weights lies in the model's folder, or below it."""
    location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
    said = f"{path}: weights `{shown(tensor.name)}` lie in `{shown(location[:_SHOWN])}`"
    place = PurePosixPath(location)
    try:
        target = (path.parent / place).resolve()
        inside = target.is_relative_to(path.parent.resolve())
        there = target.is_file()
    except (OSError, ValueError):  # longer than a name may be, or with characters that none has
        inside = there = False
    if not location or place.is_absolute() or not inside:
        raise UserError(f"{said}: expected a file in the model's own folder")
    if not there:
        raise UserError(f"{said}, which is not there: copy it beside the model")
    return target


def _check_sizes(path: Path, model: ModelProto, stored_bytes: int) -> None:
    """No input or output, and no weights, larger than what is sensible or stored."""
    if stored_bytes > MAX_STORED_BYTES:
        raise UserError(
            f"{path}: {stored_bytes / 1024**3:.1f} GiB with the weights beside it; "
            f"expected at most {MAX_STORED_BYTES // 1024**3} GiB"
        )
    for value in (*model.graph.input, *model.graph.output):
        sides = [side.dim_value for side in value.type.tensor_type.shape.dim if side.HasField("dim_value")]
        if any(side < 0 for side in sides) or prod(sides) > MAX_VALUES:
            name = shown(value.name)
            raise UserError(f"{path}: `{name}` has sides of {sides}; expected at most {MAX_VALUES} values in all")
    for tensor in (tensor for graph in _graphs(model.graph) for tensor in graph.initializer):
        # The smallest types store two values in a byte.
        if any(side < 0 for side in tensor.dims) or prod(tensor.dims) > 2 * stored_bytes:
            raise UserError(
                f"{path}: weights `{shown(tensor.name)}` say that they are {list(tensor.dims)}, and "
                f"{stored_bytes} bytes are stored in all: the file is damaged"
            )


def _check_domains(path: Path, model: ModelProto) -> None:
    own = {function.domain for function in model.functions}
    unknown = sorted({node.domain for node in _nodes(model.graph)} - _KNOWN_DOMAINS - own)
    if unknown:
        raise UserError(
            f"{path}: it has operators of {', '.join(map(shown, unknown))}, which ONNX Runtime does not know: name the "
            "library that has them in `custom_ops`"
        )


def _external(graph: GraphProto) -> Iterator[TensorProto]:
    for inner in _graphs(graph):
        tensors = [*inner.initializer, *(attribute.t for node in inner.node for attribute in node.attribute)]
        yield from (tensor for tensor in tensors if tensor.data_location == TensorProto.EXTERNAL)


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """The graph, and those within its nodes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _graphs(inner)


def _nodes(graph: GraphProto) -> Iterator[NodeProto]:
    for inner in _graphs(graph):
        yield from inner.node
