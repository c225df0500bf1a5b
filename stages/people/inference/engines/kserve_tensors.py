"""Tensors as the KServe v2 protocol carries them: names of types, shapes, raw bytes. Pure.

protocol          FP32  [-1, 3, 640, 640]   bytes, little-endian, row by row
a model's port    tensor(float)  (None, 3, 640, 640)
numpy             float32  (8, 3, 640, 640)

Source: the protocol's gRPC definition (`grpc_predict_v2.proto`), and the types of Triton's `model_config.proto`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple, Protocol

import numpy as np

from camgraph.pipeline.messages import Array
from camgraph.pipeline.system.redaction import redacted_line
from camgraph.stages.people.inference.model.model_safety import MAX_VALUES, are_sides
from camgraph.stages.vision.recognition import Port

_SHOWN = 100
"""Letters of a server's words."""


class _Kind(NamedTuple):
    onnx: str
    dtype: str
    contents: str
    """The place of values in an answer that are not raw; "" if the protocol has none for them."""


_KINDS: Mapping[str, _Kind] = {
    "BOOL": _Kind("tensor(bool)", "?", "bool_contents"),
    "UINT8": _Kind("tensor(uint8)", "u1", "uint_contents"),
    "UINT16": _Kind("tensor(uint16)", "<u2", "uint_contents"),
    "UINT32": _Kind("tensor(uint32)", "<u4", "uint_contents"),
    "UINT64": _Kind("tensor(uint64)", "<u8", "uint64_contents"),
    "INT8": _Kind("tensor(int8)", "i1", "int_contents"),
    "INT16": _Kind("tensor(int16)", "<i2", "int_contents"),
    "INT32": _Kind("tensor(int32)", "<i4", "int_contents"),
    "INT64": _Kind("tensor(int64)", "<i8", "int64_contents"),
    "FP16": _Kind("tensor(float16)", "<f2", ""),
    "FP32": _Kind("tensor(float)", "<f4", "fp32_contents"),
    "FP64": _Kind("tensor(double)", "<f8", "fp64_contents"),
}
_DATATYPES = {kind.onnx: name for name, kind in _KINDS.items()}


class Described(Protocol):
    """A tensor in a server's account of a model, or in an answer."""

    name: str
    datatype: str
    shape: Sequence[int]


class NoTensor(ValueError):
    """A tensor of a server is none of the protocol's, or not the promised one."""


def port_of(tensor: Described) -> Port:
    """An input or output as a server describes it: a side of -1 may be any. Raises NoTensor."""
    kind = _KINDS.get(tensor.datatype)
    if kind is None:
        known = ", ".join(_KINDS)
        kind_there = redacted_line(tensor.datatype, _SHOWN) or "(none)"
        raise NoTensor(f"`{redacted_line(tensor.name, _SHOWN)}` is of type {kind_there}; expected one of {known}")
    sides = tuple(side if side >= 0 else None for side in tensor.shape)
    if not are_sides(side for side in sides if side is not None):
        name, there = redacted_line(tensor.name, _SHOWN), redacted_line(str(list(tensor.shape)), _SHOWN)
        raise NoTensor(f"`{name}` has sides of {there}; expected at most {MAX_VALUES} values in all")
    return Port(tensor.name, sides, kind.onnx)


def datatype_of(port: Port) -> str:
    """The protocol's name of a port's type."""
    return _DATATYPES[port.onnx_type]


def arrays_of(outputs: Sequence[Any], raw: Sequence[bytes], ports: Iterable[Port]) -> dict[str, Array]:
    """The arrays of an answer by name, in the order of ``ports``; they are read-only.

    ``outputs`` are the answer's tensors, ``raw`` the bytes of each, or nothing if they hold their values themselves.
    Raises NoTensor if one is missing, or breaks its port's promise.
    """
    places = {output.name: place for place, output in enumerate(outputs)}
    if raw and len(raw) != len(outputs):
        raise NoTensor(f"expected the bytes of {len(outputs)} outputs, got those of {len(raw)}")
    arrays = {}
    for port in ports:
        if port.name not in places:
            there = redacted_line(", ".join(places), _SHOWN) or "none"
            raise NoTensor(f"expected an output `{redacted_line(port.name, _SHOWN)}`, got {there}")
        place = places[port.name]
        _agree(outputs[place], port)
        arrays[port.name] = _array(outputs[place], raw[place] if raw else None)
    return arrays


def _agree(output: Described, port: Port) -> None:
    """Refuse a type or a shape that the port excludes."""
    got = tuple(output.shape)
    fits = len(got) == len(port.shape) and all(
        side == declared if isinstance(declared, int) else side >= 0
        for side, declared in zip(got, port.shape, strict=True)
    )
    expected = datatype_of(port)
    if not fits or output.datatype != expected:
        declared = ", ".join("any" if side is None else str(side) for side in port.shape)
        raise NoTensor(
            f"output `{redacted_line(port.name, _SHOWN)}`: expected {expected} [{declared}], "
            f"got {output.datatype or 'no type'} [{', '.join(map(str, got))}]"
        )


def _array(output: Any, raw: bytes | None) -> Array:
    """One tensor, from its raw bytes or from the values in it."""
    kind = _KINDS[output.datatype]
    if raw is None:
        raw = _as_bytes(output, kind)
    shape = tuple(output.shape)
    expected = prod(shape) * np.dtype(kind.dtype).itemsize
    if len(raw) != expected:
        raise NoTensor(f"output `{output.name}`: expected {expected} bytes for its shape {shape}, got {len(raw)}")
    try:
        return np.frombuffer(raw, kind.dtype).reshape(shape)
    except ValueError as error:
        raise NoTensor(f"output `{output.name}`: no array has the shape {shape}: {error}") from None


def _as_bytes(output: Any, kind: _Kind) -> bytes:
    values = getattr(output.contents, kind.contents) if kind.contents else ()
    try:
        # As Python's own numbers: an array of protobuf's would be cast, and numbers that are too large wrapped.
        return np.array(list(values), kind.dtype).tobytes()
    except OverflowError:
        raise NoTensor(f"output `{output.name}`: a value is too large for {output.datatype}") from None
