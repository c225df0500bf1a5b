"""The content of an HTTP answer, without its compression: some servers compress although nobody asked for that."""

from __future__ import annotations

import http.client
import zlib

from pipeline.foreign_text import shown
from stages.reading.live.verdicts import Dropped

_COMPRESSED = frozenset({"gzip", "x-gzip", "deflate"})
_PLAIN = frozenset({"", "identity"})
_WINDOW = zlib.MAX_WBITS | 32
"""The header of the data says whether it is gzip or zlib."""
_CHUNK = 1 << 14
_MOST_NAME = 30


class WebBody:
    """The content of one answer, as it comes. Raises Dropped for a compression that is not known."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        encoding = (response.getheader("Content-Encoding") or "").strip().lower()
        if encoding not in _PLAIN | _COMPRESSED:
            raise Dropped(
                f"it compresses its answer by `{shown(encoding, _MOST_NAME)}` although that was not asked for, and "
                "camgraph knows gzip and deflate alone"
            )
        self._response = response
        self._inflating = zlib.decompressobj(_WINDOW) if encoding in _COMPRESSED else None
        self._waiting = b""
        """Compressed data that has come already."""
        self._is_broken = False
        self.size = None if self._inflating else response.length
        """Of the content, None if that is not declared."""

    @property
    def is_whole(self) -> bool:
        """Whether everything has been read that was declared."""
        return not self._response.length and not self._is_broken

    def read(self, most: int) -> bytes:
        """The next content, as soon as there is some, `most` bytes at most; nothing at the end.

        Raises TimeoutError and other kinds of OSError, and Dropped if the compression is broken.
        """
        return self._received(most) if self._inflating is None else self._inflated(most)

    def _received(self, most: int) -> bytes:
        try:
            return self._response.read1(most)
        except http.client.HTTPException:
            self._is_broken = True
            return b""

    def _inflated(self, most: int) -> bytes:
        assert self._inflating is not None
        while True:
            data = self._waiting or self._received(_CHUNK)
            try:
                content = self._inflating.decompress(data, most)
            except zlib.error:
                raise Dropped("its answer is compressed, and cannot be read") from None
            self._waiting = self._inflating.unconsumed_tail
            if self._inflating.eof:
                # Some servers compress each part by itself.
                self._waiting, self._inflating = self._inflating.unused_data, zlib.decompressobj(_WINDOW)
            if content or not data:
                return content
