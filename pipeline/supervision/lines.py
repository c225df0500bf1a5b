"""Bytes that somebody writes, as lines: what a process says on its standard error."""

from __future__ import annotations

from pipeline.system.redaction import LONGEST_SECRET, redacted_beginning

LONGEST_LINE = 1 << 14


class Lines:
    """Cuts what comes in pieces into lines; empty ones are left out.

    Of a line of more than `longest` bytes only the beginning is kept, without what may be secret: what is hidden in a
    line afterwards would not be recognised where it is cut in two.
    """

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._rest = bytearray()

    def take(self, piece: bytes) -> list[str]:
        """The lines that are whole now. What is no UTF-8 stands as an escape."""
        *ends, begin = piece.split(b"\n")
        lines = []
        for end in ends:
            self._add(end)
            lines += self.last()
        self._add(begin)
        return lines

    def last(self) -> list[str]:
        """What is left at the end, without a line break behind it."""
        line = bytes(self._rest).rstrip(b"\r")
        self._rest.clear()
        if not line:
            return []
        text = line.decode(errors="backslashreplace")
        if len(line) <= self._longest:
            return [text]
        most = min(self._longest, max(0, len(text) - LONGEST_SECRET))
        return [f"{redacted_beginning(text, most)} ..."]

    def _add(self, part: bytes) -> None:
        # So much more that its last characters may be left out again, of which one may be four bytes.
        self._rest += part[: self._longest + 4 * LONGEST_SECRET - len(self._rest)]


class Allowance:
    """How many lines of one writer are taken: `at_once`, and then so many a second."""

    def __init__(self, at_once: int = 100, per_s: float = 10.0) -> None:
        self._most, self._per_s = float(at_once), per_s
        self._left, self._at_s = float(at_once), 0.0
        self._left_out = 0

    def takes(self, now_s: float) -> bool:
        """Whether one more is taken now."""
        self._left = min(self._most, self._left + (now_s - self._at_s) * self._per_s)
        self._at_s = now_s
        if self._left < 1.0:
            self._left_out += 1
            return False
        self._left -= 1.0
        return True

    def take_left_out(self) -> int:
        """How many lines were not taken since the last call."""
        left_out, self._left_out = self._left_out, 0
        return left_out
