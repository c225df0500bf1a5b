"""Reads the signature of a model file, for `stages.vision.recognition`."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from onnx import ModelProto, TensorProto, ValueInfoProto

from camgraph.pipeline.errors import UserError
from camgraph.stages.messages import Tensor
from camgraph.stages.people.inference.engines.onnxruntime_engine import analyse
from camgraph.stages.people.inference.model.model_safety import checked_model, too_large_to_analyse
from camgraph.stages.vision.foreign_text import shown
from camgraph.stages.vision.recognition import MIXING, Declared, Port, Reading, Signature, Unrecognised, recognise

_NUMBERS = frozenset(
    f"tensor({name})"
    for name in (
        "float", "float16", "double", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    )
)  # fmt: skip
_TYPES = {"float32": "float", "float64": "double"}
"""NumPy's names of types that ONNX Runtime calls otherwise."""


def signature_of_file(path: Path, libraries: tuple[Path, ...] = ()) -> Signature:
    """Of a model file, which is opened once as long as it does not change; ``libraries`` have its own operators.

    Raises UserError if it is none, or one that must not be opened.
    """
    return _reading_of(path, libraries)[0]


def why_not_analysed(path: Path, libraries: tuple[Path, ...] = ()) -> str:
    """Why the signature of a model file holds only its own statements, in words; "" if it was opened for it, or may be.

    Raises as `signature_of_file`.
    """
    return _reading_of(path, libraries)[1]


def _reading_of(path: Path, libraries: tuple[Path, ...]) -> tuple[Signature, str]:
    try:
        status = path.stat()
    except OSError as error:
        raise UserError(
            f"{path}: cannot be read: {error.strerror}; expected an ONNX file", error_id="model-unreadable"
        ) from None
    return _read(path, status.st_mtime_ns, status.st_size, libraries)


@lru_cache(maxsize=16)
def _read(path: Path, _changed_ns: int, _size: int, libraries: tuple[Path, ...]) -> tuple[Signature, str]:
    model = checked_model(path, custom_ops=bool(libraries))
    too_large = too_large_to_analyse(model)
    # Without opening it: looking at a model runs no code of its libraries, and must not take for ever.
    signature = _declared(model) if libraries or too_large else analyse(path)
    for port in signature.outputs:
        if port.onnx_type not in _NUMBERS:
            raise UserError(
                f"{path}: output `{shown(port.name)}` is {port.onnx_type or 'of no type'}; expected tensors of "
                "numbers: export the model without it",
                error_id="model-unreadable",
            )
    return signature, too_large


def _declared(model: ModelProto) -> Signature:
    """The file's own statements: sides that only a run would show are open."""
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = tuple(_port(value) for value in model.graph.input if value.name not in weights)
    outputs = tuple(_port(value) for value in model.graph.output)
    return Signature(inputs, outputs, {entry.key: entry.value for entry in model.metadata_props})


def _port(value: ValueInfoProto) -> Port:
    tensor = value.type.tensor_type
    known = tensor.elem_type in TensorProto.DataType.values()
    name = TensorProto.DataType.Name(tensor.elem_type).lower() if known else "undefined"
    sides = tuple(side.dim_value if side.HasField("dim_value") else side.dim_param or None for side in tensor.shape.dim)
    kind = f"tensor({name})" if value.type.HasField("tensor_type") else str(value.type.WhichOneof("value"))
    return Port(value.name, sides, kind)


def signature_of_item(item: Tensor, declared: Declared) -> Signature:
    """The signature as an item's outputs show it; nothing is known of the input."""
    skipped = 2 if declared.format in MIXING else 1
    ports = (
        Port(name, (None, *array.shape[skipped:]), f"tensor({_TYPES.get(array.dtype.name, array.dtype.name)})")
        for name, array in item.arrays_by_name.items()
    )
    return Signature((Port("picture", (None, 3, None, None), "tensor(uint8)"),), tuple(ports))


def read_model(path: Path, declared: Declared, libraries: tuple[Path, ...] = ()) -> Reading:
    """The format of a model file. Raises UserError if it is not recognised."""
    return read_signature(signature_of_file(path, libraries), str(path), declared)


def read_signature(signature: Signature, name: str, declared: Declared) -> Reading:
    """The model of this signature, for a graph; ``name`` is its in errors.

    Raises UserError if that cannot be said.
    """
    try:
        return recognise(signature, declared)
    except Unrecognised as error:
        raise UserError(f"{name}: {error}{error.in_graph}", error_id="model-does-not-fit") from None
