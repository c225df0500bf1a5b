"""Watches the thread that reads a camera from outside, and pulls it out if FFmpeg does not let go of it.

    reading thread      | lease: in FFmpeg, back within so long |  no lease: at work  | lease ...
    watchdog              signs of life, `stalled` when due        looks on
                          lease over, or a stop not heard: shuts the connection's sockets down, so that FFmpeg returns

A thread that stays in FFmpeg even then gives no more signs of life, and the supervisor ends its process (`hang_s`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Self

from camgraph.pipeline.stage import Stop
from camgraph.stages.video.ffmpeg_log import FfmpegLog
from camgraph.stages.video.ffmpeg_memory import MemoryGuard
from camgraph.stages.video.live.camera_reporter import CameraReporter
from camgraph.stages.video.live.sockets import Peer, shut_down
from camgraph.stages.video.live.threads import start

TICK_S = 0.2
STOP_GRACE_S = 0.6
"""From a stop on: a camera that sends gives a packet within it, and its connection ends in order."""
_ASLEEP_S = 2.0
"""Between two ticks: the whole process was stopped, and no lease ran meanwhile."""


class ReadingWatchdog:
    """Guards one connection, from before it is opened until it is closed, for the thread that reads it.

    ``cut`` ends its sockets; without it these are found by ``peers``: connections of this process to the same address
    and port are shut down together. ``log`` is kept short meanwhile, and ``memory`` watched.
    """

    def __init__(
        self,
        reporter: CameraReporter,
        stop: Stop,
        peers: frozenset[Peer],
        stalled_s: float,
        log: FfmpegLog | None = None,
        *,
        cut: Callable[[], object] | None = None,
        memory: MemoryGuard | None = None,
    ) -> None:
        self._reporter = reporter
        self._stop = stop
        self._stalled_s = stalled_s
        self._log = log
        self._cut = cut or (lambda: shut_down(peers))
        self._memory = memory
        self._begun = 0.0
        self.too_much_memory = False
        """Whether it was ended for that."""
        self._lock = threading.Lock()
        self._until: float | None = None
        self._heeds_stop = True
        self._silent_since: float | None = None
        self._stopped_at: float | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def __enter__(self) -> Self:
        start(self._thread)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    @contextmanager
    def lease(self, seconds: float, *, heeds_stop: bool = True) -> Iterator[None]:
        """The reading thread goes into FFmpeg, and means to be back within that time."""
        with self._lock:
            self._begun = time.monotonic()
            self._until, self._heeds_stop = self._begun + seconds, heeds_stop
        try:
            yield
        finally:
            with self._lock:
                self._until = None

    def alive(self) -> None:
        """Report that the reading thread is alive."""
        self._reporter.alive()

    def note_arrival(self) -> None:
        """Note that the connection is up, or a packet has arrived: a sign of life, and silence counts from now on."""
        self._reporter.alive()
        with self._lock:
            self._silent_since = time.monotonic()

    def _watch(self) -> None:
        last = time.monotonic()
        while not self._over.wait(TICK_S):
            now = time.monotonic()
            if self._log:
                self._log.shorten()
            if self._is_over(now, now - last) or self._is_too_large(now):
                # Without memory or descriptors nothing is found: then again with the next tick.
                with suppress(OSError, MemoryError):
                    self._cut()
            last = now

    def _is_over(self, now: float, slept_s: float) -> bool:
        """Whether the reading thread must be pulled out; if not, reports are made that are due."""
        with self._lock:
            if self._until is None:
                return False
            if slept_s > _ASLEEP_S:
                self._until += slept_s
            if now > self._until or (self._heeds_stop and self._stop_unheard(now)):
                return True
            self._reporter.alive()
            if self._silent_since is not None and now - self._silent_since > self._stalled_s and not self._stopped_at:
                self._reporter.is_now("stalled", f"it is connected, and nothing came for {self._stalled_s:g} s")
            return False

    def _is_too_large(self, now: float) -> bool:
        """Even if it does not come back: memory that goes on growing is worse than a lost camera."""
        if self._memory is None:
            return False
        with self._lock:
            begun_s = self._begun if self._until is not None else None
        self.too_much_memory = self.too_much_memory or self._memory.is_over(begun_s, now)
        return self.too_much_memory

    def _stop_unheard(self, now: float) -> bool:
        if self._stopped_at is None and self._stop.is_set():
            self._stopped_at = now
        return self._stopped_at is not None and now - self._stopped_at > STOP_GRACE_S
