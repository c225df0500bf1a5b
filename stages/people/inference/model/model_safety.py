"""Refuses model files that are larger than anything sensible, read files elsewhere, or bring code of their own.

A model is data from somewhere; it is looked at before ONNX Runtime is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Set
from math import prod
from pathlib import Path, PurePosixPath

import onnx
from google.protobuf.message import DecodeError
from onnx import ModelProto, TensorProto

from camgraph.pipeline.errors import UserError
from camgraph.stages.people.inference.model.extent import ANALYSED, OPENED, Contents, contents_of, function_name
from camgraph.stages.people.inference.model.file_entries import MOST_ENTRIES, has_too_many_entries
from camgraph.stages.people.inference.model.model_memory import most_of
from camgraph.stages.vision.foreign_text import shown

MAX_BYTES = 2 * 1024**3
"""Protobuf's own limit; larger models keep their weights in files beside them."""
MAX_STORED_BYTES = 64 * 1024**3
"""With the weights in other files."""
MAX_VALUES = 2**31
"""Of an input or output, as far as its sides are declared."""
MAX_PORTS = 1000
"""Inputs and outputs of a model."""
MAX_SIDES = 64
"""Of weights, inputs and outputs."""
_SHOWN = 100
_NAMED = 10
_KNOWN_DOMAINS = frozenset(
    {"", "ai.onnx", "ai.onnx.ml", "ai.onnx.preview.training", "com.microsoft", "com.microsoft.nchwc"}
)


def checked_model(path: Path, *, custom_ops: bool = False) -> ModelProto:
    """The model without the weights that lie in other files. ``custom_ops``: a library for unknown operators is named.

    Raises UserError if it is no model, or one that must not be opened.
    """
    model = _loaded(path)
    contents = _bounded(path, model)
    _check_functions(path, model, contents)
    beside = _files_of(path, contents.tensors)
    _check_sizes(path, model, contents, sum(file.stat().st_size for file in (path, *beside)))
    if not custom_ops:
        _check_domains(path, model, contents.domains)
    return model


def too_large_to_analyse(model: ModelProto) -> str:
    """Why a checked model is known only by its file's statements, in words; "" if it was examined fully."""
    beyond = contents_of(model).extent.beyond(ANALYSED)
    return f"too large to analyse: it has {beyond}" if beyond else ""


def weight_files(path: Path) -> tuple[Path, ...]:
    """The files beside the model that hold its weights, each once, by name.

    Raises UserError if one lies elsewhere, or is not there.
    """
    return _files_of(path, _bounded(path, _loaded(path)).tensors)


def _bounded(path: Path, model: ModelProto) -> Contents:
    contents = contents_of(model)
    if beyond := contents.extent.beyond(OPENED):
        raise UserError(
            f"{path}: it has {beyond}: such a model is not opened; export it with fewer", error_id="model-bounds"
        )
    return contents


def _files_of(path: Path, tensors: Iterable[TensorProto]) -> tuple[Path, ...]:
    outside = (tensor for tensor in tensors if tensor.data_location == TensorProto.EXTERNAL)
    return tuple(sorted({_location(path, tensor) for tensor in outside}))


def _loaded(path: Path) -> ModelProto:
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise UserError(
                f"{path}: {size / 1024**3:.1f} GiB; expected at most {MAX_BYTES // 1024**3} GiB for an ONNX file",
                error_id="model-bounds",
            )
        if has_too_many_entries(path):
            raise UserError(
                f"{path}: it has more than {MOST_ENTRIES:,} entries: such a model is not opened; export it with fewer",
                error_id="model-bounds",
            )
        # Without the format the suffix would decide it, whatever the content.
        return _opened_sides(onnx.load(str(path), format="protobuf", load_external_data=False))
    except (DecodeError, ValueError, OSError) as error:
        raise UserError(f"{path}: cannot be read as an ONNX model: {error}", error_id="model-unreadable") from None


def _opened_sides(model: ModelProto) -> ModelProto:
    """With no number for sides of -1, which PaddlePaddle's exporter writes for any, and ONNX Runtime takes for that."""
    graph = model.graph
    for value in (*graph.input, *graph.output, *graph.value_info):
        for side in value.type.tensor_type.shape.dim:
            if side.dim_value < 0:
                side.ClearField("dim_value")
    return model


def _location(path: Path, tensor: TensorProto) -> Path:
    """A file of weights lies in the model's folder, or below it."""
    location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
    message = f"{path}: weights `{shown(tensor.name)}` lie in `{shown(location[:_SHOWN])}`"
    place = PurePosixPath(location)
    try:
        target = (path.parent / place).resolve()
        inside = target.is_relative_to(path.parent.resolve())
        there = target.is_file()
    except (OSError, ValueError):  # longer than a name may be, or with characters that none has
        inside = there = False
    if not inside and _is_link_within(path.parent, place):
        raise UserError(
            f"{message}, which is a symbolic link out of the model's folder, and such links are not followed: copy "
            f"the files themselves to a folder of their own, with `cp -rL {path.parent} FOLDER`",
            error_id="model-parts",
        )
    if not location or place.is_absolute() or not inside:
        raise UserError(f"{message}: expected a file in the model's own folder", error_id="model-parts")
    if not there:
        raise UserError(f"{message}, which is not there: copy it beside the model", error_id="model-parts")
    return target


