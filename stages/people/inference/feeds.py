"""Fills a model's inputs other than the picture, as the graph says.

settings      feeds: {orig_target_sizes: frame_width_height, template: {array: template}, iou_threshold: 0.5}
of each item  orig_target_sizes int64 (n, 2), template float32 (n, ...)      rows that go where its pictures go
of each run   iou_threshold float32 ()
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import Field

from camgraph.pipeline.errors import SettingError, UserError
from camgraph.pipeline.messages import Array
from camgraph.pipeline.stage import Settings
from camgraph.stages.messages import Tensor
from camgraph.stages.vision.foreign_text import shown
from camgraph.stages.vision.model_contract import InputContract
from camgraph.stages.vision.recognition import Port, Signature

PICTURE = "picture"
_SCALES = ("scale_x_y", "scale_y_x")
Known = Literal[
    "picture",
    "frame_width_height",
    "frame_height_width",
    "picture_width_height",
    "picture_height_width",
    "scale_x_y",
    "scale_y_x",
]
"""The facts about each picture, and the picture itself."""

Number = bool | int | float
Numbers = Number | tuple[Number, ...] | tuple[tuple[Number, ...], ...]


class FeedError(SettingError):
    """An entry of `feeds` does not fit, or is missing; ``name``: of which input."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(("feeds", name), text)


class ArrayFeed(Settings):
    """An array that a stage before puts beside the picture."""

    array: str = Field(min_length=1, description="Its name: an array with a row for each picture")


Feed = Known | ArrayFeed | Numbers
DTYPES: Mapping[str, str] = {
    "tensor(bool)": "bool",
    "tensor(uint8)": "uint8",
    "tensor(int8)": "int8",
    "tensor(int32)": "int32",
    "tensor(int64)": "int64",
    "tensor(float16)": "float16",
    "tensor(float)": "float32",
    "tensor(double)": "float64",
}
"""ONNX Runtime's names of the types that may be fed."""


class _Known(NamedTuple):
    """The facts about some pictures; the fields are those of Tensor."""

    fit: Array
    frame_size: tuple[int, int]
    picture_size: tuple[int, int]

    def tiled(self, values: Sequence[float]) -> Array:
        return np.tile(np.array(values), (len(self.fit), 1))


_FACTS: Mapping[str, Callable[[_Known], Array]] = {
    "frame_width_height": lambda known: known.tiled(known.frame_size),
    "frame_height_width": lambda known: known.tiled(known.frame_size[::-1]),
    "picture_width_height": lambda known: known.tiled(known.picture_size),
    "picture_height_width": lambda known: known.tiled(known.picture_size[::-1]),
    "scale_x_y": lambda known: known.fit[:, :2],
    "scale_y_x": lambda known: known.fit[:, 1::-1],
}


@dataclass(frozen=True)
class Feeds:
    """The values for the inputs other than the picture.

    ``facts`` and ``arrays``: a port -> the source of its rows; ``constants``: a port's name -> an array for each run,
    or its one row, which is repeated for each picture.
    """

    facts: Mapping[Port, str] = field(default_factory=dict)
    arrays: Mapping[Port, str] = field(default_factory=dict)
    constants: Mapping[str, Array] = field(default_factory=dict)
    repeated: Mapping[str, Array] = field(default_factory=dict)

    def of_item(self, item: Tensor) -> dict[str, Array]:
        """Rows for an item's pictures. Raises UserError if an array is missing or does not fit its input."""
        known = _Known(item.fit, item.frame_size, item.picture_size)
        return self._from_known(known) | {port.name: _array_of(item, port, name) for port, name in self.arrays.items()}

    def of_black(self, rows: int, size: tuple[int, int]) -> dict[str, Array]:
        """Rows for this many blank pictures of this size (width, height)."""
        known = _Known(np.tile(np.array([1, 1, 0, 0], np.float32), (rows, 1)), size, size)
        return self._from_known(known) | {port.name: _nothing(port, rows) for port in self.arrays}

    def of_run(self, rows: int) -> dict[str, Array]:
        """The arrays of a run of this many pictures, other than the rows."""
        return {**self.constants, **{name: np.repeat(row, rows, axis=0) for name, row in self.repeated.items()}}

    def _from_known(self, known: _Known) -> dict[str, Array]:
        return {port.name: _FACTS[fact](known).astype(DTYPES[port.onnx_type]) for port, fact in self.facts.items()}


NO_FEEDS = Feeds()


def picture_input(signature: Signature, model: str, feeds: Mapping[str, Feed]) -> Port:
    """The input for the pictures. Raises UserError if it is ambiguous, FeedError if another input gets nothing."""
    for name in feeds:
        if name not in {port.name for port in signature.inputs}:
            raise FeedError(name, f"{model} has no input `{name}`; it has: {_named(signature.inputs)}")
    rest = [port for port in signature.inputs if port.name not in feeds]
    declared = [port for port in signature.inputs if feeds.get(port.name) == PICTURE]
    taken = declared or [port for port in rest if len(port.shape) == 4] or rest
    if not rest and not declared:
        name = max(signature.inputs, key=lambda port: len(port.shape) == 4).name
        raise FeedError(
            name,
            f"{model} has {_named(signature.inputs)}, and `feeds` leaves none of these to the picture: remove "
            f"`{shown(name)}`, or write `{shown(name)}: {PICTURE}`",
        )
    if len(taken) != 1:
        raise UserError(
            f"{model}: expected one input that takes the picture, this model has: {_named(signature.inputs)}; "
            "fill the others in `feeds` of `infer`",
            error_id="model-does-not-fit",
        )
    for port in rest:
        if port != taken[0]:
            raise FeedError(
                port.name,
                f"nothing fills the input {_named([port])} of {model}: fill it in `feeds` of `infer`, with "
                f"numbers, {{array: NAME}} or one of {', '.join(_FACTS)}",
            )
    return taken[0]


