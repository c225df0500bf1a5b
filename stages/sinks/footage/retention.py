"""Removes the oldest incidents: all that are too old, and more of them if the rest takes too many bytes.

It never removes an incident that is being written, or that somebody has marked to `keep`.
"""

from __future__ import annotations

import math
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from camgraph.pipeline.stage import Logger
from camgraph.stages.sinks.footage.incident_record import IncidentRecord, records_in

LOOK_S = 300.0
"""From one look at the folder to the next."""
_FORGOTTEN_S = 86_400.0
"""A record that is unfinished for so long never will be: the disk was full when it was to say so."""


@dataclass(frozen=True, slots=True)
class KeepRule:
    """How long the incidents of a camera and a severity are kept, and how many bytes of them; "" means any."""

    camera: str = ""
    severity: str = ""
    keep_s: float = math.inf
    keep_bytes: float = math.inf

    def fits(self, record: IncidentRecord) -> bool:
        """Whether the rule is about this incident."""
        severity = record.data.get("severity", "warning")
        return self.camera in ("", record.camera) and self.severity in ("", severity)


class Retention:
    """The retention of one folder of footage. The first rule that fits an incident says how long it is kept.

    `keep_s`: for incidents that no rule fits. `keep_bytes`: the limit of all incidents together.
    `is_running(incident)`: whether this process writes it, however old it seems: the clock may be set meanwhile.
    """

    def __init__(
        self,
        folder: Path,
        log: Logger,
        *,
        keep_s: float,
        keep_bytes: float,
        rules: Sequence[KeepRule] = (),
        is_running: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._folder, self._log, self._is_running = folder, log, is_running
        self._rules = [*rules, KeepRule(keep_s=keep_s)]
        self._keep_bytes = keep_bytes
        self._look_at_s = 0.0
        self._sweeps: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def remove_due(self) -> int:
        """Begin to remove due incidents, if it is time to look again: in a thread, because 100,000 of them take 20 s.

        Returns the number of incidents that were removed since the last call.
        """
        now_s = time.monotonic()
        if now_s >= self._look_at_s and not (self._thread and self._thread.is_alive()):
            self._look_at_s = now_s + LOOK_S
            self._thread = threading.Thread(target=self._sweep_now, name="retention", daemon=True)
            self._thread.start()
        return sum(self._sweeps.get_nowait() for _ in range(self._sweeps.qsize()))

    def _sweep_now(self) -> None:
        try:
            self._sweeps.put(self.sweep(time.time()))
        except Exception:  # noqa: BLE001
            # A bug must not end the run; but a disk that fills silently must not be found out a year later.
            self._log.exception("retention_failed", folder=str(self._folder))

    def sweep(self, now_s: float) -> int:
        """Remove the incidents that are due at this time (seconds since 1970)."""
        removed, total, of_rule = 0, 0, Counter[int]()
        # The newest first: the oldest ones are those that find no more room.
        for record in records_in(self._folder, newest_first=True):
            size, age_s = _size(record), now_s - _written_s(record)
            number, rule = next((n, rule) for n, rule in enumerate(self._rules) if rule.fits(record))
            total, of_rule[number] = total + size, of_rule[number] + size
            is_much = total > self._keep_bytes or of_rule[number] > rule.keep_bytes
            is_written = self._is_running(record.incident) or (record.is_pending and age_s < _FORGOTTEN_S)
            if (is_much or age_s > rule.keep_s) and not record.keep and not is_written:
                remove(record)
                removed, total, of_rule[number] = removed + 1, total - size, of_rule[number] - size
        return removed


def remove(record: IncidentRecord) -> None:
    """Remove an incident with its files, and its folder if nothing else is in it."""
    for path in record.paths:
        with suppress(OSError):
            path.unlink(missing_ok=True)
    with suppress(OSError):
        record.path.parent.rmdir()
        record.path.parent.parent.rmdir()


def _size(record: IncidentRecord) -> int:
    """The bytes of an incident on the disk; if several incidents share a clip, its share of them."""
    size = 0
    for path in record.paths:
        with suppress(OSError):
            found = path.stat()
            size += found.st_size // max(1, found.st_nlink)
    return size


def _written_s(record: IncidentRecord) -> float:
    with suppress(OSError):
        return record.path.stat().st_mtime
    return 0.0
