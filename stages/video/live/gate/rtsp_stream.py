"""Splits the data of an RTSP connection into media and messages; there is nothing else. Pure.

$ channel size size data ...        media: as it comes, whole or not
RTSP/1.0 200 OK ... | body          messages: whole

FFmpeg reads more loosely (libavformat/rtsp.c: any text is a message, `302x` is 302, a length may have a sign).
Two readers that differ are a way past the one that checks, so text goes on only as it was understood here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MOST_HEAD = 1 << 16
MOST_BODY = 1 << 20
"""A description of a camera has a few kilobytes."""
LEAST_MEDIA = 8
"""Bytes of the shortest packet of RTP or RTCP. FFmpeg reads the content of a shorter frame as text."""

_DOLLAR = 0x24
_FRAME_HEAD = 4
_BETWEEN = b"\r\n"
"""Some cameras end a body with a line break that they have not counted."""
_MAY_BEGIN = re.compile(rb"[A-Z_]")
_FIRST = re.compile(r"RTSP/|[A-Z_]+ .*\S RTSP/1\.[0-9]\Z")
_STATUS = re.compile(r"RTSP/\S* +([0-9]{3})(?![0-9])")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


class Malformed(Exception):
    """Neither media nor a message, or a message that is too long; its text shows the data."""


@dataclass(slots=True)
class Message:
    """A request or an answer; `first` is its first line. Some headers come more than once."""

    first: str
    headers: list[tuple[str, str]]
    body: bytes = b""

    @property
    def is_answer(self) -> bool:
        """Else it is a request."""
        return self.first.startswith("RTSP/")

    @property
    def status(self) -> int | None:
        """The status of an answer; None for a request, and if it cannot be read. Text right behind it does not
        count.
        """
        found = _STATUS.match(self.first)
        return int(found[1]) if found else None

    def values(self, name: str) -> list[str]:
        """Of all headers of this name."""
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def value(self, name: str) -> str:
        """Of the first header of this name, "" without one."""
        return next(iter(self.values(name)), "")

    def set(self, name: str, value: str) -> None:
        """Instead of all headers of this name; "" for none."""
        self.headers = [(key, old) for key, old in self.headers if key.lower() != name.lower()]
        if value:
            self.headers.append((name, value))

    def to_bytes(self) -> bytes:
        """As it travels."""
        lines = [self.first, *(f"{name}: {value}" for name, value in self.headers), "", ""]
        return "\r\n".join(lines).encode("latin-1", "replace") + self.body


class Splitter:
    """One direction of one connection."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._left = 0
        """How many bytes of the media that has begun are still to come."""
        self._lines: list[str] = []
        """Of a head that is not whole yet."""
        self._head_size = 0
        self._searched = 0
        """How many of the kept bytes have no line end in them."""
        self._begun: tuple[Message, int] | None = None
        """A message whose body is not whole yet, and the size of that."""

    def feed(self, data: bytes) -> Iterator[bytes | Message]:
        """The media that has come, and the messages that are whole by now, in order. Raises Malformed."""
        self._held += data
        while True:
            if not self._is_in_message():
                yield from self._media()
                if not self._held or self._held[0] == _DOLLAR:
                    return
            message = self._message()
            if message is None:
                return
            yield message

    def _is_in_message(self) -> bool:
        return bool(self._lines) or self._begun is not None

    def _media(self) -> Iterator[bytes]:
        """Everything up to the next message, or to the beginning of a frame whose size has not come yet."""
        begin = at = 0
        while (extent := self._extent(at)) is not None:
            size, is_wanted = extent
            if not is_wanted:
                if at > begin:
                    yield bytes(self._held[begin:at])
                begin = at + size
            at += size
        if at > begin:
            yield bytes(self._held[begin:at])
        del self._held[:at]

    def _extent(self, at: int) -> tuple[int, bool] | None:
        """Return how many bytes from there on are media, or useless; None if they are neither."""
        there = len(self._held) - at
        if not there:
            return None
        if self._left:
            size = min(self._left, there)
            self._left -= size
            return size, True
        if self._held[at] in _BETWEEN:
            return 1, False
        if self._held[at] != _DOLLAR or there < _FRAME_HEAD:
            return None
        size = int.from_bytes(self._held[at + 2 : at + _FRAME_HEAD], "big")
        if size >= LEAST_MEDIA:
            self._left = size
            return _FRAME_HEAD, True
        return (_FRAME_HEAD + size, False) if there >= _FRAME_HEAD + size else None

    def _message(self) -> Message | None:
        """The message that has begun; None while it is not whole. Raises Malformed."""
        self._begun = self._begun or self._head()
        if self._begun is None:
            return None
        message, size = self._begun
        if len(self._held) < size:
            return None
        message.body = bytes(self._held[:size])
        del self._held[:size]
        self._begun = None
        return message

    def _head(self) -> tuple[Message, int] | None:
        if not self._lines and not _MAY_BEGIN.match(self._held):
            raise Malformed("something that is neither media nor a message of RTSP")
        while (end := self._held.find(b"\n", self._searched)) >= 0:
            line = _CONTROL.sub(" ", self._held[:end].decode("latin-1").replace("\r", ""))
            del self._held[: end + 1]
            self._searched = 0
            self._require_short(end + 1)
            if not line:
                lines, self._lines, self._head_size = self._lines, [], 0
                return _parsed(lines)
            if not self._lines and not _FIRST.match(line.rstrip()):
                raise Malformed("a text that is no message of RTSP")
            self._lines.append(line)
        self._searched = len(self._held)
        self._require_short(0)
        return None

    def _require_short(self, line_size: int) -> None:
        self._head_size += line_size
        if self._head_size + self._searched > MOST_HEAD:
            raise Malformed("headers without an end")


def _parsed(lines: list[str]) -> tuple[Message, int]:
    """The message of this head, and the size of its body. Raises Malformed."""
    first, *rest = lines
    pairs = (line.partition(":") for line in rest)
    message = Message(first.rstrip(), [(name.strip(), value.strip()) for name, colon, value in pairs if colon])
    declared = {value.lstrip("0") for value in message.values("content-length")}
    size = declared.pop() if declared else ""
    if declared or not re.fullmatch("[0-9]*", size):
        raise Malformed("an answer whose length cannot be read")
    if len(size) > len(str(MOST_BODY)) or int(size or 0) > MOST_BODY:
        raise Malformed(f"an answer of {size[:20]} bytes")
    return message, int(size or 0)