def read_feeds(
    signature: Signature, contract: InputContract, model: str, declared: Mapping[str, Feed]
) -> tuple[InputContract, Feeds]:
    """The feeds of the other inputs, and the contract with the batch that they leave. Raises FeedError."""
    facts: dict[Port, str] = {}
    arrays: dict[Port, str] = {}
    constants: dict[str, Array] = {}
    repeated: dict[str, Array] = {}
    for port in signature.inputs:
        feed = declared.get(port.name, PICTURE)
        if feed == PICTURE:
            continue
        try:
            if port.onnx_type not in DTYPES:
                raise ValueError(f"expected one of {', '.join(DTYPES)}")
            if isinstance(feed, ArrayFeed):
                arrays[port] = feed.array
            elif isinstance(feed, str):
                facts[port] = _checked_fact(port, feed)
            elif _is_of_a_run(values := _numbers(port, feed), port):
                constants[port.name] = values
                continue
            else:
                repeated[port.name] = values[np.newaxis]
            contract = _with_batch(contract, port)
        except ValueError as error:
            raise FeedError(port.name, f"{_named([port])} of {model}: {error}") from None
    return contract, Feeds(facts, arrays, constants, repeated)


def _with_batch(contract: InputContract, port: Port) -> InputContract:
    """An input with a row for each picture, and of fixed length, fixes the batch."""
    rows = port.shape[0] if port.shape else 0
    if not isinstance(rows, int) or rows == contract.batch:
        return contract
    if rows < 1 or contract.batch is not None:
        raise ValueError(f"expected an axis with a row for each picture, of which a run has {contract.batch or 'any'}")
    return replace(contract, batch=rows)


def _checked_fact(port: Port, fact: str) -> str:
    if len(port.shape) != 2 or not _fits((2,), port.shape[1:]):
        raise ValueError(f"{fact} gives two numbers for each picture: expected a shape like [n, 2]")
    if fact in _SCALES and np.dtype(DTYPES[port.onnx_type]).kind != "f":
        raise ValueError(f"{fact} gives fractions, which whole numbers cannot hold")
    return fact


def _numbers(port: Port, declared: Any) -> Array:
    """Numbers as the input's type."""
    try:
        values = np.array(declared, np.float64)
    except ValueError:
        raise ValueError(f"expected rows of one length, got {declared}") from None
    dtype = np.dtype(DTYPES[port.onnx_type])
    with np.errstate(all="ignore"):
        cast: Array = values.astype(dtype)
    if not np.isfinite(cast).all() or (dtype.kind != "f" and not np.array_equal(cast, values)):
        raise ValueError(f"{dtype.name} cannot hold {declared}")
    return cast


def _is_of_a_run(values: Array, port: Port) -> bool:
    """Whether these are the arrays of a whole run, and not those for one picture."""
    for of_one, shape in ((False, port.shape), (True, port.shape[1:])):
        if len(port.shape) == values.ndim + of_one and _fits(values.shape, shape):
            return not of_one
    raise ValueError(f"got numbers of shape {list(values.shape)}, which are neither for a run nor for one picture")


def _fits(shape: Sequence[int], declared: Sequence[int | str | None]) -> bool:
    """Whether the sides are those that are declared; one that is no number may be any."""
    return len(shape) == len(declared) and all(
        side == expected for side, expected in zip(shape, declared, strict=True) if isinstance(expected, int)
    )


def _nothing(port: Port, rows: int) -> Array:
    sides = [side if isinstance(side, int) else 1 for side in port.shape[1:]]
    return np.zeros((rows, *sides), DTYPES[port.onnx_type])


def _array_of(item: Tensor, port: Port, name: str) -> Array:
    array = item.arrays_by_name.get(name)
    expected = f"{DTYPES[port.onnx_type]} (n, {shown(', '.join(map(str, port.shape[1:])))})"
    if array is None:
        there = ", ".join(item.arrays_by_name)
        raise UserError(
            f"nothing fills `{shown(port.name)}`: expected an array `{name}`, {expected}, got {there}",
            error_id="model-does-not-fit",
        )
    fits = len(array) == item.rows and _fits(array.shape[1:], port.shape[1:])
    if array.dtype.name != DTYPES[port.onnx_type] or not fits:
        raise UserError(
            f"the array `{name}` does not fit into `{shown(port.name)}`: expected {expected} for n = {item.rows} "
            "pictures, "
            f"got {array.dtype.name} {array.shape}",
            error_id="model-does-not-fit",
        )
    return array


def _named(ports: Sequence[Port]) -> str:
    return ", ".join(f"`{shown(port.name)}` ({port.onnx_type} {list(port.shape)})" for port in ports)
