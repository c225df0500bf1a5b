"""A file as the answer to a request: whole, or the range that was asked for, as far as it is when it is opened.

Of a file that grows or is replaced meanwhile, exactly the bytes are sent that were announced.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from email.utils import formatdate
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from camgraph.pipeline.errors import Unavailable
from camgraph.tools.service.web.calls import NOT_MODIFIED
from camgraph.tools.service.web.thread_pools import ThreadPool

OF_FILE = {206: "the part that `Range` asks for", **NOT_MODIFIED}
"""`Gives.also` of a call that answers so."""
_PIECE = 1 << 16
_RANGE = re.compile(r"bytes=\s*(\d{0,18})-(\d{0,18})\s*", re.ASCII)
"""One alone: several at once are answered with the whole file, as the standard allows."""


class OpenFile(NamedTuple):
    """A descriptor, and the state of its file when it was opened."""

    descriptor: int
    found: os.stat_result

    @classmethod
    def of(cls, descriptor: int) -> OpenFile:
        """For a thread: on a network share, this waits as well."""
        return cls(descriptor, os.fstat(descriptor))


class FileAnswer(StreamingResponse):
    """Answers `request` with the open file, which it closes. `threads` read it, piece by piece."""

    def __init__(self, request: Request, file: OpenFile, media_type: str, threads: ThreadPool) -> None:
        self._descriptor, found = file
        self._threads, size = threads, found.st_size
        tag = f'"{found.st_ino:x}-{size:x}-{found.st_mtime_ns:x}"'
        headers = {
            "Accept-Ranges": "bytes",
            "Cache-Control": "no-cache, private",
            "Content-Disposition": "inline",
            "ETag": tag,
            "Last-Modified": formatdate(found.st_mtime, usegmt=True),
        }
        status, start, end = 200, 0, size
        if tag in request.headers.get("if-none-match", ""):
            status, end = 304, 0
        elif request.headers.get("if-range", tag) in (tag, headers["Last-Modified"]):
            status, start, end = _asked(request.headers.get("range", ""), size)
        if status == 206:
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
        if status == 416:
            headers["Content-Range"] = f"bytes */{size}"
        if status != 304:
            headers["Content-Length"] = str(end - start)
        pieces = self._pieces(start, start if request.method == "HEAD" else end)
        super().__init__(pieces, status, headers, media_type)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._threads.run_later(os.close, self._descriptor)

    async def _pieces(self, start: int, end: int) -> AsyncIterator[bytes]:
        """If the file has become shorter, or no thread is free, the connection breaks: no part passes for the whole."""
        while start < end:
            try:
                piece = await self._threads.run(os.pread, self._descriptor, min(_PIECE, end - start), start)
            except Unavailable:
                return
            if not piece:
                return
            start += len(piece)
            yield piece


def _asked(header: str, size: int) -> tuple[int, int, int]:
    """The status, and from where to where. A header that makes no sense is passed over, as the standard says."""
    found = _RANGE.fullmatch(header)
    first, last = found.groups() if found else ("", "")
    if (not first and not last) or (first and last and int(last) < int(first)):
        return 200, 0, size
    start = int(first) if first else max(0, size - int(last))
    end = min(size, int(last) + 1) if first and last else size
    return (206, start, end) if start < end else (416, 0, 0)
