"""Finds where MPEG-1, MPEG-2 or MPEG-4 video goes on in another size. Pure.

FFmpeg's decoders of these formats hold one picture back, because a B picture may come before it, and throw it away when
the size or the shape of pixels changes (av 18.1; those of H.264 and H.265 give theirs first). So the picture must be
asked for before such a packet:

    00 00 01 B3   sequence header of MPEG-1 and MPEG-2: width (12 bits), height (12), shape of pixels (4), ...
    00 00 01 2x   video object layer of MPEG-4, up to the next start code
"""

from __future__ import annotations

import re
from typing import ClassVar

_HEAD_BYTES = 1024
"""Parameters stand before the picture of their packet."""
_SEQUENCE = re.compile(rb"\x00\x00\x01\xb3(...)(.)", re.DOTALL)
_LAYER = re.compile(rb"\x00\x00\x01[\x20-\x2f](.*?)(?:\x00\x00\x01|\Z)", re.DOTALL)


class Sequences:
    """Follows the parameters of one stream. ``codec`` is FFmpeg's name; of other codecs nothing is read."""

    _readers: ClassVar = {"mpeg1video": _SEQUENCE, "mpeg2video": _SEQUENCE, "mpeg4": _LAYER}

    def __init__(self, codec: str, extradata: bytes | None) -> None:
        self._pattern = self._readers.get(codec)
        self._last = self._parameters(extradata or b"")

    def is_new(self, packet: memoryview) -> bool:
        """Whether the pictures from this packet on have other parameters than those before."""
        if self._pattern is None:
            return False
        found, last = self._parameters(bytes(packet[:_HEAD_BYTES])), self._last
        self._last = found or last
        return bool(found and last and found != last)

    def _parameters(self, data: bytes) -> tuple[bytes, ...]:
        found = self._pattern.search(data) if self._pattern else None
        if found is None:
            return ()
        # The low half of the second group is the frame rate.
        return (found[1], bytes([found[2][0] >> 4])) if self._pattern is _SEQUENCE else (found[1],)
