"""Sends events to a socket, one CloudEvents JSON object a line (udp: a datagram), or as msgpack.

    alarm: {use: sink_socket, from: actions, with: {address: "tcp://127.0.0.1:7000"}}              connects
    feed:  {use: sink_socket, from: actions, with: {address: "tcp://127.0.0.1:7000", listen: true}}  serves

If it connects, no event is lost while there is no receiver: the outbox keeps them, and delivers them in order when one
is there. Delivery is at least once: after a lost connection events may come again, and a reader recognises them by
their `id`. A socket confirms little: on tcp, that the other machine's kernel has taken the bytes, not that a program
has read them; on udp nothing. If it serves, it is a feed like `tail -f`: clients get the events from their connection
on, and events while nobody is connected are counted and forgotten. It serves 64 clients and disconnects further ones.
Without `tls`, anybody who can reach the address can read along, or take the place of the receiver: use loopback, a unix
socket, or a network that you trust. If it serves and `tls` has a `ca`, clients must show one of its certificates.
"""

from __future__ import annotations

import platform
import socket
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import Field, field_validator, model_validator

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.pipeline.messages import Message
from camgraph.pipeline.stage import Context, Counts, SettingProblems
from camgraph.stages.messages import Event
from camgraph.stages.sinks.delivery.event_formats import Format, packed, with_length
from camgraph.stages.sinks.delivery.event_view import view_of
from camgraph.stages.sinks.delivery.selection import SelectingSink, Selection, SelectionSettings
from camgraph.stages.sinks.delivery.tls import TlsSettings, client_tls, server_tls, tls_problems
from camgraph.stages.sinks.sockets.address import parse_address
from camgraph.stages.sinks.sockets.connection import Connection
from camgraph.stages.sinks.sockets.datagrams import Datagrams
from camgraph.stages.sinks.sockets.listener import Listener
from camgraph.stages.sinks.sockets.streams import Line, Sender

_REFUSED = "dropped.refused"
WAIT_S = 1.0
"""How long one call may wait for the other side."""


class SinkSocketSettings(SelectionSettings):
    """The address to send the events to."""

    address: str = Field(description="tcp://HOST:PORT, udp://HOST:PORT or unix:///PATH")
    listen: bool = Field(False, description="Wait there for clients, instead of connecting to a receiver")

    format: Format = Field(
        "json",
        description="json: a line for each event. msgpack: each event in msgpack behind its length in 4 bytes, the "
        "highest first; in a datagram without the length",
    )
    tls: TlsSettings | None = Field(None, description="Speak TLS on tcp; one that listens needs a certificate")

    @field_validator("address")
    @classmethod
    def _parses(cls, address: str) -> str:
        return str(parse_address(address))

    @model_validator(mode="after")
    def _can_listen(self) -> Self:
        if self.listen and self.address.startswith("udp:"):
            raise ValueError("udp has no connections to wait for: use tcp or unix, or leave out `listen`")
        if self.tls is not None and not self.address.startswith("tcp:"):
            raise ValueError("`tls` works on tcp alone: leave it out, or use a tcp address")
        return self


class SinkSocket(SelectingSink[SinkSocketSettings]):
    """Hands lines to one of the senders, and counts their fates."""

    settings_type = SinkSocketSettings
    inputs = Event
    outputs = ()
    counts: ClassVar[Counts] = {
        **SelectingSink.counts,
        "unsent.no_client": "Events that came while nobody was connected to a `sink_socket` that listens.",
        "unsent.too_large": "Events that are longer than a datagram can be.",
        _REFUSED: "The format of a `sink_socket` cannot hold this event: it is a dead letter.",
    }
    own_thread = True

    def __init__(self, settings: SinkSocketSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._sender = _sender(settings, context)
        self._selection = Selection(settings.only, settings.never, settings.time_zone)
        self._is_datagram = settings.address.startswith("udp:")

    @classmethod
    def check(cls, settings: SinkSocketSettings, base_folder: Path) -> SettingProblems:
        if settings.tls is not None:
            yield from tls_problems(settings.tls, base_folder, server=settings.listen)

    def open(self) -> None:
        if not hasattr(socket, "TCP_USER_TIMEOUT"):
            raise EnvironmentProblem(
                f"{self.settings.address}: sink_socket asks the kernel of Linux what was received, and this is "
                f"{platform.system()}: use sink_jsonl here",
                error_id="platform",
            )
        self._sender.open(time.monotonic() + WAIT_S)

    def process(self, items: Sequence[Any]) -> Iterable[Message]:
        """Raises Unavailable when there is no receiver: then all of `items` must be handed in again."""
        wanted: list[tuple[Event, Line]] = []
        others: list[tuple[Event, str]] = []
        for event in items:
            line, why_not = self._line(event)
            if line:
                wanted.append((event, line))
            else:
                others.append((event, why_not))
        lines = [line for _, line in wanted]
        dropped = self._sender.deliver(lines, time.monotonic() + WAIT_S) if lines else []
        for (event, _), reason in zip(wanted, dropped, strict=True):
            self.context.count(f"unsent.{reason}" if reason else "written", event.stamp.camera)
        for event, why_not in others:
            self._leave_out(event, why_not)
        return ()

    def _line(self, event: Event) -> tuple[Line | None, str]:
        """What is sent of an event; None and "" if it is filtered, None and why if the format cannot hold it."""
        if self.settings.selects and not self._selection.fits(view_of(event)):
            return None, ""
        if self.settings.format == "json":
            return Line(event.id, event.body + b"\n"), ""
        try:
            data = packed(event.body)
        except ValueError as error:
            return None, str(error)
        return Line(event.id, data if self._is_datagram else with_length(data)), ""

    def _leave_out(self, event: Event, why: str) -> None:
        if why:
            self.context.dead_letters.add(event, why)
            self.context.log.error(
                "event_not_delivered", camera=event.stamp.camera, id=event.own_id, incident=event.incident, why=why
            )
        self.context.count(_REFUSED if why else "filtered", event.stamp.camera)

    def close(self) -> None:
        self._sender.close()


def _sender(settings: SinkSocketSettings, context: Context) -> Sender:
    address, tls = parse_address(settings.address), settings.tls
    if settings.listen:
        return Listener(address, context.log, (lambda: server_tls(tls, context.base_folder)) if tls else None)
    if address.scheme == "udp":
        return Datagrams(address, context.log)
    if tls is None:
        return Connection(address, context.log)
    return Connection(address, context.log, lambda: client_tls(tls, context.base_folder), tls.server_name)
