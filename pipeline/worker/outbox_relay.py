"""Hands events from the outbox to the sinks, in the process that has the outbox."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.pipeline.execution.process_parts import ProcessParts
from camgraph.pipeline.execution.retry import RETRY_S
from camgraph.pipeline.items import END_SEQ, Item, Key
from camgraph.pipeline.messages import Event, Stamp
from camgraph.pipeline.monitoring.event_format import EventSummary, event_format
from camgraph.pipeline.outbox.outbox import Outbox
from camgraph.pipeline.plan import EVERY_CAMERA, EdgePlan, ProcessPlan
from camgraph.pipeline.transport.channel import Channel
from camgraph.pipeline.transport.in_flight import Ticket
from camgraph.pipeline.transport.sender import Sender


class OutboxRelay:
    """Gives each sink the events that fit, acknowledges deliveries, and ends each sink after the last event.

    Keys count up within an incarnation of this process, and the keys of a later incarnation come after all keys of an
    earlier one. So a key says nothing about an event that comes again: sinks know repeated events by the event's id.
    """

    def __init__(
        self, outbox: Outbox, plan: ProcessPlan, sender: Sender, channel: Channel, parts: ProcessParts
    ) -> None:
        self._outbox = outbox
        self._plan = plan
        self._incarnation = parts.incarnation
        self._sender = sender
        self._channel = channel
        self._log = parts.log
        self._handed: Counter[str] = Counter()
        self._ended: set[str] = set()
        self._closed: set[str] = set()
        """The names of sinks that have processed the end."""
        self._unread, self._read_again_at = "", 0.0
        """Why events cannot be handed out at present."""
        self._unkept = False
        """Whether the supervisor's last event could not be committed."""

    def turn(self) -> None:
        """Report committed events to the supervisor, record deliveries, and give each sink the events that fit."""
        self._report_committed()
        now = time.monotonic()
        self._outbox.try_to_note(now)
        self._outbox.maintain(now)
        if now < self._read_again_at:
            return
        try:
            for edge in self._plan.outgoing:
                self._hand_out(edge)
                if edge.reader not in self._ended and self._outbox.all_ended:
                    self._end(edge)
        except EnvironmentProblem as error:
            if not self._unread:
                self._log.error("events_not_read", error=str(error), error_id=error.error_id)
            self._unread, self._read_again_at = str(error), now + RETRY_S
        else:
            self._unread = ""

    def _report_committed(self) -> None:
        for event_id, summary in self._outbox.committed:
            self._channel.send("event", id=event_id, **_plain(summary))
        self._outbox.committed.clear()

    @property
    def waits_for(self) -> str:
        """Why events, or the end of a sink, wait for the outside; "" if nothing waits."""
        return self._unread or self._outbox.unnoted

    @property
    def backlog(self) -> dict[str, dict[str, Any]]:
        """Sink -> plain values of `pipeline.monitoring.reports.SinkBacklog`."""
        return {sink: waiting.model_dump() for sink, waiting in self._outbox.backlog.items()}

    @property
    def troubles(self) -> list[tuple[str, str, str]]:
        """(stage, "", why) as `pipeline.monitoring.reports.Heartbeat` has them."""
        return [(self._outbox.context.stage, "", self.waits_for)] if self.waits_for else []

    def _hand_out(self, edge: EdgePlan) -> None:
        room = self._sender.room(edge.name, EVERY_CAMERA)
        for row, event in self._outbox.pull(edge.reader, room) if room else ():
            self._handed[edge.reader] += 1
            key = Key(self._incarnation, self._handed[edge.reader], 0)
            delivered = Ticket(partial(self._outbox.acknowledge, edge.reader, [row]))
            self._sender.submit([edge], EVERY_CAMERA, key, event, delivered)
            delivered.closed()

    def _end(self, edge: EdgePlan) -> None:
        if self._outbox.goes_before(edge.reader) <= self._closed and self._outbox.over(edge.reader):
            self._ended.add(edge.reader)
            processed = Ticket(partial(self._closed.add, edge.reader))
            self._sender.submit(
                [edge], EVERY_CAMERA, Key(self._incarnation, END_SEQ + 1, 0), self._outbox.last_word, processed
            )
            processed.closed()

    def emit(self, values: Mapping[str, Any]) -> None:
        """Commit the supervisor's event about a stage that lost its memory, and end the stage's open incidents.

        The supervisor repeats the event until the commit is reported. A repeated event must not end incidents that
        began after the first one.
        """
        stamp = Stamp(values["camera"], 0, 0, values["time_ns"], 0, 0)
        event = Event(stamp, values["id"], values["incident"], values["phase"], values["body"])
        try:
            if self._outbox.knows(event.id):
                self._report_committed()  # the event may be among these, and is counted when first reported
                self._channel.send("event", id=event.id, **_plain(event_format().summary(event.body)), again=True)
                return
            self._outbox.end_lost(values["sender"], [values["camera"]], values["incarnation"])
            self._outbox.accept([Item(values["camera"], Key(0, 0, 0), event, values["sender"])])
        except EnvironmentProblem as error:
            if not self._unkept:  # the supervisor sends the event again each second
                self._log.error("event_not_kept", error=str(error), error_id=error.error_id, id=event.id)
            self._unkept = True
        else:
            self._unkept = False


def _plain(summary: EventSummary) -> dict[str, Any]:
    return asdict(summary)
