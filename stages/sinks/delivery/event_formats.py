"""Events as bytes for streams: a line of JSON, or msgpack behind its length.

json      {"specversion":"1.0",...}\\n
msgpack   length (4 bytes, the highest first) | the same object in msgpack
"""

from __future__ import annotations

import json
import struct
from typing import Literal

import msgpack

Format = Literal["json", "msgpack"]
_LENGTH = struct.Struct(">I")


def packed(body: bytes) -> bytes:
    """The event in msgpack.

    Raises ValueError for one that msgpack cannot hold: a whole number beyond 64 bits, half of a surrogate pair, or
    lists in lists hundreds deep.
    """
    try:
        return bytes(msgpack.packb(json.loads(body)))
    except (OverflowError, RecursionError, ValueError) as error:
        raise ValueError(f"msgpack cannot hold this event: {error}") from None


def with_length(data: bytes) -> bytes:
    return _LENGTH.pack(len(data)) + data
