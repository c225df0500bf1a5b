"""Messages as bytes. msgpack for the header, raw little-endian arrays beside it or in a slot; never pickle.

    type, version, stamp, fields, descriptor | nil, [[name, dtype, shape, bytes | offset in the slot]...], steps if any

A message is encoded once for all its readers; its edge and its place in the camera's order travel before it
(`protocol.Head`). Everything received is bounded and checked before it is believed; a message that breaks a bound
raises WireError.
"""

from __future__ import annotations

import math
import threading
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import repeat
from pathlib import PurePath
from typing import Any

import msgpack
import numpy as np

from camgraph.pipeline.errors import BadItem, WireError
from camgraph.pipeline.messages import Array, Event, Message, Stamp, frozen
from camgraph.pipeline.shm.mappings import MappedSegment
from camgraph.pipeline.shm.segments import ALIGN, Descriptor
from camgraph.pipeline.shm.slots import Slot, SlotRing
from camgraph.pipeline.traces import Step, steps_from_wire, steps_of, with_steps

MAX_PART = 4 << 20
MAX_BODY = MAX_PART - (64 << 10)
"""Of one message; the rest is for its head."""
INLINE_BYTES = 16 << 10
_PACKED = 64 << 10
"""Bytes of the buffer in which a message is packed; a larger message gets its own."""
MAX_ARRAYS = 64
MAX_DIMS = 8
_WHOLE: set[type] = {int}
_DTYPES = {
    dtype: np.dtype(dtype)
    for dtype in ("|b1", "|u1", "|i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8", "<f2", "<f4", "<f8")
}


class _Packer(threading.local):
    """Of one thread. `msgpack.packb` takes 256 kB for each message: that riddles the heap with gaps."""

    def __init__(self) -> None:
        self.anew()

    def anew(self) -> None:
        self.pack = msgpack.Packer(unicode_errors="surrogatepass", buf_size=_PACKED).pack


_packer = _Packer()


def pack(value: Any) -> bytes:
    """Plain values as msgpack. Names of files that are no UTF-8 travel as Python holds them."""
    data = bytes(_packer.pack(value))
    if len(data) > _PACKED:
        _packer.anew()  # its buffer has grown for good
    return data


def unpack(data: bytes | memoryview) -> Any:
    """Plain values from msgpack, bounded. Raises WireError."""
    if len(data) > MAX_PART:
        raise WireError(f"a message of {len(data)} bytes; at most {MAX_PART} are accepted")
    try:
        return msgpack.unpackb(data, use_list=True, strict_map_key=False, unicode_errors="surrogatepass")
    except (ValueError, TypeError, msgpack.exceptions.UnpackException) as error:
        raise WireError(f"a message that is not msgpack: {error}") from None


@dataclass(slots=True)
class Encoded:
    """A message ready to be sent, and the slot that holds its large arrays."""

    body: bytes
    slot: Slot | None


def encode(message: Message, ring: SlotRing) -> Encoded:
    """A message as bytes. Large arrays that do not lie in a slot of `ring` yet are copied into a new one.

    The caller owns one reference to the returned slot.
    """
    slot: Slot | None = None
    rows: list[tuple[Any, ...]] = []
    large: dict[str, Array] = {}
    for name, given in message.arrays().items():
        array = np.asarray(given)
        if array.nbytes > INLINE_BYTES:
            large[name] = np.ascontiguousarray(array)
        else:
            rows.append((name, array.dtype.str, array.shape, array.tobytes()))
    if large:
        slot, offsets = _place(large, ring)
        rows += [(name, array.dtype.str, array.shape, offsets[name]) for name, array in large.items()]
    place = slot.descriptor if slot else None
    steps = steps_of(message)
    traced = (steps,) if steps else ()
    body = pack((message.TYPE, message.VERSION, message.stamp, dict(message.fields()), place, rows, *traced))
    if len(body) > MAX_BODY:
        if slot:
            ring.release(slot)
        reason = "invalid_event" if isinstance(message, Event) else "too_large"  # the outbox would refuse the event
        raise BadItem(
            reason, f"a message of type {message.TYPE} with {len(body)} bytes; at most {MAX_BODY} can be sent"
        )
    return Encoded(body, slot)


def _place(large: Mapping[str, Array], ring: SlotRing) -> tuple[Slot, dict[str, int]]:
    """The places of the large arrays: name -> offset in the slot."""
    places = {name: ring.locate(array.__array_interface__["data"][0]) for name, array in large.items()}
    slots = {id(place[0]) if place else None for place in places.values()}
    first = next(iter(places.values()))
    if len(slots) == 1 and first is not None:
        ring.keep(first[0])
        return first[0], {name: place[1] for name, place in places.items() if place}
    specs = {name: (array.shape, array.dtype.str) for name, array in large.items()}
    slot, views = new_arrays(ring, specs)
    for name, array in large.items():
        views[name][...] = array
    return slot, layout(specs)[0]


Specs = Mapping[str, tuple[tuple[int, ...], str]]


