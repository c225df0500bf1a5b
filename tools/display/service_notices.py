"""Keeps the service manager (systemd) informed about a run: ready, healthy, alive, reloading, stopping."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from camgraph.pipeline.run_view import RunView
from camgraph.pipeline.system.redaction import redact_urls
from camgraph.pipeline.system.service_manager import ServiceManager

_STATUS_S = 5.0
_LONGER_S = 60.0
"""A run that opens large models, or drains, asks for so much more time again and again, as long as its loop turns."""
_BEATS = 4
"""In the time of the watchdog: the loop may take a few turns longer than usual."""


class ServiceNotices:
    """Call it about ten times a second with the run, from the thread that must not hang."""

    def __init__(self, manager: ServiceManager, now_s: Callable[[], float] = time.monotonic) -> None:
        self._manager = manager
        self._now_s = now_s
        self._beat_s = manager.watchdog_s / _BEATS
        self._next_beat = self._next_status = self._next_longer = 0.0
        self._is_ready = self._is_stopping = False
        self._reload_to_end = False

    def reloading(self) -> None:
        """A reload was asked for; it is over as soon as the run reloads no more."""
        self._reload_to_end = self._manager.reloading() or self._reload_to_end

    def stopping(self) -> None:
        """The run is to end."""
        self._is_stopping = self._is_stopping or self._manager.stopping()

    def __call__(self, run: RunView) -> None:
        now, phase = self._now_s(), run.phase
        if phase == "stopping":
            self.stopping()
        elif phase == "running":
            self._send_ready(run)
        if phase != "running" and now >= self._next_longer and self._manager.need_longer(_LONGER_S):
            self._next_longer = now + _LONGER_S / _BEATS
        if now >= self._next_beat and not math.isinf(self._beat_s) and self._manager.alive():
            self._next_beat = now + self._beat_s
        if now >= self._next_status:
            self._next_status = now + _STATUS_S
            health = run.status().health
            self._manager.status(redact_urls(f"{health.level}: {health.reason}"))

    def _send_ready(self, run: RunView) -> None:
        if not self._is_ready:
            self._is_ready = self._manager.ready()
            self._next_status = 0.0
        elif self._reload_to_end and not run.is_reloading:
            self._reload_to_end = not self._manager.ready()


@contextmanager
def service_notices() -> Iterator[ServiceNotices | None]:
    """For one run; None if no service manager has started this process."""
    manager = ServiceManager.taken_from(os.environ)
    if manager is None:
        yield None
        return
    with closing(manager):
        notices = ServiceNotices(manager)
        yield notices
        notices.stopping()
