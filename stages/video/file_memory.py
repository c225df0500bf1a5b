"""Watches the memory that FFmpeg takes for a file, beside the thread that reads it.

    reading thread   | in FFmpeg |  its frame goes on  | in FFmpeg | ...    a call that took too much ends the file
    beside it          looks five times a second; a call of some length also looks at its own end

A file has no connection that could be cut: a thread that does not return from FFmpeg gives no more signs of life, and
the supervisor ends its process (`hang_s`).
"""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

from camgraph.pipeline.errors import BadItem, EnvironmentProblem
from camgraph.stages.video.ffmpeg_memory import MemoryGuard

TICK_S = 0.2
_SHORT_S = 0.01
"""Of processor time. A call that takes 64 MB, the least limit, must map 16,000 pages and is longer."""


class FileMemory:
    """The guard of one file, while one thread reads it: ``in_ffmpeg`` surrounds each call of FFmpeg.

    A call is long by the processor time that it takes: one that waits for a disk takes no memory, whatever the rest of
    the process does meanwhile.
    """

    def __init__(self, name: str, memory_mb: int, *, alone: bool) -> None:
        self._name = name
        self._memory_mb = memory_mb
        self._guard = MemoryGuard(memory_mb, alone=alone, is_file=True)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="file-memory", daemon=True)
        self._clock = 0
        self.in_ffmpeg = Calls(self)
        self.is_too_large = False

    def __enter__(self) -> Self:
        """In the reading thread. Raises EnvironmentProblem."""
        self._guard.__enter__()
        if not hasattr(time, "pthread_getcpuclockid"):  # if there is none, the memory is not known either
            return self
        self._clock = time.pthread_getcpuclockid(threading.get_ident())
        try:
            self._thread.start()
        except RuntimeError as error:
            self._guard.__exit__()
            raise EnvironmentProblem(
                f"no thread can be started ({error}): lift the limit (ulimit -u)", error_id="system-limit"
            ) from None
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._guard.__exit__()

    def problem(self) -> BadItem:
        """Why the file is not read on."""
        return BadItem(
            "too_much_memory",
            f"{self._name}: FFmpeg wants more than {self._memory_mb} MB for it (memory_mb); if you trust this file, "
            "write a larger memory_mb for its camera",
        )

    def measure(self) -> None:
        """Notice what a call has taken that was over before the other thread looked."""
        if self._guard.has_grown():
            self.is_too_large = True

    def _watch(self) -> None:
        while not self._over.wait(TICK_S):
            if self._guard.is_over(self.in_ffmpeg.begun_s, time.clock_gettime(self._clock)):
                self.is_too_large = True


class Calls:
    """The calls of FFmpeg for one file, one after the other. Each raises BadItem at its end if it took too much."""

    def __init__(self, memory: FileMemory) -> None:
        self._memory = memory
        self.begun_s: float | None = None
        """Of the call that lasts, by the processor time of its thread."""

    def __enter__(self) -> None:
        self.begun_s = time.thread_time()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        begun_s, self.begun_s = self.begun_s, None
        if begun_s is not None and time.thread_time() - begun_s > _SHORT_S:
            self._memory.measure()
        if self._memory.is_too_large or isinstance(error, MemoryError):
            raise self._memory.problem() from None
