"""Ctrl-C at every line of a program: raises KeyboardInterrupt where Python itself would, one line after the other.

Python handles a signal only at certain steps, never between taking a lock and entering its `with` block. So the trace
function does not raise: it only makes the signal pending, and Python raises at the next such step.
"""

from __future__ import annotations

import _thread
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, ModuleType
from typing import Any

_OF_PYTHON = frozenset({threading.__file__, weakref.WeakSet.add.__code__.co_filename})

Line = tuple[str, int, str, int]
"""Where an interrupt is tried: file, line, and for those of Python's own files the function and line that led there."""


class _Pending:
    """`_PENDING[number]` makes a signal pending. A call would do that too, but Python would raise right after it."""

    __getitem__ = _thread.interrupt_main


_PENDING: Any = _Pending()


class Interrupts:
    """Interrupts an act in the main thread at lines of these modules, and of `threading` where they call it."""

    def __init__(self, *modules: ModuleType) -> None:
        self._ours = frozenset(str(module.__file__) for module in modules)
        self._lines: dict[Line, None] = {}
        self._wanted: Line | None = None

    def lines(self, act: Callable[[], object]) -> list[Line]:
        """Run the act to its end, and return its lines in the order of their first execution."""
        self._lines.clear()
        with self._traced(None):
            act()
        return list(self._lines)

    def interrupted(self, act: Callable[[], object], line: Line) -> bool:
        """Run the act with an interrupt at this line; False if it ends without one.

        Raises what the act raises instead of the KeyboardInterrupt.
        """
        try:
            with self._traced(line):
                act()
        except KeyboardInterrupt:
            return True
        return False

    @contextmanager
    def _traced(self, line: Line | None) -> Iterator[None]:
        self._wanted = line
        before, handler = sys.gettrace(), signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.settrace(self._called)
        try:
            yield
        finally:
            sys.settrace(before)
            signal.signal(signal.SIGINT, handler)

    def _called(self, frame: FrameType, event: str, _: object) -> Any:
        return self._at_line if frame.f_code.co_filename in self._ours | _OF_PYTHON else None

    def _at_line(self, frame: FrameType, event: str, _: object) -> Any:
        if event != "line" or (line := self._line(frame)) is None:
            return self._at_line
        self._lines[line] = None
        if line == self._wanted:
            self._wanted = None
            outer: FrameType | None = frame
            while outer is not None:  # a trace function that is called now would be interrupted itself
                outer.f_trace = None
                outer = outer.f_back
            _PENDING[signal.SIGINT]
            return None
        return self._at_line

    def _line(self, frame: FrameType) -> Line | None:
        caller: FrameType | None = frame
        while caller is not None and caller.f_code.co_filename in _OF_PYTHON:
            caller = caller.f_back
        if caller is None or caller.f_code.co_filename not in self._ours:
            return None
        return frame.f_code.co_filename, frame.f_lineno, caller.f_code.co_name, caller.f_lineno
