"""Looks up a camera's host in bounded time."""

from __future__ import annotations

import socket
import threading
from ipaddress import ip_address
from urllib.parse import urlsplit

from camgraph.stages.video.ffmpeg_errors import reason_of
from camgraph.stages.video.live.camera_problems import Dropped
from camgraph.stages.video.live.gate.origins import target_of
from camgraph.stages.video.live.sockets import Peer
from camgraph.stages.video.live.threads import start

DEFAULT_PORTS = {"rtsp": 554, "rtsps": 322, "http": 80, "https": 443, "rtmp": 1935, "rtmps": 443}
LOOK_UP_S = 2.0
"""Callers wait no longer."""
_NO_PEERS: frozenset[Peer] = frozenset()


def host_of(url: str) -> tuple[str, int] | None:
    """Host and port of an address, None if it has none that can be read."""
    target = target_of(url)
    if target is not None:
        return target.origin.host, target.origin.port
    try:
        parts = urlsplit(url)
        port = parts.port or DEFAULT_PORTS.get(parts.scheme.lower().partition("+")[0])
    except ValueError:
        return None
    return (parts.hostname, port) if parts.hostname and port else None


class HostLookup:
    """Looks one host up, in a thread of its own: nothing can end a look-up that waits for a dead name server.

    FFmpeg looks it up again, without a bound; a name server that has just answered is likely to answer again.
    """

    def __init__(self, url: str) -> None:
        self._host = host_of(url)
        self._answered = threading.Event()
        self._thread: threading.Thread | None = None
        self._peers = _NO_PEERS
        self._problem = ""

    def begin(self) -> None:
        """Ask, unless an earlier question still waits for its answer. Raises Dropped if no thread starts."""
        if self._host is None or (self._thread and self._thread.is_alive()):
            return
        if _is_number(self._host[0]):
            self._peers = frozenset({Peer(*self._host)})
            self._answered.set()
            return
        self._answered.clear()
        self._thread = threading.Thread(target=self._ask, args=self._host, name="name of a camera", daemon=True)
        start(self._thread)

    def wait(self, seconds: float) -> bool:
        """Wait for the answer, at most this long; whether it is there."""
        return self._host is None or self._answered.wait(seconds)

    def peers(self) -> frozenset[Peer]:
        """The answer; none for an address without a host. Raises Dropped if there is none, or not yet."""
        if self._host is None:
            return _NO_PEERS
        if not self._answered.is_set():
            raise Dropped("no name server answers, and its address is a name")
        if self._problem:
            raise Dropped(f"its name is not known ({self._problem})")
        return self._peers

    def _ask(self, host: str, port: int) -> None:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            self._peers, self._problem = frozenset(Peer(str(one[4][0]), port) for one in found), ""
        except (OSError, UnicodeError) as error:
            self._problem = reason_of(error)
        self._answered.set()


def _is_number(host: str) -> bool:
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True
