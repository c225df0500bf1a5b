"""The heartbeat of a process: that it is alive, and what has changed since the last one.

Four times a second if there is news; at rest once a second, because each one wakes the supervisor.
"""

from __future__ import annotations

import time
from typing import Any

from camgraph.pipeline.execution.retry import Retry
from camgraph.pipeline.execution.stage_chain import StageChain
from camgraph.pipeline.monitoring.metrics import Counters
from camgraph.pipeline.monitoring.reports import durations_of
from camgraph.pipeline.shm.slots import SlotRing
from camgraph.pipeline.transport.channel import Channel
from camgraph.pipeline.transport.receiver import Receiver
from camgraph.pipeline.transport.sender import Sender
from camgraph.pipeline.worker.input_loop import InputLoop
from camgraph.pipeline.worker.outbox_relay import OutboxRelay
from camgraph.pipeline.worker.sources import Sources

_HEARTBEAT_S = 0.25
_QUIET_S = 1.0
_QUIET_PART = 0.25
"""Of `hang_s`: a process at rest says so often enough not to count as hung."""
_NO_NEWS = {"cpu_s"}
"""Changes always, and alone is worth no heartbeat."""


class Heartbeats:
    """The parts of one process, as far as they have something to report (`pipeline.monitoring.reports.Heartbeat`)."""

    def __init__(
        self,
        channel: Channel,
        *,
        hang_s: float,
        chain: StageChain,
        counters: Counters,
        ring: SlotRing,
        retry: Retry,
        sender: Sender,
        sources: Sources,
        receiver: Receiver | None,
        input_loop: InputLoop | None,
        relay: OutboxRelay | None,
    ) -> None:
        self._channel = channel
        self._chain = chain
        self._counters = counters
        self._ring = ring
        self._retry = retry
        self._sender = sender
        self._sources = sources
        self._receiver = receiver
        self._input_loop = input_loop
        self._relay = relay
        self._quiet_s = min(_QUIET_S, _QUIET_PART * hang_s)
        self._next_heartbeat = self._next_anyway = 0.0
        self._cpu_before = 0.0
        self._told: dict[str, Any] = {}
        """The values of the last heartbeat that was sent: the supervisor knows these."""

    def begin(self) -> None:
        """The stages are open: memory that they take from now on is for their work."""
        self._cpu_before = time.process_time()

    def send_in_time(self) -> None:
        """Send a heartbeat if it is due. Call it often."""
        now = time.monotonic()
        if now >= self._next_heartbeat:
            self._next_heartbeat = now + _HEARTBEAT_S
            self.send(only_news=now < self._next_anyway)

    def send(self, *, only_news: bool = False) -> None:
        """Send a heartbeat now; with `only_news`, leave it out if nothing has happened."""
        changes = self._counters.camera_changes()
        values = self._values()
        news = {name: value for name, value in values.items() if name not in self._told or self._told[name] != value}
        since_the_last = {
            "ages": self._chain.ages_ms(),
            "stage_calls": durations_of(self._chain.take_calls()),
            "frame_ages": durations_of(self._chain.take_ages()),
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
        silence = self._sources.silence
        return {
            "working_since_ns": self._input_loop.working_since_ns if self._input_loop else 0,
            "source_silent_since_ns": silence.since_ns,
            "source_opening": silence.opening,
            "stages": {name: runner.times.snapshot() for name, runner in self._chain.runners.items()},
            "counts": self._counters.snapshot(),
            "files": self._counters.files,
            "frames_done": dict(self._sources.frames_done),
            "cpu_s": time.process_time() - self._cpu_before,
            "queue": self._receiver.mailboxes.waiting() if self._receiver else 0,
            "in_flight": self._sender.in_flight,
            "slots": self._ring.in_use,
            "blocked_on": self._retry.waits_for or (self._relay.waits_for if self._relay else ""),
            "patient": self._retry.patient and not (self._relay and self._relay.waits_for),
            "troubles": [
                *self._retry.troubles,
                *self._counters.troubles,
                *(self._relay.troubles if self._relay else ()),
            ],
            "camera_facts": self._counters.camera_facts,
            "stage_facts": self._counters.stage_facts,
            "counters": self._counters.of_stages,
            "outbox": self._relay.backlog if self._relay else {},
        }
