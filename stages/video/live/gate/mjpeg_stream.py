"""Cuts the pictures (JPEG) out of what an HTTP camera sends, by their own structure. Pure.

    between --FF D8 FF--> segments: a marker and its length, up to FF DA --> coded data --FF D9--> the picture is whole
                          (a thumbnail inside is jumped over)                   | FF D8: it has no end, or broke off

Boundaries, types and lengths of the parts are not read, because cameras get them wrong: no boundary before the first
picture, none at all, `image/jpg`, lengths that are too short or too long, texts between pictures.
Source: ITU-T T.81, annex B.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

BEGIN = b"\xff\xd8\xff"
MOST_PICTURE = 32 << 20
"""Bytes: almost one for each pixel of the largest picture that is decoded (8192x4352)."""

_MARKER = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")
"""In coded data, FF 00 is a byte, FF D0 to FF D7 are restarts, and FF FF is filling."""
_START, _END, _SCAN = 0xD8, 0xD9, 0xDA
_ALONE = frozenset({0x01, *range(0xD0, 0xD8)})
"""Markers without a length."""
_LENGTH = 2
_END_BYTES = b"\xff\xd9"
_BOUNDARY = b"\n--"
_MOST_HEAD = 1024
"""Of the next part, behind a picture that has no end."""


EMPTY = b"\xff\xd8\xff\xd9"
"""Stands for a picture that has broken off: the decoder refuses it, so it is counted as damaged."""


class PictureTooLarge(Exception):
    """A picture has no end within `MOST_PICTURE`."""


class PictureCutter:
    """One answer of one camera."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._at = 0
        """Up to here the picture that has begun was looked through."""
        self._is_begun = False
        self._is_scan = False
        """Whether coded data is looked through, and not segments."""
        self._sends_ends = False
        self.pictures = 0
        """How many were whole."""
        self.bytes = 0
        """How many have come."""

    @property
    def is_in_picture(self) -> bool:
        """Whether a picture has begun, and its end has not come."""
        return self._is_begun

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The pictures that are whole by now. Raises PictureTooLarge."""
        self._held += data
        self.bytes += len(data)
        while (end := self._next_end()) is not None:
            if end and self._is_broken(end):
                yield EMPTY
            elif end:
                self.pictures += 1
                yield self._ended(end)
            self._forget(end)
        if len(self._held) > MOST_PICTURE:
            raise PictureTooLarge

    def finish(self) -> Iterator[bytes]:
        """The picture at the end of an answer that came whole, although it has no end of its own."""
        if self._is_begun and self._is_scan:
            self.pictures += 1
            yield self._ended(len(self._held))
            self._forget(len(self._held))

    def _is_broken(self, end: int) -> bool:
        """Whether this picture has no end, and others of the camera have one: some cameras never send it."""
        has_end = self._has_end(end)
        self._sends_ends = self._sends_ends or has_end
        return self._sends_ends and not has_end

    def _has_end(self, end: int) -> bool:
        return self._held[end - len(_END_BYTES) : end] == _END_BYTES

    def _next_end(self) -> int | None:
        """The end of the picture that has begun; 0 if that is none, and None if more bytes are needed."""
        if not self._is_begun and not self._begin():
            return None
        while True:
            marker = self._next_marker()
            if marker is None:
                return None
            if marker < 0 or (marker == _START and not self._is_scan):
                return 0
            if marker == _START:
                return self._at
            if marker == _END:
                return self._at + len(_END_BYTES)
            if not self._jump(marker):
                return None

    def _begin(self) -> bool:
        begin = self._held.find(BEGIN)
        if begin < 0:
            # The last bytes may be the first of a picture.
            del self._held[: max(0, len(self._held) - len(BEGIN) + 1)]
            return False
        del self._held[:begin]
        self._is_begun, self._is_scan, self._at = True, False, len(BEGIN) - 1
        return True

    def _next_marker(self) -> int | None:
        """The marker at `_at`, or the next one in coded data; None if it has not come, and -1 if there is none."""
        if self._is_scan:
            found = _MARKER.search(self._held, self._at)
            if found is None:
                self._at = max(self._at, len(self._held) - 1)
                return None
            self._at = found.start()
            return self._held[self._at + 1]
        while len(self._held) > self._at + 1 and self._held[self._at : self._at + 2] == b"\xff\xff":
            self._at += 1
        if len(self._held) < self._at + 2:
            return None
        return self._held[self._at + 1] if self._held[self._at] == 0xFF else -1

    def _jump(self, marker: int) -> bool:
        """Go behind a segment; False while its length or its content has not come."""
        if marker in _ALONE:
            self._at += 2
            return True
        behind = self._at + 2 + _LENGTH
        if len(self._held) < behind:
            return False
        size = int.from_bytes(self._held[behind - _LENGTH : behind], "big")
        if len(self._held) < self._at + 2 + size:
            return False
        self._at += 2 + max(size, _LENGTH)
        self._is_scan = marker == _SCAN
        return True

    def _ended(self, end: int) -> bytes:
        """The picture up to there: with the end that every picture must have, and without the head of the next part."""
        if self._has_end(end):
            return self._copy(end)
        boundary = self._held.rfind(_BOUNDARY, max(0, end - _MOST_HEAD), end)
        if boundary < 0:
            return self._copy(end) + _END_BYTES
        return self._copy(boundary).removesuffix(b"\r") + _END_BYTES

    def _copy(self, end: int) -> bytes:
        with memoryview(self._held) as view:  # a slice of the bytes would be one more copy
            return bytes(view[:end])

    def _forget(self, end: int) -> None:
        """Go on behind a picture; 0: behind the beginning of what was none."""
        del self._held[: end or max(self._at, len(BEGIN) - 1)]
        self._is_begun = self._is_scan = False
