"""Counts the entries of a model file without reading it in.

An empty node is two bytes in a file and a hundred times that in memory: a file of 100 MB can take 10 GB to load. So its
entries are counted first, in the file as it lies on the disk.

    entry = tag, value           tag = field number << 3 | wire type
    wire type 0: a varint, 1: eight bytes, 2: a length and so many bytes, 5: four bytes; 3, 4: begin and end of a group

Source: the encoding of Protocol Buffers; which fields hold messages says the schema of ONNX.
"""

from __future__ import annotations

import mmap
from functools import cache
from pathlib import Path

from google.protobuf.descriptor import Descriptor
from onnx import ModelProto

MOST_ENTRIES = 2_000_000
"""A node with its names and attributes has about ten. Counting so many takes two seconds, loading them one more."""
_FIXED_BYTES = {1: 8, 5: 4, 3: 0, 4: 0}


def has_too_many_entries(path: Path) -> bool:
    """Whether loading this file would cost more than any sensible model does. Damage is left to the loader.

    Raises OSError.
    """
    with path.open("rb") as file:
        if not file.seek(0, 2):
            return False
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                return _counted(data) > MOST_ENTRIES
            except IndexError:  # it is cut off, or no model
                return False


def _counted(data: mmap.mmap) -> int:
    """Entries at any depth, at most one more than may be. Raises IndexError if the data end in the middle of one."""
    at, end, messages = 0, len(data), _messages_in(ModelProto.DESCRIPTOR)
    outer = [(end, messages)]
    entries = 0
    while outer:
        if at >= end:
            outer.pop()
            if outer:
                end, messages = outer[-1]
            continue
        entries += 1
        if entries > MOST_ENTRIES:
            break
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == 0:
            _, at = _varint(data, at)
        elif kind == 2:
            size, at = _varint(data, at)
            inner = messages.get(tag >> 3)
            if inner is None:
                at += size
            else:
                end, messages = min(at + size, end), _messages_in(inner)
                outer.append((end, messages))
        else:
            at += _FIXED_BYTES[kind] if kind in _FIXED_BYTES else len(data)
    return entries


def _varint(data: mmap.mmap, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, the lowest first, and the place behind it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise IndexError("a number without an end")


@cache
def _messages_in(message: Descriptor) -> dict[int, Descriptor]:
    """The fields of a message that are messages themselves, by number."""
    return {field.number: field.message_type for field in message.fields if field.message_type is not None}
