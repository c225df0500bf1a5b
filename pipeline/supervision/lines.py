"""Splits the bytes of a process's standard error into lines."""

from __future__ import annotations

from camgraph.pipeline.system.redaction import LONGEST_SECRET, redacted_beginning

LONGEST_LINE = 1 << 14


class Lines:
    """Collects pieces of bytes into lines, and leaves out empty ones.

    Of a line of more than `longest` bytes only the beginning is kept, without a possible part of a secret at its end: a
    secret that is cut in two would not be recognised and hidden later.
    """

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._rest = bytearray()

    def take(self, piece: bytes) -> list[str]:
        """Return the lines that are complete now. Bytes that are not UTF-8 become escapes."""
        *ends, begin = piece.split(b"\n")
        lines = []
        for end in ends:
            self._add(end)
            lines += self.last()
        self._add(begin)
        return lines

    def last(self) -> list[str]:
        """Return the unfinished line at the end, if there is one."""
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
        # Keep more than the limit, so that the last characters can be cut off again; one may have four bytes.
        self._rest += part[: self._longest + 4 * LONGEST_SECRET - len(self._rest)]


class Allowance:
    """Limits the lines of one writer to `at_once`, and then to `per_s` a second."""

    def __init__(self, at_once: int = 100, per_s: float = 10.0) -> None:
        self._most, self._per_s = float(at_once), per_s
        self._left, self._at_s = float(at_once), 0.0
        self._left_out = 0

    def takes(self, now_s: float) -> bool:
        """Whether to take one more line now."""
        self._left = min(self._most, self._left + (now_s - self._at_s) * self._per_s)
        self._at_s = now_s
        if self._left < 1.0:
            self._left_out += 1
            return False
        self._left -= 1.0
        return True

    def take_left_out(self) -> int:
        """Return how many lines were left out since the last call."""
        left_out, self._left_out = self._left_out, 0
        return left_out
