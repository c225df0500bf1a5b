"""The one type that flows here: a number, and bytes by which a reader can tell that they are the right ones."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from camgraph.pipeline.messages import Array, Fields, Message, Stamp

U8 = NDArray[np.uint8]


def pattern(camera: str, seq: int, out: U8) -> U8:
    """Fill `out` with the bytes that belong to a frame: they count up from a start of the frame's own."""
    start = (zlib.crc32(camera.encode()) + 7 * seq) % 251
    ramp = np.arange(start, start + min(len(out), 251), dtype=np.int64) % 251
    whole = len(out) // 251 * 251
    if whole:
        out[:whole].reshape(-1, 251)[:] = ramp
    out[whole:] = ramp[: len(out) - whole]
    return out


@dataclass(frozen=True, eq=False)
class Number(Message):
    """`value`, and `payload` (n,) uint8 with the pattern of the stamp's camera and seq."""

    TYPE: ClassVar[str] = "number"

    value: int
    payload: U8

    def fields(self) -> Fields:
        return {"value": self.value}

    def arrays(self) -> Mapping[str, Array]:
        return {"payload": self.payload}

    @classmethod
    def build(cls, stamp: Stamp, fields: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        return cls(stamp, fields["value"], arrays["payload"])

    def verify(self) -> None:
        """Raises RuntimeError when the payload is not that of this frame."""
        expected = pattern(self.stamp.camera, self.stamp.seq, np.empty(len(self.payload), np.uint8))
        if not np.array_equal(self.payload, expected):
            raise RuntimeError(f"torn payload: {self.stamp.camera} {self.stamp.epoch} {self.stamp.seq}")

    def with_value(self, value: int) -> Number:
        """The same frame with another value and a payload of 16 bytes."""
        return Number(self.stamp, value, pattern(self.stamp.camera, self.stamp.seq, np.empty(16, np.uint8)))