def _is_link_within(folder: Path, place: PurePosixPath) -> bool:
    """Whether a location names something in this folder by its words, and only a link leads out of it."""
    try:
        return not place.is_absolute() and ".." not in place.parts and (folder / place).exists()
    except (OSError, ValueError):
        return False


def _check_sizes(path: Path, model: ModelProto, contents: Contents, stored_bytes: int) -> None:
    """Refuse an input or output, or weights, larger than sensible or than stored."""
    if stored_bytes > MAX_STORED_BYTES:
        raise UserError(
            f"{path}: {stored_bytes / 1024**3:.1f} GiB with the weights beside it; "
            f"expected at most {MAX_STORED_BYTES // 1024**3} GiB",
            error_id="model-bounds",
        )
    _check_ports(path, model)
    for tensor in contents.tensors:
        sides = tensor.dims[: MAX_SIDES + 1]
        # The smallest types store two values in a byte.
        if len(sides) > MAX_SIDES or any(side < 0 for side in sides) or prod(sides) > 2 * stored_bytes:
            raise UserError(
                f"{path}: weights `{shown(tensor.name)}` say that they are {list(sides)}, and "
                f"{stored_bytes} bytes are stored in all: the file is damaged",
                error_id="model-bounds",
            )
    for sparse in contents.sparse:
        sides = sparse.dims[: MAX_SIDES + 1]
        if not are_sides(sides):
            name = shown(sparse.values.name)
            raise UserError(
                f"{path}: sparse weights `{name}` have sides of {list(sides)}; expected at most {MAX_VALUES} "
                "values in all",
                error_id="model-bounds",
            )
    # ONNX Runtime fills them up with zeros as soon as it loads the model.
    filled = sum(prod(sparse.dims) * _bytes_each(sparse.values) for sparse in contents.sparse)
    if filled > (most := most_of(None) or filled):
        raise UserError(
            f"{path}: its sparse weights take {filled >> 20:,} MB of memory once they are filled up with zeros; "
            f"expected at most {most >> 20:,} MB, half of this machine's memory: export it with dense weights",
            error_id="model-bounds",
        )


def _bytes_each(tensor: TensorProto) -> int:
    try:
        return onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
    except KeyError:
        return 1


def _check_ports(path: Path, model: ModelProto) -> None:
    weights = {tensor.name for tensor in model.graph.initializer}
    ports = [*(value for value in model.graph.input if value.name not in weights), *model.graph.output]
    if len(ports) > MAX_PORTS:
        raise UserError(
            f"{path}: {len(ports)} inputs and outputs; expected at most {MAX_PORTS}", error_id="model-bounds"
        )
    for value in ports:
        dims = value.type.tensor_type.shape.dim[: MAX_SIDES + 1]
        sides = [side.dim_value for side in dims if side.HasField("dim_value")]
        if not are_sides(sides):
            name = shown(value.name, _SHOWN)
            raise UserError(
                f"{path}: `{name}` has sides of {sides}; expected at most {MAX_VALUES} values in all",
                error_id="model-bounds",
            )


def are_sides(sides: Iterable[int]) -> bool:
    """Whether an input or output may have these, as far as they are declared."""
    known = list(sides)
    return len(known) <= MAX_SIDES and all(side >= 0 for side in known) and prod(known) <= MAX_VALUES


def _check_functions(path: Path, model: ModelProto, contents: Contents) -> None:
    """Refuse two functions with the same name: it is unknown which one would run."""
    if contents.hands_graphs:
        raise UserError(
            f"{path}: it hands graphs to its functions as attributes: such a model is not opened; export it "
            "without them, or without functions",
            error_id="model-bounds",
        )
    twice = [name for name, times in Counter(map(function_name, model.functions)).items() if times > 1]
    if twice:
        raise UserError(
            f"{path}: it has several functions `{shown(twice[0], _SHOWN)}` (domain:name:overload): expected one of "
            "each; export it again",
            error_id="model-bounds",
        )


def _check_domains(path: Path, model: ModelProto, domains: Set[str]) -> None:
    own = {function.domain for function in model.functions}
    unknown = sorted(domains - _KNOWN_DOMAINS - own)
    if unknown:
        named = ", ".join(shown(domain, _SHOWN) for domain in unknown[:_NAMED]) + (", ..." if unknown[_NAMED:] else "")
        raise UserError(
            f"{path}: it has operators of {named}, which ONNX Runtime does not know: name the "
            "library that has them: `custom_ops` in a graph, `--custom-ops` of inspect, bench, profile and compare",
            error_id="model-unreadable",
        )
