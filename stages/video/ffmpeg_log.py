"""Collects FFmpeg's complaints while one thread reads: its only sign of lost RTP packets, and of some damage in files.

PyAV hands lines of the log to Python, by default none. Here those up to warnings are taken, and kept apart by thread:
cameras in other threads have their own. Measured: a healthy camera causes no line; taking one costs 2 microseconds
and the GIL, which a thread that decodes alone (`thread_type` NONE) has let go of meanwhile.

Lines may hold addresses with passwords: they are compared here, and never shown.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Literal, NamedTuple

import av.logging

Kind = Literal["loss", "damage"]

# FFmpeg 8: libavformat/rtpdec.c, rtsp.c, mpegts.c, http.c.
_LOSS = ("RTP: missed", "max delay reached", "RTP timestamps don't match", "Packet corrupt", "Continuity check failed")
# libavcodec/h264_*.c, error_resilience.c, hevc/*.c, mjpegdec.c. Warnings that healthy cameras cause ("EOI missing",
# "deprecated pixel format", a truncated SEI) are not among them, and unknown lines are no damage: otherwise a camera
# that causes a new one with each picture would never be believed. If a picture suffers, the decoder flags it as well.
_DAMAGE = (
    *("error while decoding", "concealing", "block unavailable", "cabac decode of", "no frame!", "Invalid NAL unit"),
    *("illegal short term", "illegal memory management", "co located POCs unavailable", "non-existing", "overflow"),
    *("decode_slice_header error", "missing during reorder", "Missing reference picture", "Failed to parse header"),
    *("Could not find ref", "Error constructing the frame RPS", "undecodable NALU", "PPS id out of range"),
    *("Error parsing NAL unit", "cu_qp_delta", "CABAC_MAX_BIN", "Duplicate POC", "First slice in a frame missing"),
    *("Two slices reporting being the first", "error dc", "error y", "bad vlc", "error count", "out of range"),
    # Of a device that decodes (hwaccel): the picture comes out all the same.
    *("ardware accelerator failed to decode", "No decoder surfaces left"),
)
# The same for a photograph, which is one picture: a false alarm costs a line, not a camera. mjpegdec.c, tiff.c.
_CUT_OFF = ("EOI missing", "overread")
_DAMAGE_OF_A_PHOTOGRAPH = (*_DAMAGE, "out of bounds", "Read from bounds", "invalid code", "inflate returned")
_READERS = frozenset({"rtsp", "rtp", "sdp", "mpegts", "udp", "http", "hls"})


class LogLine(NamedTuple):
    """One line: its component, such as `rtsp` or `hevc`, and its text."""

    level: int
    source: str
    text: str


def kind_of(line: LogLine) -> Kind | None:
    """The meaning of a line for the pictures: something was lost on the way, or one is damaged; None if nothing."""
    if line.source in _READERS:
        return "loss" if line.text.startswith(_LOSS) else None
    return "damage" if any(part in line.text for part in _DAMAGE) else None


def harm_of(lines: Iterable[LogLine]) -> str:
    """Why a photograph is not whole, by the lines that came while it was read; "" if none says so."""
    texts = [line.text for line in lines]
    if any(text.startswith(_CUT_OFF) for text in texts):
        return "it is cut off or damaged: its end is missing"
    if any(part in text for text in texts for part in _DAMAGE_OF_A_PHOTOGRAPH):
        return "it is damaged: FFmpeg made up a part of it"
    return ""


_UNKNOWN_CODEC = re.compile(r"Could not find codec parameters for stream \d+ \(Video: (\w+)(?: \(([\w ]+) /)?")
"""libavformat/demux.c."""


def codec_in(lines: Iterable[LogLine]) -> str:
    """The format of a video without a decoder, by the lines that came while it was opened; "" if they name none."""
    found = next(filter(None, (_UNKNOWN_CODEC.match(line.text) for line in lines)), None)
    if found is None:
        return ""
    return found[1] if found[1] != "none" else (found[2] or "").strip()


class FfmpegLog:
    """FFmpeg's lines in one thread since `listening`, or since the last call."""

    def __init__(self, lines: list[tuple[int, str, str]]) -> None:
        self._lines = lines
        self._kinds: set[Kind] = set()
        self._lock = threading.Lock()

    @property
    def lines(self) -> int:
        """So many are kept."""
        return len(self._lines)

    def take(self) -> set[Kind]:
        """The complaints since the last call."""
        if not self._lines and not self._kinds:
            return set()
        self.shorten()
        with self._lock:
            kinds, self._kinds = self._kinds, set()
        return kinds

    def take_lines(self) -> list[LogLine]:
        """The lines themselves since the last call."""
        with self._lock:
            lines = [LogLine(*line) for line in self._lines]
            del self._lines[: len(lines)]
        return lines

    def codec(self) -> str:
        """As `codec_in`, of the lines that are kept; they stay."""
        with self._lock:
            lines = self._lines[:]
        return codec_in(LogLine(*line) for line in lines)

    def shorten(self) -> None:
        """Forget the lines, but not their meaning. Any thread may call it, while one packet takes long to come.

        Measured: a hostile camera makes FFmpeg write 15 MB of lines a second.
        """
        with self._lock:
            lines = self._lines[:]
            del self._lines[: len(lines)]
            self._kinds.update(kind for line in lines if (kind := kind_of(LogLine(*line))))


@contextmanager
def listening() -> Iterator[FfmpegLog]:
    """Listen in this thread, which opens, reads and decodes one camera meanwhile."""
    _prepare()
    with av.logging.Capture(local=True) as lines:
        yield FfmpegLog(lines)


def _prepare() -> None:
    """Once for the process; again does no harm."""
    # A line that comes twice is about two packets.
    av.logging.set_skip_repeated(False)
    # Lines of other threads would go to Python's logging, where they might show passwords.
    silent = logging.getLogger("libav")
    silent.propagate = False
    silent.setLevel(logging.CRITICAL + 1)
    if av.logging.get_level() != av.logging.WARNING:
        av.logging.set_level(av.logging.WARNING)
