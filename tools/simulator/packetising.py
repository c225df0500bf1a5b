"""NAL units as RTP payloads: whole if they fit, else in fragments.

    H.264, RFC 6184 5.8 (FU-A)                        H.265, RFC 7798 4.4.3 (FU)
    +----------+----------+---------------+           +----------+----------+----------+---------------+
    | F NRI 28 | S E R typ| part of a NAL |           | F 49 layer, tid     | S E type | part of a NAL |
    +----------+----------+---------------+           +----------+----------+----------+---------------+

S marks the first and E the last fragment. The header of the NAL unit is in these bytes and is not sent again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tools.simulator.nal import Codec

MAX_PAYLOAD = 1400
"""Bytes: with the headers of RTP, UDP and IP less than Ethernet carries."""

_FU_A = 28
_FU = 49


def payloads_of(codec: Codec, nals: Sequence[bytes], max_payload: int = MAX_PAYLOAD) -> tuple[bytes, ...]:
    """The RTP payloads of one picture, in order. The last of them belongs into the packet with the marker bit."""
    return tuple(payload for nal in nals for payload in _payloads_of_nal(codec, nal, max_payload))


def _payloads_of_nal(codec: Codec, nal: bytes, max_payload: int) -> Iterator[bytes]:
    if len(nal) <= max_payload:
        yield nal
        return
    header_bytes = 1 if codec == "h264" else 2
    room = max_payload - header_bytes - 1
    last = (len(nal) - header_bytes - 1) // room
    for index in range(last + 1):
        at = header_bytes + index * room
        yield _fragment_header(codec, nal, first=index == 0, last=index == last) + nal[at : at + room]


def _fragment_header(codec: Codec, nal: bytes, *, first: bool, last: bool) -> bytes:
    marks = first << 7 | last << 6
    if codec == "h264":
        return bytes((nal[0] & 0xE0 | _FU_A, marks | nal[0] & 31))
    return bytes((nal[0] & 0x81 | _FU << 1, nal[1], marks | nal[0] >> 1 & 63))
