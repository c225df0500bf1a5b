"""The base of the gates for RTSP and HTTP: the door for FFmpeg, the way to the camera, and the end of both.

somebody connects --> stranger: heard, for a while --> asks for an address of this gate --> client: served
                                                   \\-> does not, or gives way to more of them: closed
"""

from __future__ import annotations

import contextlib
import errno
import secrets
import socket
import ssl
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, NamedTuple, Self

from camgraph.pipeline.foreign_text import shown
from camgraph.pipeline.system.happy_eyeballs import Place, connect_first, host_and_port, places_of
from camgraph.pipeline.system.redaction import redact_urls
from camgraph.stages.video.live.camera_problems import Dropped
from camgraph.stages.video.live.gate.authorization import Authorization
from camgraph.stages.video.live.gate.host_lookup import LOOK_UP_S, HostLookup
from camgraph.stages.video.live.gate.origins import Origin, Target, login_of, may_be_reached, target_of
from camgraph.stages.video.live.threads import start

MOST_AT_ONCE = 16
"""Connections of FFmpeg: a playlist of variants needs two for each."""
MOST_STRANGERS = 16
"""Who has not asked for anything yet. The next one takes the place of the oldest: FFmpeg asks at once."""
MOST_REDIRECTS = 5
ASK_S = 10.0
"""For the first request of who has connected."""
CLOSED_S = 0.5
"""For the threads of a gate that is closed: all that they wait for has ended."""
_MOST_HEAD = 1 << 14
_HEAD_END = b"\r\n\r\n"
_LOOK_S = 0.1
_MOST_SHOWN = 200


class Road(NamedTuple):
    """How the camera is reached. `addresses`: its own, as numbers; `connect_s`: for connecting, with TLS.

    `every_s`: if its address is that of one picture, how often that is asked for.
    """

    url: str
    addresses: frozenset[str]
    follow: bool
    connect_s: float
    every_s: float = 1.0


