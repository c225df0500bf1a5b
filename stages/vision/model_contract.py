"""The picture that a model wants, read from its input: shape, type, metadata. Pure; the model is opened elsewhere.

    float32 [batch, 3, 640, 640]   -> nchw, values in [0, 1], any batch, 640x640
    uint8   [batch, h, w, 3]       -> nhwc, values 0 to 255, any batch, any size
    float32 [1, 3, 416, 416]       -> nchw, [0, 1], one row at a time; order and scale cannot be seen: override them

Pictures come as uint8 RGB (n, H, W, 3). The model gets (pixel * scale - mean) / std.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from camgraph.stages.vision.foreign_text import shown
from camgraph.stages.vision.metadata_literal import metadata_literal

Layout = Literal["nchw", "nhwc"]
Order = Literal["rgb", "bgr"]
U8 = NDArray[np.uint8]

DTYPES: Mapping[str, str] = {
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    "tensor(uint8)": "uint8",
    "tensor(int32)": "int32",
}
"""ONNX Runtime's names of the types that a picture may have."""

_SENSIBLE = range(16, 8193)
"""Sides of a picture, in pixels."""


class ContractError(ValueError):
    """No picture fits the input, or the model's metadata do not explain it."""


class LayoutError(ContractError):
    """The layout that a person states is not that of the input."""


@dataclass(frozen=True)
class Normalisation:
    """For each channel, in the model's order: (value - mean) / std, with value = pixel * scale."""

    mean: tuple[float, float, float] = (0.0, 0.0, 0.0)
    std: tuple[float, float, float] = (1.0, 1.0, 1.0)

    @property
    def changes_nothing(self) -> bool:
        """Whether no arithmetic is needed for it."""
        return self == NOTHING_NORMALISED


NOTHING_NORMALISED = Normalisation()


@dataclass(frozen=True)
class Overrides:
    """The user's statements about the input; None if the model decides."""

    layout: Layout | None = None
    order: Order | None = None
    scale: float | None = None
    normalisation: Normalisation = NOTHING_NORMALISED


@dataclass(frozen=True)
class InputContract:
    """The picture that the model wants. `batch`, `width` and `height` are None if it takes any."""

    name: str
    layout: Layout
    dtype: str
    order: Order
    scale: float
    batch: int | None
    width: int | None
    height: int | None
    normalisation: Normalisation = NOTHING_NORMALISED

    @property
    def array(self) -> tuple[str, str]:
        """The name and the type of the array that has the pictures: (n, height, width, 3)."""
        return "image", "uint8"

    def shape(self, rows: int, height: int, width: int) -> tuple[int, ...]:
        """The shape of the model's input for so many pictures of this size."""
        return (rows, 3, height, width) if self.layout == "nchw" else (rows, height, width, 3)

    def accepts(self, width: int, height: int) -> bool:
        """Whether a picture of this size goes in."""
        return self.width in (None, width) and self.height in (None, height)

    @property
    def takes_pixels_as_they_are(self) -> bool:
        """The picture is the input: no conversion."""
        form = (self.layout, self.dtype, self.order, self.scale)
        return form == ("nhwc", "uint8", "rgb", 1.0) and self.normalisation.changes_nothing


def derive_contract(
    name: str, shape: Sequence[int | str | None], onnx_type: str, overrides: Overrides
) -> InputContract:
    """The contract of an input as ONNX Runtime describes it: a dimension is a number, or a name or None for any.

    Floats are assumed to be in [0, 1] and the order to be RGB, unless `overrides` says otherwise, because a model does
    not show that. Raises ContractError.
    """
    declared = f"input `{shown(name)}` is {onnx_type} {list(shape)}"
    if onnx_type not in DTYPES:
        raise ContractError(f"{declared}; expected one of {', '.join(DTYPES)}")
    if len(shape) != 4:
        raise ContractError(
            f"{declared}; expected four axes: batch, height, width and 3 channels, in nchw or nhwc order"
        )
    sides = [side if isinstance(side, int) and side > 0 else None for side in shape]
    layout = _layout(declared, sides, overrides.layout)
    height, width = (sides[2], sides[3]) if layout == "nchw" else (sides[1], sides[2])
    dtype = DTYPES[onnx_type]
    scale = overrides.scale if overrides.scale is not None else 1 / 255 if dtype.startswith("float") else 1.0
    if not (dtype.startswith("float") or overrides.normalisation.changes_nothing):
        raise ContractError(f"{declared}; `mean` and `std` are for inputs of floats")
    order = overrides.order or "rgb"
    return InputContract(name, layout, dtype, order, scale, sides[0], width, height, overrides.normalisation)


