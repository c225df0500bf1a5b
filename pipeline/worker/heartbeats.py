"""The heartbeat of a process: that it is alive, and what has changed since the last one.

Four times a second if there is news; at rest once a second, because each one wakes the supervisor.
"""

from __future__ import annotations

import math
import time
from typing import Any

from camgraph.pipeline.execution.process_parts import ProcessParts
from camgraph.pipeline.monitoring.reports import durations_of
from camgraph.pipeline.transport.channel import Channel
from camgraph.pipeline.worker.message_path import MessagePath

_HEARTBEAT_S = 0.25
_QUIET_S = 1.0
_QUIET_PART = 0.25
"""Of `hang_s`: a process at rest says so often enough not to count as hung."""
_NO_NEWS = {"cpu_s"}
"""Changes always, and alone is worth no heartbeat."""


class Heartbeats:
    """Reports how the messages of one process get on (`pipeline.monitoring.reports.Heartbeat`)."""

    def __init__(self, path: MessagePath, channel: Channel, parts: ProcessParts, *, hang_s: float) -> None:
        self._path = path
        self._channel = channel
        self._counters = parts.counters
        self._retry = parts.retry
        self._quiet_s = min(_QUIET_S, _QUIET_PART * hang_s)
        self._next_heartbeat = self._next_anyway = 0.0
        self._cpu_before = 0.0
        self._told: dict[str, Any] = {}
        """The values of the last heartbeat that was sent: the supervisor knows these."""

    def begin(self) -> None:
        """The stages are open: memory that they take from now on is for their work."""
        self._cpu_before = time.process_time()

    @property
    def longest_wait_ms(self) -> int:
        """How long a process at rest may wait between two calls of `send_in_time`."""
        return math.ceil(500 * self._quiet_s)

    def send_in_time(self, *, at_rest: bool = False) -> None:
        """Send a heartbeat if it is due. Call it often. A process `at_rest` is not searched for news."""
        now = time.monotonic()
        if now >= (self._next_anyway if at_rest else self._next_heartbeat):
            self._next_heartbeat = now + _HEARTBEAT_S
            self.send(only_news=now < self._next_anyway)

    def send(self, *, only_news: bool = False) -> None:
        """Send a heartbeat now; with `only_news`, leave it out if nothing has happened."""
        changes = self._counters.camera_changes()
        values = self._values()
        news = {name: value for name, value in values.items() if name not in self._told or self._told[name] != value}
        since_the_last = {
            "ages": self._path.chain.ages_ms(),
            "stage_calls": durations_of(self._path.chain.take_calls()),
            "frame_ages": durations_of(self._path.chain.take_ages()),
            "camera_changes": changes,
        }
        happened = {name: found for name, found in since_the_last.items() if found}
        if only_news and not happened and news.keys() <= _NO_NEWS:
            return
        self._next_anyway = time.monotonic() + self._quiet_s
        if self._channel.send("heartbeat", **news, **happened):
            self._told = values
        else:
            self._told = {}
            self._counters.keep_camera_changes(changes)

    def _values(self) -> dict[str, Any]:
        """All that a heartbeat tells of this moment."""
        path, relay = self._path, self._path.relay
        silence = path.sources.silence
        return {
            "working_since_ns": path.input_loop.working_since_ns if path.input_loop else 0,
            "source_silent_since_ns": silence.since_ns,
            "source_opening": silence.opening,
            "stages": {name: runner.times.snapshot() for name, runner in path.chain.runners.items()},
            "counts": self._counters.snapshot(),
            "files": self._counters.files,
            "frames_done": dict(path.sources.frames_done),
            "queued": path.sources.queued,
            "cpu_s": time.process_time() - self._cpu_before,
            "queue": path.receiver.mailboxes.waiting() if path.receiver else 0,
            "in_flight": path.sender.in_flight,
            "slots": path.ring.in_use,
            "blocked_on": self._retry.waits_for or (relay.waits_for if relay else ""),
            "patient": self._retry.patient and not (relay and relay.waits_for),
            "troubles": [
                *self._retry.troubles,
                *self._counters.troubles,
                *(relay.troubles if relay else ()),
            ],
            "camera_facts": self._counters.camera_facts,
            "stage_facts": self._counters.stage_facts,
            "counters": self._counters.of_stages,
            "outbox": relay.backlog if relay else {},
        }
