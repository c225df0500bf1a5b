"""The protocol between a sink and the program that reads it.

    program -> sink     mode (1 byte: B every one, N the newest), then again and again: granted u64, done u64
    sink -> program     header bytes u32, body bytes u64, header (msgpack), body (arrays, one after the other)

Parcels of a connection are numbered from 1. The sink may send number n once n <= `granted` (a credit). `done` is the
last number that the program has acknowledged. Both sides run the same version as the same user; the socket lies in the
run's folder, which other users cannot enter.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgpack
import numpy as np

from camgraph.pipeline.errors import WireError
from camgraph.pipeline.messages import Array, Event, Stamp
from camgraph.stages.messages import Tracks
from camgraph.stages.vision.planes import U8

Mode = Literal["every", "newest"]
MODES: Mapping[bytes, Mode] = {b"B": "every", b"N": "newest"}
BYTE_OF: Mapping[Mode, bytes] = {mode: byte for byte, mode in MODES.items()}

CREDIT = struct.Struct("<QQ")
"""granted, done"""
SIZES = struct.Struct("<IQ")
"""header bytes, body bytes"""
PIXELS = "pixels"
_HEADER = 4 << 10
"""Bytes of the buffer of a header, which grows if need be; msgpack takes 256 kB by itself, each time."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """One message of small plain values and arrays."""

    values: Mapping[str, Any]
    arrays: Mapping[str, Array] = field(default_factory=dict)

    def parts(self) -> list[memoryview]:
        """Return the bytes to send, in order. Contiguous arrays are not copied."""
        laid = {name: np.ascontiguousarray(array) for name, array in self.arrays.items()}
        rows = [[name, array.dtype.str, array.shape] for name, array in laid.items()]
        header = bytes(msgpack.packb([dict(self.values), rows], buf_size=_HEADER))
        sizes = SIZES.pack(len(header), sum(array.nbytes for array in laid.values()))
        bodies = [array.reshape(-1).view(np.uint8).data for array in laid.values() if array.nbytes]
        return [memoryview(sizes + header), *bodies]

    @classmethod
    def read(cls, header: bytes, body: bytearray) -> Parcel:
        """Read a parcel, the inverse of `parts`. Its arrays are views of `body`. Raises WireError."""
        values, rows = msgpack.unpackb(header)
        arrays: dict[str, Array] = {}
        at = 0
        for name, dtype_name, shape in rows:
            dtype = np.dtype(dtype_name)
            size = math.prod(shape) * dtype.itemsize
            if at + size > len(body):
                raise WireError(f"array {name}: {size} bytes at {at} are outside of a body of {len(body)}")
            arrays[name] = np.frombuffer(body, dtype, math.prod(shape), at).reshape(shape)
            at += size
        return cls(values, arrays)


def event_parcel(event: Event) -> Parcel:
    """Pack an event with its body as every sink gets it."""
    return Parcel({"id": event.id, "camera": event.stamp.camera, "body": event.body})


def tracks_parcel(tracks: Tracks, skipped: int, pixels: U8 | None = None) -> Parcel:
    """Pack the people of a frame, and its picture (H, W, 3) if given. `skipped`: frames left out since the last one."""
    values = {"stamp": tuple(tracks.stamp), "fields": dict(tracks.fields()), "skipped": skipped}
    return Parcel(values, {**tracks.arrays(), **({} if pixels is None else {PIXELS: pixels})})


def tracks_of(parcel: Parcel) -> Tracks:
    """Return the tracks in a parcel, the inverse of `tracks_parcel`. Raises WireError."""
    stamp = Stamp.from_wire(parcel.values["stamp"])
    return Tracks.build(stamp, parcel.values["fields"], parcel.arrays)


def own_tracks(tracks: Tracks) -> Tracks:
    """Copy tracks, so that they outlive the call of `process` that got them."""
    arrays = {name: array.copy() for name, array in tracks.arrays().items()}
    return Tracks.build(tracks.stamp, dict(tracks.fields()), arrays)