def layout(specs: Specs) -> tuple[dict[str, int], int]:
    """The offsets of arrays that are laid out one after the other, and the end of the last one."""
    offsets, at = {}, 0
    for name, (shape, dtype) in specs.items():
        offsets[name] = at
        at += -(-math.prod(shape) * np.dtype(dtype).itemsize // ALIGN) * ALIGN
    return offsets, at


def new_arrays(ring: SlotRing, specs: Specs) -> tuple[Slot, dict[str, Array]]:
    """A slot with arrays of these shapes and dtypes in it, uninitialised."""
    offsets, size = layout(specs)
    slot = ring.allocate(size)
    memory = slot.bytes()
    views = {}
    for name, (shape, dtype) in specs.items():
        nbytes = math.prod(shape) * np.dtype(dtype).itemsize
        views[name] = memory[offsets[name] : offsets[name] + nbytes].view(dtype).reshape(shape)
    return slot, views


def allocate(ring: SlotRing, specs: Specs) -> tuple[Slot | None, dict[str, Array]]:
    """Arrays for a message that a stage is making: in a slot, unless all of them will travel within the message."""
    if all(math.prod(shape) * np.dtype(dtype).itemsize <= INLINE_BYTES for shape, dtype in specs.values()):
        return None, {name: np.empty(shape, dtype) for name, (shape, dtype) in specs.items()}
    return new_arrays(ring, specs)


@dataclass(slots=True)
class Header:
    """A message, checked but for the arrays."""

    type: str
    stamp: Stamp
    fields: dict[str, Any]
    descriptor: Descriptor | None
    rows: list[Any]
    steps: tuple[Step, ...] = ()


def read_header(body: bytes, types: Mapping[str, type[Message]]) -> Header:
    """Check a message up to the arrays. Raises WireError, also for a type or version that is not among `types`."""
    try:
        type_name, version, stamp, fields, descriptor, rows, *traced = unpack(body)
        known = types.get(type_name) or types.get(Message.TYPE)
        if known is None or (version != known.VERSION and known is not Message):
            wanted = ", ".join(f"{name} {t.VERSION}" for name, t in sorted(types.items()))
            raise WireError(f"a message of type {type_name!r} version {version!r}; expected one of: {wanted}")
        checked = Stamp.from_wire(stamp)
        if not isinstance(fields, dict) or len(rows) > MAX_ARRAYS:
            raise WireError(f"a message of type {type_name} with a broken header")
        place = Descriptor.from_wire(descriptor) if descriptor is not None else None
        steps = steps_from_wire(*traced) if traced else ()
    except (ValueError, TypeError) as error:
        raise WireError(f"a message with a broken header: {error}") from None
    return Header(type_name, checked, fields, place, rows, steps)


def read_arrays(header: Header, mapping: MappedSegment | None) -> dict[str, Array]:
    """The arrays of a message, as read-only views. Raises WireError if shape, dtype and bytes do not agree."""
    memory = mapping.bytes(header.descriptor.slot) if mapping and header.descriptor else None
    return dict(map(_read_array, header.rows, repeat(memory)))


def _read_array(row: Any, memory: Array | None) -> tuple[str, Array]:
    try:
        name, dtype_name, shape, where = row
        dtype = _DTYPES[dtype_name]
        if len(shape) > MAX_DIMS or not set(map(type, shape)) <= _WHOLE or min(shape, default=0) < 0:
            raise WireError(f"array {name}: shape {shape}")
        nbytes = math.prod(shape) * dtype.itemsize
        if type(where) is bytes:
            if len(where) != nbytes:
                raise WireError(f"array {name}: {len(where)} bytes for {dtype_name} {shape}")
            # Read-only, as the bytes are.
            return name, np.ndarray(shape, dtype, where)
        if memory is None or where < 0 or where + nbytes > len(memory):
            raise WireError(f"array {name}: {nbytes} bytes at {where} are outside of the slot")
        return name, frozen(memory[where : where + nbytes].view(dtype).reshape(shape))
    except (ValueError, TypeError, KeyError) as error:
        raise WireError(f"a message with a broken array: {error}") from None


def build(header: Header, types: Mapping[str, type[Message]], arrays: Mapping[str, Array]) -> Message:
    """The message itself. Raises WireError, also for a bug in the class of the message."""
    kind = types.get(header.type, Message)
    try:
        message = kind.build(header.stamp, header.fields, arrays)
        return with_steps(message, header.steps) if header.steps else message
    except WireError:
        raise
    except Exception as error:  # noqa: BLE001 - the class may be a third party's
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{PurePath(last.filename).name}, line {last.lineno}"
        raise WireError(
            f"a message of type {header.type} that {kind.__name__}.build does not take: {error!r} ({where}): a missing "
            "or broken field, or a bug there"
        ) from None


def types_for(accepted: Iterable[type[Message]]) -> dict[str, type[Message]]:
    """Wire type name -> class, for these classes and those derived from them."""
    found: dict[str, type[Message]] = {}
    todo = list(accepted)
    while todo:
        current = todo.pop()
        found[current.TYPE] = current
        todo += current.__subclasses__()
    return found
