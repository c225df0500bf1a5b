"""Writes to an inherited descriptor: it may be full for a while, or be non-blocking.

it would have to wait (EAGAIN)     wait until it takes more
nobody reads any more (EPIPE)      the caller is told: that is for ever
anything else (a full disk)        `LossyWriter` goes on without what could not be written
"""

from __future__ import annotations

import io
import os
import select
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


def write_some(descriptor: int, data: bytes | memoryview) -> int:
    """As os.write, but waits even if the descriptor is set not to: another process may have set it so."""
    while True:
        try:
            return os.write(descriptor, data)
        except BlockingIOError:
            wait = select.poll()
            wait.register(descriptor, select.POLLOUT)
            wait.poll()


def write_all(descriptor: int, data: bytes) -> None:
    """All of it. Raises OSError."""
    while data:
        data = data[write_some(descriptor, data) :]


class LossyWriter:
    """Leaves out lines that cannot be written, and reports them as soon as something can be written again.

    `report(count, why)` returns the line that says how many were left out. A line that was written in part is ended
    first, so that no line is ever torn.
    """

    def __init__(self, descriptor: int, report: Callable[[int, str], str]) -> None:
        self._descriptor = descriptor
        self._report = report
        self._rest = b""
        self._left_out = 0
        self._why = ""

    @property
    def owes(self) -> bool:
        """Whether something waits to be written or reported: `write` of nothing does it."""
        return bool(self._rest or self._left_out)

    def write(self, data: bytes) -> None:
        """Raises BrokenPipeError alone."""
        notice = f"{self._report(self._left_out, self._why)}\n".encode() if self._left_out else b""
        whole, at = self._rest + notice + data, 0
        try:
            while at < len(whole):
                at += write_some(self._descriptor, whole[at:])
        except BrokenPipeError:
            raise
        except OSError as error:
            self._why = error.strerror or type(error).__name__
            self._leave_out(whole, at, len(self._rest), bool(notice))
        else:
            self._rest, self._left_out = b"", 0

    def _leave_out(self, whole: bytes, at: int, rest: int, notice: bool) -> None:
        """Keep the end of a half-written line, and count the lines behind it."""
        left = whole[at:]
        torn = whole[:at].endswith(b"\n") is False if at else rest > 0
        self._rest = b""
        if torn:
            end, line_break, left = left.partition(b"\n")
            self._rest = end + line_break
        earlier = self._left_out - 1 if notice and at <= rest else 0
        self._left_out = earlier + left.count(b"\n")


class OutputProblem(OSError):
    """Nothing can be written although the reader is there, for example because the disk is full."""


class WaitingFile(io.FileIO):
    """A descriptor to write to that another process has opened; it is not closed.

    `write` raises BrokenPipeError or OutputProblem.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "wb", closefd=False)

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return write_some(self.fileno(), memoryview(data))
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputProblem(error.errno, error.strerror) from None


class LossyFile(WaitingFile):
    """The same, through a `LossyWriter`."""

    def __init__(self, descriptor: int, report: Callable[[int, str], str]) -> None:
        super().__init__(descriptor)
        self._writer = LossyWriter(descriptor, report)

    def write(self, data: ReadableBuffer, /) -> int:
        given = bytes(data)
        self._writer.write(given)
        return len(given)
