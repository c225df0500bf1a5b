"""Reads from a packet of H.264 or H.265, without decoding it, whether it is referred to, and whether one is missing.

FFmpeg marks neither for RTSP. A camera (or a server) that cannot get rid of its packets leaves whole pictures out:
no packet is lost then, and FFmpeg's H.264 decoder conceals the gap without a word, but `frame_num` has a hole.
Source: ITU-T H.264, 7.3.1, 7.3.2.1, 7.3.3 and 7.4.3; H.265, 7.3.1.2 and table 7-1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

_START = b"\x00\x00\x01"
_ESCAPED = b"\x00\x00\x03"
_HEAD_BYTES = 64
"""How many bytes of a NAL unit are read: all fields that are needed here lie in them."""
_H264_SLICES = frozenset({1, 2, 5})
_H264_IDR, _H264_SPS = 5, 7
_REFERRED = 0x60
"""The bits of nal_ref_idc: none of them is set if no other picture refers to this one."""
_WITH_CHROMA = frozenset({100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135})
_H265_SLICES = range(32)
_H265_SUB_LAYER_NON_REFERENCE = frozenset(range(0, 16, 2))


class AccessUnit(NamedTuple):
    """`disposable`: no other picture refers to it. `gap`: a picture that others refer to is missing before it."""

    disposable: bool
    gap: bool


ORDINARY = AccessUnit(disposable=False, gap=False)


class Reader(Protocol):
    """Looks at the packets of one stream, in order."""

    def observe(self, data: bytes) -> AccessUnit:
        """At the next one, in Annex B; an unreadable one counts as ordinary."""
        ...


def reader_for(codec: str, extradata: bytes | None) -> Reader:
    """By FFmpeg's name of the codec. Of others than h264 and hevc nothing is known, nor of NAL units with lengths.

    `extradata`: the parameters in the description of the stream; many cameras send them there alone.
    """
    if extradata and extradata[0]:
        return Opaque()
    kinds: dict[str, Callable[[], Reader]] = {"h264": H264, "hevc": H265}
    reader = kinds.get(codec, Opaque)()
    reader.observe(extradata or b"")
    return reader


class Opaque:
    """A stream without known parameters."""

    def observe(self, data: bytes) -> AccessUnit:
        return ORDINARY


class H264:
    """Follows `frame_num`, which counts the pictures that others refer to, modulo a power of two."""

    def __init__(self) -> None:
        self._bits: int | None = None
        self._last: int | None = None
        self._planes = False

    def observe(self, data: bytes) -> AccessUnit:
        try:
            for head in _heads(data):
                kind = head[0] & 31
                if kind == _H264_SPS:
                    self._read_parameters(head)
                elif kind in _H264_SLICES:
                    return AccessUnit(not head[0] & _REFERRED, self._is_gap(head, kind == _H264_IDR))
        except IndexError:
            pass
        return ORDINARY

    def _is_gap(self, head: bytes, idr: bool) -> bool:
        if self._bits is None:
            return False
        bits = _Bits(head, 8)
        bits.golomb(), bits.golomb(), bits.golomb()
        if self._planes:
            bits.take(2)
        number, last = bits.take(self._bits), self._last
        if head[0] & _REFERRED or last is None:
            self._last = number
        return not idr and last is not None and (number - last) % (1 << self._bits) > 1

    def _read_parameters(self, head: bytes) -> None:
        """The number of bits of `frame_num`; None if gaps are allowed (temporal layers that a camera leaves out)."""
        bits = _Bits(head, 8)
        profile = bits.take(8)
        bits.take(16), bits.golomb()
        self._planes = False
        if profile in _WITH_CHROMA:
            chroma = bits.golomb()
            self._planes = chroma == 3 and bool(bits.take(1))
            bits.golomb(), bits.golomb(), bits.take(1)
            if bits.take(1):  # scaling matrices, which no camera is known to send
                self._bits = None
                return
        count = bits.golomb() + 4
        order = bits.golomb()
        if order == 0:
            bits.golomb()
        elif order == 1:
            bits.take(1), bits.golomb(), bits.golomb()
            for _ in range(bits.golomb()):
                bits.golomb()
        bits.golomb()
        self._bits = None if bits.take(1) or count > 16 else count


class H265:
    """Recognises pictures of the highest temporal layer that none of the same layer refers to. The decoder reports
    gaps.
    """

    def __init__(self) -> None:
        self._highest = 0

    def observe(self, data: bytes) -> AccessUnit:
        for head in _heads(data):
            kind = head[0] >> 1 & 63
            if kind in _H265_SLICES and len(head) > 1:
                layer = (head[1] & 7) - 1
                self._highest = max(self._highest, layer)
                return AccessUnit(kind in _H265_SUB_LAYER_NON_REFERENCE and layer == self._highest, gap=False)
        return ORDINARY


def _heads(data: bytes) -> Iterator[bytes]:
    """The beginning of each NAL unit, without the bytes that keep start codes out of it.

    Lazy: the first slice has the needed fields, and slices are long.
    """
    at = data.find(_START)
    while at >= 0:
        begin = at + len(_START)
        end = data.find(_START, begin, begin + _HEAD_BYTES)
        head = data[begin : end if end >= 0 else begin + _HEAD_BYTES]
        if head:
            yield head.replace(_ESCAPED, _ESCAPED[:2])
        at = data.find(_START, begin)


class _Bits:
    """Reads bits, the highest first. Raises IndexError beyond the end."""

    def __init__(self, data: bytes, at: int) -> None:
        self._value = int.from_bytes(data, "big")
        self._left = len(data) * 8 - at

    def take(self, count: int) -> int:
        self._left -= count
        if self._left < 0:
            raise IndexError("a NAL unit ends too early")
        return self._value >> self._left & ((1 << count) - 1)

    def golomb(self) -> int:
        """An unsigned Exp-Golomb code (9.1)."""
        zeros = 0
        while not self.take(1):
            zeros += 1
        return (1 << zeros) - 1 + self.take(zeros)
