"""The runner of the outbox takes events, and hands the events to sinks in the same process.

Sinks in processes of their own get events from `pipeline.worker.outbox_relay`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial

from camgraph.pipeline.execution.retry import Retry
from camgraph.pipeline.execution.runner import StageRunner
from camgraph.pipeline.items import Item, Key
from camgraph.pipeline.messages import End, Message
from camgraph.pipeline.monitoring.metrics import StageTimes
from camgraph.pipeline.monitoring.tracer import Tracer
from camgraph.pipeline.outbox.outbox import Outbox
from camgraph.pipeline.plan import EVERY_CAMERA, StagePlan

_PULL_AT_ONCE = 64


class OutboxRunner:
    """See the module's docstring. Items need no answer: once an event is committed, the event belongs to no frame."""

    hands_out = True

    def __init__(
        self,
        plan: StagePlan,
        stage: Outbox,
        *,
        sinks: Mapping[str, StageRunner],
        retry: Retry,
        tracer: Tracer | None = None,
    ) -> None:
        self.plan = plan
        self.stage = stage
        self.times = StageTimes()
        self._sinks = sinks
        self._retry = retry
        self._tracer = tracer

    def run(self, items: Sequence[Item]) -> list[list[Message]]:
        """Commit the events among `items`, and note the frames without events. Waits while the disk is full."""
        self._retry.until_taken(self.plan.name, lambda: self._accept(items))
        self._hand_out()
        return [[] for _ in items]

    def _accept(self, items: Sequence[Item]) -> None:
        started = time.perf_counter_ns()
        self.stage.accept(items)
        took_ns = time.perf_counter_ns() - started
        # The supervisor counts this as work: a process that works between two deaths is soon restarted.
        self.times.add(took_ns, len(items))
        if self._tracer is not None:
            self._tracer.committed(items, took_ns)

    def end(self, camera: str, end: End) -> list[Message]:
        """The camera sends no more events; after the last camera has ended, each sink gets the end of all cameras.

        A sink gets the end once all deliveries are recorded. Waits while the disk does not take these records.
        """
        self.stage.end(camera, end.reason)
        self._hand_out()
        if self.stage.all_ended:
            for name in sorted(self._sinks, key=lambda name: len(self.stage.goes_before(name))):
                self._deliver_rest()  # the end of an earlier sink may have made events for this sink
                self._sinks[name].end(EVERY_CAMERA, self.stage.last_word)
        return []

    def _deliver_rest(self) -> None:
        while not self._retry.until_taken(self.plan.name, self._is_over):
            self._hand_out()

    def _is_over(self) -> bool:
        """Record deliveries; True if no sink in this process waits for more events. Raises EnvironmentProblem."""
        self.stage.note_delivered()
        return all(self.stage.over(name) for name in self._sinks)

    def _hand_out(self) -> None:
        for name, sink in self._sinks.items():
            most = max(_PULL_AT_ONCE, sink.plan.batch_max)
            while rows := self._retry.until_taken(self.plan.name, partial(self.stage.pull, name, most)):
                sink.run([Item(EVERY_CAMERA, Key(0, row, 0), event) for row, event in rows])
                self.stage.acknowledge(name, [row for row, _ in rows])
                self.stage.try_to_note(time.monotonic())
