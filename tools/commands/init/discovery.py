"""Finds cameras on the local network: those that follow ONVIF answer a probe by multicast (WS-Discovery)."""

from __future__ import annotations

import socket
import struct
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from camgraph.pipeline.foreign_text import shown
from camgraph.tools.commands.init.soap import SoapProblem, envelope, first, parsed

GROUP = ("239.255.255.250", 3702)
LISTEN_S = 3.0
MOST_DEVICES = 64
_MOST_DATAGRAMS = 1000
_MOST_BYTES = 1 << 16
_NAME = "onvif://www.onvif.org/name/"
_HARDWARE = "onvif://www.onvif.org/hardware/"
_HEAD = (
    '<a:Action s:mustUnderstand="1">http://schemas.xmlsoap.org/ws/2005/04/discovery/Probe</a:Action>'
    "<a:MessageID>uuid:{number}</a:MessageID>"
    '<a:To s:mustUnderstand="1">urn:schemas-xmlsoap-org:ws:2005:04:discovery</a:To>'
)
_BODY = (
    '<d:Probe xmlns:d="http://schemas.xmlsoap.org/ws/2005/04/discovery">'
    '<d:Types xmlns:n="http://www.onvif.org/ver10/network/wsdl">n:NetworkVideoTransmitter</d:Types></d:Probe>'
)


class Device(NamedTuple):
    """A camera that has answered. `name` is what it says of itself, fit to be shown; `service` is at its own host."""

    host: str
    name: str
    service: str


def discover(group: tuple[str, int] = GROUP, listen_s: float = LISTEN_S) -> list[Device]:
    """The devices that answer within this time, by their addresses, each once. Raises OSError without any network."""
    found: dict[str, Device] = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ours:
        ours.bind(("", 0))
        _probe(ours, group)
        for data, sender in _datagrams(ours, listen_s):
            device = device_of(data, sender)
            if device and len(found) < MOST_DEVICES:
                found.setdefault(device.service, device)
    return sorted(found.values(), key=lambda device: socket.inet_aton(device.host))


def _probe(ours: socket.socket, group: tuple[str, int]) -> None:
    """Once over each network of this machine. Raises OSError if it went out over none."""
    message = envelope(_BODY, _HEAD.format(number=uuid.uuid4()))
    sent, problem = 0, OSError("no network")
    for index, _ in socket.if_nameindex():
        try:
            ours.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, struct.pack("4s4si", b"", b"", index))
            ours.sendto(message, group)
            sent += 1
        except OSError as error:
            problem = error
    if not sent:
        raise problem


def _datagrams(ours: socket.socket, listen_s: float) -> Iterator[tuple[bytes, str]]:
    until = time.monotonic() + listen_s
    for _ in range(_MOST_DATAGRAMS):
        left = until - time.monotonic()
        if left <= 0:
            return
        ours.settimeout(left)
        with suppress(TimeoutError, ConnectionError):
            data, (sender, _) = ours.recvfrom(_MOST_BYTES)
            yield data, sender


def device_of(data: bytes, sender: str) -> Device | None:
    """The device that this answer describes; None if it is none, or leads to another machine than itself."""
    try:
        root = parsed(data)
    except SoapProblem:
        return None
    service = next((one for one in first(root, "XAddrs").split() if _is_at(one, sender)), "")
    return Device(sender, _name(first(root, "Scopes").split()), service) if service else None


def _is_at(address: str, host: str) -> bool:
    """A password is proved to this address: it must be that of the machine that has answered."""
    try:
        parts = urlsplit(address)
        return parts.scheme == "http" and parts.hostname == host and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


def _name(scopes: Sequence[str]) -> str:
    for beginning in (_NAME, _HARDWARE):
        for scope in scopes:
            if scope.startswith(beginning):
                return shown(unquote(scope.removeprefix(beginning)), 40)
    return "a camera"
