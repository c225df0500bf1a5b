"""Hands events to the program that has started the run. The Python API adds this sink to the graph.

It sends one event at a time. The outbox keeps an event until the program acknowledges it. The sink waits for a slow
program; if the program is gone, the outbox keeps the events for the next run of that name.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, ClassVar

from camgraph.pipeline.errors import Unavailable
from camgraph.pipeline.messages import Message
from camgraph.pipeline.stage import Context, Counts, Stage
from camgraph.stages.messages import Event
from camgraph.stages.sinks.handover.link import HandoverSettings, Link
from camgraph.stages.sinks.handover.parcel import event_parcel

WAIT_S = 0.5


class SinkApiEvents(Stage[HandoverSettings]):
    """Events -> the program, each until it is acknowledged."""

    settings_type = HandoverSettings
    inputs = Event
    outputs = ()
    counts: ClassVar[Counts] = {"written": "Events that a program in Python is done with."}
    own_thread = True
    added_by_itself = True

    def __init__(self, settings: HandoverSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._link = Link(settings.address)
        self._sent: tuple[str, int, int] = ("", 0, 0)
        """Of the last event: its id, the number of the connection, and the event's number there."""

    def open(self) -> None:
        with suppress(Unavailable):
            self._link.connect()

    def process(self, items: Sequence[Any]) -> Iterable[Message]:
        for event in items:
            self._deliver(event, time.monotonic() + WAIT_S)
            self.context.count("written", event.stamp.camera)
        return ()

    def _deliver(self, event: Event, deadline: float) -> None:
        self._link.connect()
        if self._sent[:2] != (event.id, self._link.connections):
            if not self._link.wait_credit(deadline):
                raise _busy()
            number = self._link.send(event_parcel(event))
            self._sent = (event.id, self._link.connections, number)
        if not self._link.wait_done(self._sent[2], deadline):
            raise _busy()

    def close(self) -> None:
        self._link.close()


def _busy() -> Unavailable:
    return Unavailable("the program that reads has not acknowledged the last event yet", patient=True)