def _layout(declared: str, sides: Sequence[int | None], wanted: Layout | None) -> Layout:
    """The axis of the three channels."""
    fits: dict[Layout, bool] = {"nchw": sides[1] in (3, None), "nhwc": sides[3] in (3, None)}
    if wanted is not None:
        if not fits[wanted]:
            raise LayoutError(f"{declared}; that is not the layout {wanted}: its channel axis is not 3")
        return wanted
    certain = (sides[1] == 3, sides[3] == 3)
    if certain[0] == certain[1]:
        seen = (
            "both the second and the last axis are 3" if all(certain) else "neither the second nor the last axis is 3"
        )
        raise ContractError(f"{declared}; {seen}; if it takes pictures, say `input: {{layout: nchw}}` or `nhwc`")
    return "nchw" if certain[0] else "nhwc"


def declared_size(metadata: Mapping[str, str]) -> tuple[int, int] | None:
    """(width, height) by the metadata that Ultralytics writes (`imgsz`, "[height, width]"); None if it is none."""
    value = metadata_literal(metadata, "imgsz")
    if isinstance(value, (list, tuple)) and len(value) == 2 and all(type(side) is int for side in value):
        return (value[1], value[0]) if all(side in _SENSIBLE for side in value) else None
    return None


def pixel_values(scale: float) -> NDArray[np.float32]:
    """(256,): the new value of each pixel value: multiplied in double precision, then rounded once."""
    return (np.arange(256) * scale).astype(np.float32)


def channel_values(contract: InputContract) -> NDArray[np.float32]:
    """(3, 256): of each channel, in the model's order, the new value of each pixel value."""
    mean, std = (np.array(values, np.float32)[:, None] for values in astuple(contract.normalisation))
    return np.asarray((pixel_values(contract.scale) - mean) / std, np.float32)


class Converter:
    """Writes pictures as a model wants them. One for each thread: it keeps buffers.

    ``new_array`` makes it, flat: (elements, dtype) -> array. ``in_place``: pictures of one item that are the model's
    input already stay where they are.
    """

    def __init__(
        self,
        contract: InputContract,
        new_array: Callable[[int, str], NDArray[Any]] = np.empty,
        *,
        in_place: bool = True,
    ) -> None:
        self.contract = contract
        self._in_place = in_place and contract.takes_pixels_as_they_are
        self._new_array = new_array
        # 256 products once instead of one for each pixel: as fast as multiplying, and correctly rounded.
        self._tables = channel_values(contract)
        self._is_plain = contract.scale == 1.0 and not contract.dtype.startswith("float")
        self._buffer = new_array(0, contract.dtype)
        self._channels = [np.empty((0, 0), np.uint8)] * 3

    def batch(self, pictures: Sequence[U8]) -> NDArray[Any]:
        """The model's input for these pictures, each (n, H, W, 3) of one size; valid until the next call."""
        if self._in_place and len(pictures) == 1:
            return pictures[0]
        rows = sum(len(picture) for picture in pictures)
        out = self._space(self.contract.shape(rows, *pictures[0].shape[1:3]))
        at = 0
        for picture in pictures:
            for image in picture:
                self._write(image, out[at])
                at += 1
        return out

    def _space(self, shape: tuple[int, ...]) -> NDArray[Any]:
        """An array of this shape in the kept buffer, which grows to the largest that was asked for."""
        size = int(np.prod(shape))
        if self._buffer.size < size:
            self._buffer = self._new_array(size, self.contract.dtype)
        return self._buffer[:size].reshape(shape)

    def _write(self, image: U8, out: NDArray[Any]) -> None:
        """One picture (H, W, 3) RGB into its row of the batch."""
        if self.contract.takes_pixels_as_they_are:
            out[...] = image
            return
        for index, channel in enumerate(self._split(image)):
            plane = out[index] if self.contract.layout == "nchw" else out[..., index]
            if self._is_plain:
                plane[...] = channel
            elif self.contract.layout == "nchw" and self.contract.dtype == "float32":
                cv2.LUT(channel, self._tables[index], dst=plane)
            else:
                plane[...] = cv2.LUT(channel, self._tables[index])

    def _split(self, image: U8) -> Sequence[U8]:
        """The channels in the model's order, valid until the next call."""
        if self._channels[0].shape != image.shape[:2]:
            self._channels = [np.empty(image.shape[:2], np.uint8) for _ in range(3)]
        cv2.split(image, self._channels)
        return self._channels[::-1] if self.contract.order == "bgr" else self._channels
