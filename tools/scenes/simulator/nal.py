"""NAL units: splits coded pictures, and identifies the parts (ITU-T H.264 and H.265)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

Codec = Literal["h264", "h265"]

_H264_PARAMETERS = frozenset({7, 8})
_H265_PARAMETERS = frozenset({32, 33, 34})
_H264_PADDING = frozenset({9, 12})
_H265_PADDING = frozenset({35, 38})
_START = b"\x00\x00\x01"


def nal_type(codec: Codec, nal: bytes) -> int:
    """The type in the header of a NAL unit: five bits in H.264, six in H.265."""
    return nal[0] & 31 if codec == "h264" else nal[0] >> 1 & 63


def is_parameter_set(codec: Codec, nal: bytes) -> bool:
    """Whether it is an SPS or PPS, in H.265 also a VPS."""
    return nal_type(codec, nal) in (_H264_PARAMETERS if codec == "h264" else _H265_PARAMETERS)


def is_padding(codec: Codec, nal: bytes) -> bool:
    """Whether RTP makes it redundant: access unit delimiters and filler."""
    return nal_type(codec, nal) in (_H264_PADDING if codec == "h264" else _H265_PADDING)


def split_annexb(unit: bytes) -> list[bytes]:
    """The NAL units between start codes, without these and without the zeros that may stand behind each."""
    return [nal for part in unit.split(_START)[1:] if (nal := part.rstrip(b"\x00"))]


def split_sized(unit: bytes, size_bytes: int) -> list[bytes]:
    """The NAL units of a picture as MP4 and Matroska hold it: each behind its big-endian length.

    Raises ValueError if a length goes beyond the end.
    """
    nals, at = [], 0
    while at < len(unit):
        begin = at + size_bytes
        at = begin + int.from_bytes(unit[at:begin], "big")
        if at > len(unit):
            raise ValueError(f"a NAL unit ends at byte {at} of {len(unit)}")
        if at > begin:
            nals.append(unit[begin:at])
    return nals


def layout_of(codec: Codec, extradata: bytes) -> tuple[Callable[[bytes], list[bytes]], tuple[bytes, ...]]:
    """How pictures of a stream are split into NAL units, and the parameter sets that stand outside of them.

    ``extradata`` is an avcC or hvcC record (ISO/IEC 14496-15), Annex B, or empty.
    """
    if not extradata or extradata.startswith((b"\x00\x00\x00\x01", _START)):
        return split_annexb, tuple(nal for nal in split_annexb(extradata) if is_parameter_set(codec, nal))
    if codec == "h264":
        size_bytes, sets = (extradata[4] & 3) + 1, _avcc_sets(extradata)
    else:
        size_bytes, sets = (extradata[21] & 3) + 1, _hvcc_sets(extradata)
    return lambda unit: split_sized(unit, size_bytes), tuple(nal for nal in sets if is_parameter_set(codec, nal))


def _avcc_sets(record: bytes) -> Iterator[bytes]:
    """avcC: 5 bytes, 3 + 5 bits number of SPS, the SPS, 8 bits number of PPS, the PPS."""
    at = 5
    for mask in (31, 255):
        count, at = record[at] & mask, at + 1
        nals, at = _counted(record, at, count)
        yield from nals


def _hvcc_sets(record: bytes) -> Iterator[bytes]:
    """hvcC: 22 bytes, 8 bits number of arrays; each array is a type byte, 16 bits number, the NAL units."""
    at = 23
    for _ in range(record[22]):
        count = int.from_bytes(record[at + 1 : at + 3], "big")
        nals, at = _counted(record, at + 3, count)
        yield from nals


def _counted(record: bytes, at: int, count: int) -> tuple[Sequence[bytes], int]:
    """So many NAL units from there on, each behind its length in 16 bits, and where they end."""
    nals = []
    for _ in range(count):
        size = int.from_bytes(record[at : at + 2], "big")
        nals.append(record[at + 2 : at + 2 + size])
        at += 2 + size
    return nals, at