class Gate(ABC):
    """One connection to one camera, from before FFmpeg opens it until it is closed.

    Used by the thread that reads and by the one that watches it; each connection of FFmpeg has a thread of its own.
    Only who knows `url` gets through. Raises Dropped if the address has no host or no thread starts, OSError without
    descriptors.
    """

    schemes: ClassVar[tuple[str, str]]
    """Of the addresses to which it leads: without TLS and with it."""

    def __init__(self, road: Road) -> None:
        self._road = road
        target = target_of(road.url)
        if target is None:
            raise Dropped("no host can be read in its address")
        self._camera: Target = target
        login = login_of(road.url)
        self._authorization = Authorization(login) if login else None
        self._token = secrets.token_urlsafe(18)
        self._lock = threading.Lock()
        self._strangers: list[socket.socket] = []
        self._open: set[socket.socket] = set()
        self._closed = False
        self._doorman = threading.Thread(target=self._watch_door, name="gate", daemon=True)
        self._attendants: list[threading.Thread] = []
        self._problem: Exception | None = None
        # Of the camera's own family: FFmpeg takes its UDP sockets from it.
        family = socket.AF_INET6 if road.addresses and all(":" in one for one in road.addresses) else socket.AF_INET
        self._door = socket.create_server(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0), family=family)
        host, port = self._door.getsockname()[:2]
        self._own = f"{host_and_port(host, port)}/{self._token}"
        """Scheme-less beginning of all addresses of this gate, without a slash at the end."""

    def __enter__(self) -> Self:
        try:
            start(self._doorman)
        except Dropped:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Close it, and wait until the camera's connections are closed: some cameras take one at a time."""
        self.close()
        until = time.monotonic() + CLOSED_S
        self._doorman.join(CLOSED_S)
        for attendant in list(self._attendants):
            attendant.join(max(until - time.monotonic(), 0))

    @property
    @abstractmethod
    def url(self) -> str:
        """The address that FFmpeg opens instead of the camera's."""

    @property
    def codec(self) -> str:
        """The name of the video's format in the words of the camera; "" if it does not say before it sends."""
        return ""

    @property
    def problem(self) -> Exception | None:
        """Why the gate has refused or failed, in better words than FFmpeg has for it; None while it has not."""
        with self._lock:
            return self._problem

    def close(self) -> None:
        """End all connections, in both directions, and open no more. May be called again, and by any thread."""
        with self._lock:
            self._closed = True
            left = [*self._strangers, *self._open]
        for one in (self._door, *left):
            _end(one)
        self._door.close()

    @abstractmethod
    def _serve(self, client: socket.socket, begun: bytes) -> None:
        """One connection of FFmpeg, which has begun with this: a whole head, and the data that came with it.

        Raises Dropped for faults of the camera, OSError if either side is gone or the client is at fault.
        """

    # ---- at the door

    def _watch_door(self) -> None:
        while True:
            try:
                client, _ = self._door.accept()
            except ConnectionError:
                continue  # who came has gone
            except OSError as error:
                # Closed; or without descriptors, and then the next call would fail as well.
                self._refused(error)
                self.close()
                return
            attendant = threading.Thread(target=self._attend, args=(client,), name="gate", daemon=True)
            try:
                start(attendant)
            except Dropped as problem:
                self._refused(problem)
                client.close()
                continue
            self._attendants = [*filter(threading.Thread.is_alive, self._attendants), attendant]

    def _attend(self, client: socket.socket) -> None:
        with client:
            try:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                begun = self._first_words(client)
                if begun is None:
                    return
                with self._kept(client):
                    self._serve(client, begun)
            except (OSError, EOFError):
                pass  # FFmpeg finds its connection ended, and reports it
            except Exception as problem:  # noqa: BLE001 - who reads the camera tells of a bug as well
                self._refused(problem)
                self.close()  # or FFmpeg would go on trying

    def _first_words(self, client: socket.socket) -> bytes | None:
        """A whole head, and the data that came with it; None of a client that does not know an address of this gate."""
        with self._lock:
            if self._closed:
                return None
            self._strangers.append(client)
            gives_way = self._strangers.pop(0) if len(self._strangers) > MOST_STRANGERS else None
        if gives_way is not None:
            _end(gives_way)
        try:
            words = _head(client, time.monotonic() + ASK_S)
        finally:
            with self._lock, contextlib.suppress(ValueError):
                self._strangers.remove(client)
        return words if f"/{self._token}".encode() in words.partition(b"\r\n")[0] else None

    def _refused(self, problem: Exception) -> None:
        """The first is the cause of all others."""
        with self._lock:
            if not self._closed:
                self._problem = self._problem or problem

    @contextmanager
    def _kept(self, one: socket.socket) -> Iterator[None]:
        """Within it `close` ends this socket. Raises OSError if the gate is closed or full."""
        self._keep(one)
        try:
            yield
        finally:
            self._let_go(one)

    def _keep(self, one: socket.socket) -> None:
        with self._lock:
            self._require_open()
            if len(self._open) >= 2 * MOST_AT_ONCE:
                raise OSError(errno.EUSERS, "the gate has no room for more connections")
            self._open.add(one)

    def _require_open(self) -> None:
        if self._closed:
            raise OSError(errno.ECANCELED, "the gate is closed")

    def _let_go(self, one: socket.socket) -> None:
        with self._lock:
            self._open.discard(one)

    # ---- towards the camera

    def _target_after(self, location: str, leads: Target | None) -> Target:
        """The target of a redirect. Raises Dropped if that is forbidden."""
        if leads is None or leads.origin.scheme not in self.schemes:
            raise Dropped(
                f"it redirects to {fit_to_show(location)}, which is no address of {' or '.join(self.schemes)}"
            )
        self._require_allowed(leads, "redirects to")
        return leads

    def _require_allowed(self, leads: Target, does: str) -> None:
        """Raises Dropped for another host or port, if such are not followed."""
        if leads.origin != self._camera.origin and not self._road.follow:
            raise Dropped(
                f"it {does} {fit_to_show(leads.url)}, which is another host or port: if that is right, write that "
                "address in `url`, or `redirects: follow`"
            )

    def _authorization_for(self, origin: Origin) -> Authorization | None:
        """Credentials go to the host and port that they were written for."""
        return self._authorization if origin == self._camera.origin else None

    def _dialled(self, origin: Origin, *, is_final: bool = True) -> socket.socket:
        """A connection to this host, to be ended by `_hang_up`. Raises Dropped, and OSError.

        ``is_final``: a failure is the problem of this gate; else the caller tries again.
        TLS without a look at certificates, which cameras make themselves, as FFmpeg does.
        """
        places = [place for address in self._addresses(origin) for place in _places_of(address, origin.port)]
        until = time.monotonic() + self._road.connect_s
        self._require_open()
        try:
            connected = connect_first(places, until, opened=self._keep, close=self._hang_up)
        except TimeoutError:
            raise self._too_late() from None
        except OSError as error:
            if is_final:
                self._refused(error)
            raise
        connected.settimeout(None)
        return self._secured(connected, origin, until) if origin.is_secure else connected

    def _hang_up(self, server: socket.socket) -> None:
        self._let_go(server)
        server.close()

    def _too_late(self) -> Dropped:
        return Dropped(f"no usable answer within {self._road.connect_s:g} s (connect_s)")

    def _secured(self, connected: socket.socket, origin: Origin, until: float) -> socket.socket:
        """TLS over it. Raises Dropped, and OSError."""
        self._let_go(connected)  # whose descriptor goes over to the new socket
        made = connected
        try:
            made = _tls().wrap_socket(connected, server_hostname=origin.host, do_handshake_on_connect=False)
            self._keep(made)
            made.settimeout(max(until - time.monotonic(), _LOOK_S))
            made.do_handshake()
            made.settimeout(None)
        except TimeoutError:
            self._hang_up(made)
            raise self._too_late() from None
        except (OSError, ValueError) as error:
            self._hang_up(made)
            raise Dropped(f"no TLS with it: {getattr(error, 'reason', None) or type(error).__name__}") from None
        return made

    def _addresses(self, origin: Origin) -> list[str]:
        """Return the addresses of the camera. Raises Dropped if there are none, or if its name is unknown."""
        if origin.host == self._camera.origin.host:
            return sorted(self._road.addresses)
        lookup = HostLookup(f"{origin.scheme}://{origin.authority}")
        lookup.begin()
        until = time.monotonic() + LOOK_UP_S
        while not lookup.wait(_LOOK_S) and time.monotonic() < until and not self._closed:
            pass
        try:
            found = sorted(peer.address for peer in lookup.peers())
        except Dropped:
            raise Dropped(f"it leads to {fit_to_show(origin.authority)}, whose name is not known") from None
        if not (allowed := [one for one in found if may_be_reached(one, self._road.addresses)]):
            raise Dropped("it leads to an address where no camera may lead: this machine, or one of this link alone")
        return allowed


