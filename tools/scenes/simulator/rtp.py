"""The bytes of RTP and RTCP (RFC 3550), and of both inside an RTSP connection (RFC 2326, 10.12).

RTP      | V=2 ... | M payload type | sequence number | time stamp (90 kHz) | SSRC | payload
report   | V=2 ... | 200 | length | SSRC | NTP seconds | NTP fraction | time stamp | packets | octets |
         | V=2 ... | 202 | length | SSRC | CNAME |
inside   | $ | channel | length | packet |
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

CLOCK_HZ = 90_000
PAYLOAD_TYPE = 96
STAMP_MASK = 0xFFFF_FFFF
RTP_HEADER_BYTES = 12

_RTP = struct.Struct("!BBHII")
_INTERLEAVED = struct.Struct("!cBH")
_SENDER_REPORT = struct.Struct("!BBHIIIIII")
_CNAME = b"camgraph"
_NTP_EPOCH_S = 2_208_988_800
"""From 1900, where NTP begins, to 1970."""


def rtp_packets(payloads: Sequence[bytes], first_sequence: int, stamp: int, ssrc: int) -> list[bytes]:
    """The packets of one picture; the last one carries the marker bit."""
    last = len(payloads) - 1
    return [
        _RTP.pack(0x80, PAYLOAD_TYPE | (index == last) << 7, (first_sequence + index) & 0xFFFF, stamp, ssrc) + payload
        for index, payload in enumerate(payloads)
    ]


def interleaved(packets: Sequence[bytes], channel: int) -> bytes:
    """Packets as they stand between the answers of an RTSP connection."""
    return b"".join(part for packet in packets for part in (_INTERLEAVED.pack(b"$", channel, len(packet)), packet))


def ntp_of(wall_ns: int) -> tuple[int, int]:
    """Seconds since 1900 and the fraction in 1 / 2**32 s, of nanoseconds since 1970."""
    seconds, rest_ns = divmod(wall_ns, 1_000_000_000)
    return (seconds + _NTP_EPOCH_S) & 0xFFFF_FFFF, (rest_ns << 32) // 1_000_000_000


def sender_report(ssrc: int, wall_ns: int, stamp: int, packets: int, octets: int) -> bytes:
    """A compound RTCP packet: at ``wall_ns`` the camera's media clock stood at ``stamp``."""
    seconds, fraction = ntp_of(wall_ns)
    counts = (packets & 0xFFFF_FFFF, octets & 0xFFFF_FFFF)
    report = _SENDER_REPORT.pack(0x80, 200, 6, ssrc, seconds, fraction, stamp & STAMP_MASK, *counts)
    return report + _source_description(ssrc)


def _source_description(ssrc: int) -> bytes:
    item = struct.pack("!IBB", ssrc, 1, len(_CNAME)) + _CNAME + b"\x00"
    item += b"\x00" * (-len(item) % 4)
    return struct.pack("!BBH", 0x81, 202, len(item) // 4) + item
