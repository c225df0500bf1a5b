"""Bounds what waits for the sinks: beyond a number, an age or a size of the file, the oldest events are given up.

An event is given up for one sink at a time; the others still get it. Events that a sink has in its hands stay, and so
does the last event of an open incident, though nobody waits for it any more. The age counts while the outbox is open:
neither a clock that jumps nor a machine that was off makes an event old.
"""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from camgraph.pipeline.outbox.deliveries import Deliveries
from camgraph.pipeline.outbox.event_file import run_row
from camgraph.pipeline.outbox.old_events import forget_oldest, used_bytes
from camgraph.pipeline.stage import Logger

_PIECE = 500
_PIECE_OF_FILE = 100
_LONGEST_S = 0.1
"""For as long at once: the loop has other things to do."""
_QUIET_S = 60.0
"""A burst is over when nothing was given up for so long."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of the events that wait for each sink, and of the file."""

    keep_s: float
    keep_events: int
    keep_bytes: int


@dataclass(slots=True)
class _Burst:
    events: int
    last_s: float


@dataclass(slots=True)
class Backlog:
    """`count(sink, camera, n)` counts events that were given up; `given_up`: so many since the process began."""

    db: sqlite3.Connection
    deliveries: Deliveries
    bounds: Bounds
    count: Callable[[str, str, int], None]
    log: Logger
    given_up: Counter[str] = field(default_factory=Counter)
    _bursts: dict[str, _Burst] = field(default_factory=dict)

    def keep_within(self, open_s: float) -> bool:
        """Give up a piece of what is too much; True if there is more. `open_s`: for how long the outbox was open.

        Raises sqlite3.Error.
        """
        until = time.monotonic() + _LONGEST_S
        steps: list[Callable[[], bool]] = []
        for sink in list(self.deliveries.waiting):
            steps += [lambda sink=sink: self._too_many(sink, open_s), lambda sink=sink: self._too_old(sink, open_s)]  # type: ignore[misc]
        steps.append(lambda: self._too_large(open_s))
        more = False
        for step in steps:
            more = True
            while more and time.monotonic() < until:
                more = step()
            if more:
                return True
        self._end_bursts(open_s)
        return more

    def _too_many(self, sink: str, open_s: float) -> bool:
        most = self.bounds.keep_events
        surplus = min(_PIECE, self.deliveries.waiting[sink] - most)
        if surplus <= 0:
            return False
        return self._give_up(sink, self.deliveries.oldest(sink, surplus), f"more than {most:,} wait", open_s)

    def _too_old(self, sink: str, open_s: float) -> bool:
        keep_s = self.bounds.keep_s
        if not self.deliveries.waiting[sink] or not _older(self.deliveries.oldest(sink, 1), keep_s):
            return False
        why = f"it has waited for more than {keep_s / 86_400:g} days"
        return self._give_up(sink, _older(self.deliveries.oldest(sink, _PIECE), keep_s), why, open_s)

    def _too_large(self, open_s: float) -> bool:
        """Delivered events go first, then the oldest ones of the sink with most of them."""
        if used_bytes(self.db) <= self.bounds.keep_bytes:
            return False
        if forget_oldest(self.db, run_row(self.db).swept):
            return True
        waiting = self.deliveries.waiting
        sink = max(waiting, key=lambda name: waiting[name], default="")
        why = f"the file is larger than {self.bounds.keep_bytes / 1e9:g} GB"
        return bool(sink) and self._give_up(sink, self.deliveries.oldest(sink, _PIECE_OF_FILE), why, open_s)

    def _give_up(self, sink: str, rows: Sequence[tuple[int, str, float]], why: str, open_s: float) -> bool:
        if not rows:
            return False
        self.deliveries.forget({sink: [row for row, _, _ in rows]})
        for camera, n in Counter(camera for _, camera, _ in rows).items():
            self.count(sink, camera, n)
        self.given_up[sink] += len(rows)
        burst = self._bursts.get(sink)
        if burst is None:
            self.log.error("events_given_up", sink=sink, why=why, waiting=self.deliveries.waiting[sink])
            burst = self._bursts[sink] = _Burst(0, open_s)
        burst.events += len(rows)
        burst.last_s = open_s
        return True

    def _end_bursts(self, open_s: float) -> None:
        for sink, burst in list(self._bursts.items()):
            if open_s - burst.last_s > _QUIET_S:
                self.log.warning("events_given_up_until_now", sink=sink, events=burst.events)
                del self._bursts[sink]


def _older(rows: Sequence[tuple[int, str, float]], than_s: float) -> Sequence[tuple[int, str, float]]:
    return [row for row in rows if row[2] > than_s]


def as_counts(waiting: Mapping[str, int]) -> dict[str, int]:
    """The sinks with waiting events, and their numbers."""
    return {sink: n for sink, n in waiting.items() if n}