def _head(client: socket.socket, until: float) -> bytes:
    """Everything up to the end of a head, and the data that came with it. Raises OSError if that does not come in
    time.
    """
    words = b""
    while _HEAD_END not in words:
        client.settimeout(max(until - time.monotonic(), 0.001))
        data = client.recv(_MOST_HEAD)
        if not data or len(words) > _MOST_HEAD:
            raise ConnectionResetError(errno.ECONNRESET, "it ended before it had asked, or asks for too much")
        words += data
    client.settimeout(None)
    return words


def _end(one: socket.socket) -> None:
    """Wakes the thread that waits in it, which closes it. TLS is left out: it would read the remaining data as plain
    text.
    """
    with contextlib.suppress(OSError):
        socket.socket.shutdown(one, socket.SHUT_RDWR)


def fit_to_show(text: str) -> str:
    """A camera's text, without credentials and without characters that a terminal would obey."""
    return shown(redact_urls(text), _MOST_SHOWN)


def _places_of(address: str, port: int) -> list[Place]:
    """Raises Dropped for an address that this machine cannot reach, such as one of an interface that is not there."""
    try:
        return places_of(address, port)
    except OSError as error:
        interface = address.partition("%")[2]
        hint = f": is its network interface {shown(interface)} right?" if interface else ""
        raise Dropped(f"{shown(address)} is no address that this machine can reach ({error.strerror}){hint}") from None


def _tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
