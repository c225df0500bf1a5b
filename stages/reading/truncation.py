"""Finds out whether a file ends where it should. FFmpeg ends a cut-off file as if nothing were wrong."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

from av.container import InputContainer
from av.packet import Packet
from av.video.stream import VideoStream

from stages.reading.timeline import SECOND_NS, ticks_to_ns

_DURATION = re.compile(r"(\d{1,6}):(\d\d):(\d\d(?:\.\d{1,9})?)", re.ASCII)
"""Anybody may have written the tag: as a number, `1e999999999` would take all memory."""


def end_ns(packet: Packet[VideoStream], stream: VideoStream) -> int:
    """When the packet's picture is over; of a file without presentation times when it is decoded, which is close."""
    begins = packet.dts if packet.pts is None else packet.pts
    if begins is None or stream.time_base is None:
        return 0
    return ticks_to_ns(begins + (packet.duration or 0), stream.time_base)


def missing_part(path: Path, container: InputContainer, stream: VideoStream, last_ns: int) -> str:
    """The part that the file promises and does not hold, "" if nothing shows. Call it after the last packet."""
    form = container.format.name
    if "mov" in form:
        end = max((entry.pos + entry.size for entry in stream.index_entries), default=0)
        size = path.stat().st_size
        return f"its index reaches to byte {end}, it has {size}" if end > size else ""
    if form == "avi":
        end, size = _declared_avi_bytes(path), path.stat().st_size
        return f"its header states {end} bytes, it has {size}" if end > size else ""
    promised_ns = _declared_duration_ns(stream)
    if last_ns + SECOND_NS // 2 < promised_ns:
        return f"it ends at {last_ns / SECOND_NS:.2f} s of {promised_ns / SECOND_NS:.2f} s"
    return ""


def _declared_avi_bytes(path: Path) -> int:
    """The end of the first RIFF chunk, 0 if its size was never filled in."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8)[4:], "little")
    return size + 8 if size else 0


def _declared_duration_ns(stream: VideoStream) -> int:
    """The end of the stream by Matroska's tag, as in 00:01:30.500000000; 0 without one."""
    found = _DURATION.fullmatch(stream.metadata.get("DURATION", ""))
    if found is None:
        return 0
    hours, minutes, seconds = map(Fraction, found.groups())
    return int((hours * 3600 + minutes * 60 + seconds) * SECOND_NS)
