"""What a model file must not do: be larger than anything sensible, read files elsewhere, or bring code of its own.

A model is data from somewhere; it is looked at before ONNX Runtime is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod
from pathlib import Path, PurePosixPath

import onnx
from google.protobuf.message import DecodeError
from onnx import FunctionProto, GraphProto, ModelProto, SparseTensorProto, TensorProto

from pipeline.errors import UserError
from stages.vision.foreign_text import shown

MAX_BYTES = 2 * 1024**3
"""Protobuf's own limit; larger models keep their weights in files beside them."""
MAX_STORED_BYTES = 64 * 1024**3
"""With the weights in other files."""
MAX_VALUES = 2**31
"""Of an input or output, as far as its sides are stated."""
MAX_PORTS = 1000
"""Inputs and outputs of a model."""
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
    outside = (tensor for tensor in _tensors(model) if tensor.data_location == TensorProto.EXTERNAL)
    return tuple(sorted({_location(path, tensor) for tensor in outside}))


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
    if not inside and _is_link_within(path.parent, place):
        raise UserError(
            f"{said}, which is a symbolic link out of the model's folder, and such links are not followed: copy "
            f"the files themselves to a folder of their own, with `cp -rL {path.parent} FOLDER`"
        )
    if not location or place.is_absolute() or not inside:
        raise UserError(f"{said}: expected a file in the model's own folder")
    if not there:
        raise UserError(f"{said}, which is not there: copy it beside the model")
    return target


def _is_link_within(folder: Path, place: PurePosixPath) -> bool:
    """Whether a location names something in this folder by its words, and only a link leads out of it."""
    try:
        return not place.is_absolute() and ".." not in place.parts and (folder / place).exists()
    except (OSError, ValueError):
        return False


def _check_sizes(path: Path, model: ModelProto, stored_bytes: int) -> None:
    """No input or output, and no weights, larger than what is sensible or stored."""
    if stored_bytes > MAX_STORED_BYTES:
        raise UserError(
            f"{path}: {stored_bytes / 1024**3:.1f} GiB with the weights beside it; "
            f"expected at most {MAX_STORED_BYTES // 1024**3} GiB"
        )
    _check_ports(path, model)
    for tensor in _tensors(model):
        # The smallest types store two values in a byte.
        if any(side < 0 for side in tensor.dims) or prod(tensor.dims) > 2 * stored_bytes:
            raise UserError(
                f"{path}: weights `{shown(tensor.name)}` say that they are {list(tensor.dims)}, and "
                f"{stored_bytes} bytes are stored in all: the file is damaged"
            )
    for sparse in _sparse_tensors(model):
        if not are_sides(sparse.dims):
            name = shown(sparse.values.name)
            raise UserError(
                f"{path}: sparse weights `{name}` have sides of {list(sparse.dims)}; expected at most {MAX_VALUES} "
                "values in all"
            )


def _check_ports(path: Path, model: ModelProto) -> None:
    weights = {tensor.name for tensor in model.graph.initializer}
    ports = [*(value for value in model.graph.input if value.name not in weights), *model.graph.output]
    if len(ports) > MAX_PORTS:
        raise UserError(f"{path}: {len(ports)} inputs and outputs; expected at most {MAX_PORTS}")
    for value in ports:
        sides = [side.dim_value for side in value.type.tensor_type.shape.dim if side.HasField("dim_value")]
        if not are_sides(sides):
            name = shown(value.name, _SHOWN)
            raise UserError(f"{path}: `{name}` has sides of {sides}; expected at most {MAX_VALUES} values in all")


def are_sides(sides: Iterable[int]) -> bool:
    """Whether an input or output may have these, as far as they are stated."""
    known = list(sides)
    return all(side >= 0 for side in known) and prod(known) <= MAX_VALUES


def _check_domains(path: Path, model: ModelProto) -> None:
    own = {function.domain for function in model.functions}
    unknown = sorted({node.domain for body in _bodies(model) for node in body.node} - _KNOWN_DOMAINS - own)
    if unknown:
        raise UserError(
            f"{path}: it has operators of {', '.join(map(shown, unknown))}, which ONNX Runtime does not know: name the "
            "library that has them: `custom_ops` in a graph, `--custom-ops` of inspect, bench, profile and compare"
        )


def _tensors(model: ModelProto) -> Iterator[TensorProto]:
    """All weights, wherever a file may hold some."""
    for body in _bodies(model):
        if isinstance(body, GraphProto):
            yield from body.initializer
        for node in body.node:
            for attribute in node.attribute:
                yield from (attribute.t, *attribute.tensors)
    for sparse in _sparse_tensors(model):
        yield from (sparse.values, sparse.indices)


def _sparse_tensors(model: ModelProto) -> Iterator[SparseTensorProto]:
    for body in _bodies(model):
        if isinstance(body, GraphProto):
            yield from body.sparse_initializer
        for node in body.node:
            for attribute in node.attribute:
                yield from (attribute.sparse_tensor, *attribute.sparse_tensors)


def _bodies(model: ModelProto) -> Iterator[GraphProto | FunctionProto]:
    """The graph, the model's own functions, and the graphs within the nodes of these."""
    waiting: list[GraphProto | FunctionProto] = [model.graph, *model.functions]
    while waiting:
        body = waiting.pop()
        yield body
        for node in body.node:
            for attribute in node.attribute:
                waiting.extend((attribute.g, *attribute.graphs))
