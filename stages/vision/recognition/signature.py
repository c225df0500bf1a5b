"""A model's signature: its inputs, outputs and metadata."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from camgraph.stages.vision.decoding.yolo_heads import STRIDES, cells_of
from camgraph.stages.vision.metadata_literal import metadata_literal

Side = int | str | None
STRIDES_TO_64 = (*STRIDES, 64)
_NUMBERS = re.compile(r"tensor\((u?int\d+|b?float(16)?|double)\)")


class Port(NamedTuple):
    """An input or output as the model declares it: a side is a number, or a name or None for any."""

    name: str
    shape: tuple[Side, ...]
    onnx_type: str

    @property
    def holds_numbers(self) -> bool:
        """Whether it is an array of numbers, and not of texts, truths, or no array."""
        return _NUMBERS.fullmatch(self.onnx_type) is not None

    @property
    def holds_floats(self) -> bool:
        """Whether these numbers may have a fraction. Whole ones are a quantized model's own, in a scale of its own."""
        return self.holds_numbers and "int" not in self.onnx_type


@dataclass(frozen=True)
class Signature:
    """All statements of a model about itself."""

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def task(self) -> str | None:
        """By the metadata that Ultralytics writes: pose, detect, classify, ..."""
        return self.metadata.get("task")

    @property
    def is_rtdetr(self) -> bool:
        """Whether Ultralytics' exporter describes it as RT-DETR: its task and names are those of a YOLO."""
        described = f"{self.metadata.get('description', '')} {self.metadata.get('head', '')}"
        return "rtdetr" in described.lower()

    def only_output(self, axes: int) -> Port | None:
        """Its output, if it is the only one with so many axes."""
        if len(self.outputs) != 1 or len(self.outputs[0].shape) != axes:
            return None
        return self.outputs[0]

    def picture_port(self) -> Port | None:
        """The input that takes pictures: the only one with four axes."""
        found = [port for port in self.inputs if len(port.shape) == 4]
        return found[0] if len(found) == 1 else None

    def window_port(self) -> Port | None:
        """The input that takes windows of keypoints: the only one with five axes."""
        found = [port for port in self.inputs if len(port.shape) == 5]
        return found[0] if len(found) == 1 else None

    def picture_size(self) -> tuple[int, int] | None:
        """(width, height) of its pictures; None if it takes any."""
        port = self.picture_port()
        if port is None:
            return None
        height, width = port.shape[2:4] if port.shape[1] == 3 else port.shape[1:3]
        if isinstance(height, int) and isinstance(width, int) and height > 0 and width > 0:
            return width, height
        return None

    def may_be_cells(self, side: Side, each: int = 1) -> bool:
        """Whether a side may count ``each`` anchors in every cell of the picture; unknown if either is open."""
        size = self.picture_size()
        if not isinstance(side, int) or size is None:
            return True
        return any(side == each * cells_of(*size, strides=strides) for strides in (STRIDES, STRIDES_TO_64))

    def literal(self, key: str) -> object:
        """A value of the metadata that was written as a Python literal; None if there is none."""
        return metadata_literal(self.metadata, key)


def ports_with(ports: Sequence[Port], *, axes: int, last: int, may_be_open: bool = False) -> list[Port]:
    """The ports with so many axes and this last side; an open side may be any if ``may_be_open``."""
    return [port for port in ports if fits(port.shape, (*[None] * (axes - 1), last), may_be_open=may_be_open)]


def boxes_of(ports: Sequence[Port], *, may_be_open: bool) -> Port | None:
    """The only port of boxes (any, any, 4); if there is none, the only one whose last side may be 4."""
    for fitting in (
        ports_with(ports, axes=3, last=4),
        ports_with(ports, axes=3, last=4, may_be_open=may_be_open),
    ):
        if len(fitting) == 1:
            return fitting[0]
    return None


def fits(shape: Sequence[Side], wanted: Sequence[int | None], *, may_be_open: bool) -> bool:
    """Whether a shape is this one; None stands for any side, and an open side may be any if that is declared."""
    return len(shape) == len(wanted) and all(
        number is None or side == number or (may_be_open and not isinstance(side, int))
        for side, number in zip(shape, wanted, strict=True)
    )
