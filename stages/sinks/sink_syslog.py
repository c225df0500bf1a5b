"""Writes events to a syslog server or to the log of this machine, for programs that watch logs, such as a SIEM.

    siem: {use: sink_syslog, from: actions, with: {address: "tls://log.example.org", tls: {ca: hospital-ca.pem}}}

Messages follow RFC 5424, with the facts of the event as structured data. An alarm has the severity `alert`, a warning
`warning`, all else `notice` or `informational`.

| address | delivered means |
|---|---|
| `tls://HOST[:6514]`, `tcp://HOST[:514]` | the other machine has the bytes. Events wait while it is away |
| `unix:///dev/log` | the log of this machine has taken it |
| `udp://HOST[:514]` | it was sent: nobody says whether it arrived |
"""

from __future__ import annotations

import errno
import os
import platform
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from pydantic import Field, field_validator, model_validator

from camgraph.pipeline.errors import EnvironmentProblem, Unavailable
from camgraph.pipeline.stage import Context, SettingProblems
from camgraph.stages.sinks.delivery.broker import broker_address
from camgraph.stages.sinks.delivery.event_sink import DeliverySettings, EventSink, Refused
from camgraph.stages.sinks.delivery.event_view import EventView
from camgraph.stages.sinks.delivery.syslog_message import Facility, local, rfc5424, with_length
from camgraph.stages.sinks.delivery.template import TemplateText, filled, one_line
from camgraph.stages.sinks.delivery.tls import TlsSettings, client_tls, tls_problems
from camgraph.stages.sinks.sockets.address import Address, parse_address
from camgraph.stages.sinks.sockets.connection import Connection
from camgraph.stages.sinks.sockets.datagrams import Datagrams
from camgraph.stages.sinks.sockets.streams import Line, Sender

_WAIT_S = 3.0
"""How long one call may wait for the other side."""
_PORTS: Mapping[str, int] = {"tls": 6514, "tcp": 514, "udp": 514}
_TEXT = "{action} on {camera} ({phase}): {why}"


class SinkSyslogSettings(DeliverySettings):
    """Where the log is, and what is written there."""

    address: str = Field(description="tls://HOST[:PORT], tcp://HOST[:PORT], udp://HOST[:PORT] or unix:///dev/log")
    facility: Facility = Field("local0", description="By which syslog servers sort messages")
    text: TemplateText = Field(_TEXT, description="The message, with {action}, {camera}, {why} and so on")
    whole_event: bool = Field(False, description="Write the event as JSON in place of `text`")
    tls: TlsSettings | None = Field(None, description="Whom to trust, and our own certificate")

    @field_validator("address")
    @classmethod
    def _parses(cls, address: str) -> str:
        where(address)
        return address

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        if self.tls is not None and not self.is_secure:
            raise ValueError("`tls` is for addresses that begin with tls://")
        return self

    @property
    def is_secure(self) -> bool:
        return self.address.startswith("tls:")


def where(text: str) -> Address:
    """A parsed address. Raises ValueError."""
    if text.startswith("unix:"):
        return parse_address(text)
    parsed = broker_address(text, _PORTS)
    if parsed.path:
        raise ValueError("expected nothing behind the port")
    return Address("udp" if parsed.scheme == "udp" else "tcp", parsed.host, parsed.port)


class SinkSyslog(EventSink[SinkSyslogSettings]):
    """An event -> a message."""

    settings_type = SinkSyslogSettings

    def __init__(self, settings: SinkSyslogSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._address = where(settings.address)
        self._sender = self._made_sender()
        self._host = socket.gethostname()

    @classmethod
    def check(cls, settings: SinkSyslogSettings, base_folder: Path) -> SettingProblems:
        yield from tls_problems(settings.tls, base_folder)

    def open(self) -> None:
        if self._address.scheme == "tcp" and not hasattr(socket, "TCP_USER_TIMEOUT"):
            raise EnvironmentProblem(
                f"{self.settings.address}: sink_syslog asks the kernel of Linux what was received, and this is "
                f"{platform.system()}: use an address that begins with udp:// or unix:// here",
                error_id="platform",
            )
        super().open()

    def send(self, events: Sequence[EventView]) -> None:
        lines = [Line(view.event.id, self._message(view)) for view in events]
        dropped = self._sender.deliver(lines, time.monotonic() + _WAIT_S)
        too_large = {
            view.event.id: f"{self._address}: a message of {len(line.data)} bytes is too large for it: take tcp or tls"
            for view, line, why in zip(events, lines, dropped, strict=True)
            if why
        }
        for view in events:
            if view.event.id not in too_large:
                self.sent_already(view)
        if too_large:
            raise Refused(too_large)

    def disconnect(self) -> None:
        self._sender.close()

    def _message(self, view: EventView) -> bytes:
        if self.settings.whole_event:
            text = view.event.body.decode(errors="replace")
        else:
            text = one_line(filled(self.settings.text, view, self.settings.time_zone)).rstrip(": ")
        if self._address.scheme == "unix":
            return local(view, text, facility=self.settings.facility)
        message = rfc5424(view, text, facility=self.settings.facility, host=self._host, graph=self.context.graph)
        return message if self._address.scheme == "udp" else with_length(message)

    def _made_sender(self) -> Sender:
        tls, log = self.settings.tls, self.context.log
        if self._address.scheme == "unix":
            return _LocalLog(self._address.path)
        if self._address.scheme == "udp":
            return Datagrams(self._address, log)
        if not self.settings.is_secure:
            return Connection(self._address, log)
        return Connection(
            self._address, log, lambda: client_tls(tls, self.context.base_folder), tls.server_name if tls else None
        )


class _LocalLog:
    """A socket of datagrams, such as /dev/log, whose reader may be slow: then it has no room for more."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._socket: socket.socket | None = None

    def open(self, deadline: float) -> None:
        """It is opened with the first message."""

    def deliver(self, lines: Sequence[Line], deadline: float) -> list[str]:
        """Raises Unavailable. Messages beyond what the kernel takes at once are `too_large`."""
        try:
            return [self._send(line.data, deadline) for line in lines]
        except TimeoutError:
            raise Unavailable(f"{self._path}: its reader is busy") from None
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else type(error).__name__
            raise Unavailable(f"{self._path}: there is no log to write to: {why}") from None

    def _send(self, data: bytes, deadline: float) -> str:
        if self._socket is None:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._socket.connect(self._path)
        self._socket.settimeout(max(0.05, deadline - time.monotonic()))
        try:
            self._socket.send(data)
        except OSError as error:
            if error.errno == errno.EMSGSIZE:
                return "too_large"
            raise
        return ""

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
