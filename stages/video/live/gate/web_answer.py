"""What an HTTP camera has answered with: what is served, by the declared type and the first bytes, and the content."""

from __future__ import annotations

import http.client
import re
import zlib
from typing import Literal

from camgraph.pipeline.foreign_text import shown
from camgraph.stages.video import playlists
from camgraph.stages.video.live.camera_problems import Dropped
from camgraph.stages.video.live.gate import mjpeg_stream

Served = Literal["playlist", "pictures", "stream"]
"""`pictures`: JPEG after JPEG, or a single one; `stream`: everything else, which FFmpeg has to recognise."""

PLAYLIST_BEGIN = playlists.BEGIN.encode()
BEGIN_BYTES = len(PLAYLIST_BEGIN)
"""The first bytes that show what is served."""
_TEXT = re.compile(rb"[\t\r\n\x20-\x7e\x80-\xff]*\Z")
_TEXT_TYPES = re.compile(r"text/|application/(json|xml|xhtml)")
_MARK = b"\xef\xbb\xbf"
"""Some texts in UTF-8 begin so."""
_MOST_TYPE = 60
_COMPRESSED = frozenset({"gzip", "x-gzip", "deflate"})
_PLAIN = frozenset({"", "identity"})
_WINDOW = zlib.MAX_WBITS | 32
"""The header of the data says whether it is gzip or zlib."""
_CHUNK = 1 << 14
_MOST_NAME = 30


def served(content_type: str, begin: bytes) -> Served:
    """``begin``: the first bytes of the content, as many as are enough.

    Raises Dropped if no camera's stream is what has been answered.
    """
    if begin == PLAYLIST_BEGIN:
        return "playlist"
    kind = content_type.partition(";")[0].strip().lower()
    content = begin.removeprefix(_MARK).lstrip()
    if not begin and not is_of_parts(content_type):
        raise Dropped("its answer is empty")
    if is_of_parts(content_type) or content.startswith((b"--", mjpeg_stream.BEGIN)):
        return "pictures"
    declared = shown(kind, _MOST_TYPE) or "no type"
    if content[:1] in (b"<", b"{") or (_TEXT_TYPES.match(kind) and _TEXT.match(begin)):
        page = "a web page" if "html" in kind or content.startswith(b"<") else "a text"
        raise Dropped(
            f"it answers with {page} ({declared}) instead of video: write the address of the stream itself in `url` "
            "(the camera's manual has it), and user and password if the page asks for them",
            "gone",
        )
    if kind.startswith("image/") and kind not in ("image/jpeg", "image/jpg", "image/pjpeg"):
        raise Dropped(
            f"it answers with a picture ({declared}): camgraph reads pictures of cameras as JPEG alone; "
            "choose JPEG, or a stream, in the camera",
            "gone",
        )
    return "stream"


def is_enough(content_type: str, begin: bytes) -> bool:
    """Whether these first bytes show what is served."""
    if len(begin) >= BEGIN_BYTES or is_of_parts(content_type):
        return True
    content = begin.removeprefix(_MARK).lstrip()
    may_be = any(one.startswith(content) for one in (PLAYLIST_BEGIN, mjpeg_stream.BEGIN, b"--"))
    return not may_be and not _TEXT_TYPES.match(content_type.lower())


def is_of_parts(content_type: str) -> bool:
    """Whether the content is declared as one part after the other, of which the first may come late."""
    return content_type.strip().lower().startswith("multipart/")


class WebBody:
    """The content of one answer, as it comes, without its compression: some servers compress although nobody asked.

    Raises Dropped for a compression that is not known.
    """

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
