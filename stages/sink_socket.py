"""Sends events to a socket, one CloudEvents JSON object a line (udp: a datagram).

    alarm: {use: sink_socket, from: actions, with: {address: "tcp://127.0.0.1:7000"}}              connects
    feed:  {use: sink_socket, from: actions, with: {address: "tcp://127.0.0.1:7000", listen: true}}  serves

If it connects, no event is lost while there is no receiver: the outbox keeps them, and delivers them in order when one
is there. Delivery is at least once: after a lost connection events may come again, and a reader recognises them by
their `id`. A socket confirms little: on tcp, that the other machine's kernel has taken the bytes, not that a program
has read them; on udp nothing. If it serves, it is a feed like `tail -f`: clients get the events from their connection
on, and events while nobody is connected are counted and forgotten. It serves 64 clients and disconnects further ones.
Anybody who can reach the address can read along, or take the place of the receiver: use loopback, a unix socket, or a
network that you trust.
"""

from __future__ import annotations

import platform
import socket
import time
from collections.abc import Iterable, Sequence
from typing import Any, Self

from pydantic import Field, field_validator, model_validator

from pipeline.errors import EnvironmentProblem
from pipeline.messages import Message
from pipeline.stage import Context, Settings, Stage
from stages.messages import Event
from stages.sockets.address import parse_address
from stages.sockets.connection import Connection
from stages.sockets.datagrams import Datagrams
from stages.sockets.listener import Listener
from stages.sockets.streams import Line, Sender

WAIT_S = 1.0
"""How long one call may wait for the other side."""


class SinkSocketSettings(Settings):
    """The address to send the events to."""

    address: str = Field(description="tcp://HOST:PORT, udp://HOST:PORT or unix:///PATH")
    listen: bool = Field(False, description="Wait there for clients, instead of connecting to a receiver")

    @field_validator("address")
    @classmethod
    def _parses(cls, address: str) -> str:
        return str(parse_address(address))

    @model_validator(mode="after")
    def _can_listen(self) -> Self:
        if self.listen and self.address.startswith("udp:"):
            raise ValueError("udp has no connections to wait for: use tcp or unix, or leave out `listen`")
        return self


class SinkSocket(Stage[SinkSocketSettings]):
    """Hands lines to one of the senders, and counts their fates."""

    settings_type = SinkSocketSettings
    inputs = Event
    outputs = ()
    own_thread = True

    def __init__(self, settings: SinkSocketSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._sender = _sender(settings, context)

    def open(self) -> None:
        if not hasattr(socket, "TCP_USER_TIMEOUT"):
            raise EnvironmentProblem(
                f"{self.settings.address}: sink_socket asks the kernel of Linux what was received, and this is "
                f"{platform.system()}: use sink_jsonl here"
            )
        self._sender.open(time.monotonic() + WAIT_S)

    def process(self, items: Sequence[Any]) -> Iterable[Message]:
        """Raises Unavailable when there is no receiver: then all of `items` must be handed in again."""
        events: list[Event] = list(items)
        lines = [Line(event.id, event.body + b"\n") for event in events]
        dropped = self._sender.deliver(lines, time.monotonic() + WAIT_S)
        for event, reason in zip(events, dropped, strict=True):
            self.context.count(f"unsent.{reason}" if reason else "written", event.stamp.camera)
        return ()

    def close(self) -> None:
        self._sender.close()


def _sender(settings: SinkSocketSettings, context: Context) -> Sender:
    address = parse_address(settings.address)
    if settings.listen:
        return Listener(address, context.log)
    return Datagrams(address, context.log) if address.scheme == "udp" else Connection(address, context.log)
