"""A TCP connection to a host with several addresses, some of which may be dead: "happy eyeballs" (RFC 8305).

    1st address --no answer for 250 ms, or refused--> 2nd address beside it --> ... --> the first that answers is taken

An IPv6 address that leads nowhere therefore costs a quarter of a second and not the whole time of a call. The address
that answered is remembered in this process and tried first the next time.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import selectors
import socket
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, zip_longest
from typing import Any, NamedTuple

HEAD_START_S = 0.25
"""The head start of each address before the next one is tried in parallel (RFC 8305)."""
_MOST_AT_ONCE = 8
"""Attempts in parallel; beyond, the oldest attempt is closed."""
_MOST_REMEMBERED = 256
_BEGUN = (errno.EINPROGRESS, errno.EWOULDBLOCK)

_answered: OrderedDict[Place, None] = OrderedDict()
"""Places that took the last connection which was tried there, the latest last."""


class Place(NamedTuple):
    """An address family, and the argument of `connect` for it: an IP address as text, a port, and for IPv6 more."""

    family: int
    where: Any

    @property
    def ip(self) -> str:
        return str(self.where[0])


def bracketed(host: str) -> str:
    """The host as an address with a port needs it: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


def host_and_port(host: str, port: int) -> str:
    """`HOST:PORT` as addresses have it."""
    return f"{bracketed(host)}:{port}"


def is_this_machine(host: str) -> bool:
    """Whether only this machine can be meant by the name or number of a host."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def places_of(host: str, port: int) -> list[Place]:
    """All places of a host, in the order of the system's resolver; may take long. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(Place(int(family), where) for family, _, _, _, where in found))


def connect(host: str, port: int, until_s: float) -> socket.socket:
    """Connect to a host by name or number; see `connect_first`. Raises OSError."""
    return connect_first(places_of(host, port), until_s)


def connect_first(
    places: Sequence[Place],
    until_s: float,
    *,
    opened: Callable[[socket.socket], object] = lambda _: None,
    close: Callable[[socket.socket], object] = socket.socket.close,
) -> socket.socket:
    """Connect to the place that answers first. `until_s` is on the clock of time.monotonic.

    The socket's timeout is what is left until then. `opened` is called with each socket as soon as it is connecting,
    and may raise to give up; `close` ends a socket that is not returned. Raises OSError: the reason of the last place
    that refused, or TimeoutError if none did.
    """
    race = _Race(_in_order(places), opened, close)
    try:
        made = race.won(until_s)
    finally:
        race.end()
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.settimeout(max(until_s - time.monotonic(), 0.001))
    return made


def _in_order(places: Sequence[Place]) -> list[Place]:
    """Those that answered last, then the others with the families in turn: a host may have many dead addresses."""
    good = [place for place in places if place in _answered]
    rest = [place for place in places if place not in _answered]
    by_family: dict[int, list[Place]] = {}
    for place in rest:
        by_family.setdefault(place.family, []).append(place)
    return good + [place for place in chain.from_iterable(zip_longest(*by_family.values())) if place is not None]


def _remember(place: Place) -> None:
    _answered.pop(place, None)
    _answered[place] = None
    while len(_answered) > _MOST_REMEMBERED:
        _answered.popitem(last=False)


class _Race:
    """Connections that are being made beside each other. Ends with `end`, which closes those that have not won."""

    def __init__(
        self,
        places: Iterable[Place],
        opened: Callable[[socket.socket], object],
        close: Callable[[socket.socket], object],
    ) -> None:
        self._waiting = list(places)
        self._opened, self._close = opened, close
        self._running: dict[socket.socket, Place] = {}
        self._selector = selectors.DefaultSelector()
        self._refused: OSError | None = None
        """Why the last place that refused did so."""

    def won(self, until_s: float) -> socket.socket:
        """The first connection that stands. Raises OSError."""
        next_s = time.monotonic()
        head_start_s = min(HEAD_START_S, (until_s - next_s) / max(1, len(self._waiting)))
        while self._waiting or self._running:
            now_s = time.monotonic()
            if self._waiting and (now_s >= next_s or not self._running):
                self._begin(self._waiting.pop(0))
                next_s = now_s + head_start_s
            elif now_s >= until_s:
                raise self._refused or TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
            elif made := self._poll(min(until_s, next_s if self._waiting else until_s) - now_s):
                return made
        raise self._refused or OSError(errno.EADDRNOTAVAIL, "the host has no address")

    def end(self) -> None:
        self._selector.close()
        for stream in self._running:
            self._close(stream)

    def _begin(self, place: Place) -> None:
        if len(self._running) >= _MOST_AT_ONCE:
            first = next(iter(self._running))
            self._selector.unregister(first)
            self._lose(first)
        try:
            stream = socket.socket(place.family, socket.SOCK_STREAM)
        except OSError as error:  # this machine may have no IPv6 at all
            self._refused = error
            return
        self._running[stream] = place
        stream.setblocking(False)
        number = stream.connect_ex(place.where)
        # Only now: `shutdown` ends a socket for certain that is connecting already, and not one that is about to.
        self._opened(stream)
        if number in (0, *_BEGUN):
            self._selector.register(stream, selectors.EVENT_WRITE)
        else:
            self._lose(stream, number)

    def _poll(self, wait_s: float) -> socket.socket | None:
        """Wait at most `wait_s` for a connection that stands."""
        for key, _ in self._selector.select(max(wait_s, 0.001)):
            stream = key.fileobj
            assert isinstance(stream, socket.socket)
            self._selector.unregister(stream)
            if not (number := stream.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)):
                _remember(self._running.pop(stream))
                for place in self._running.values():
                    _answered.pop(place, None)
                return stream
            self._lose(stream, number)
        return None

    def _lose(self, stream: socket.socket, number: int = 0) -> None:
        """Close one that has not answered yet, or was refused with this error number."""
        _answered.pop(self._running.pop(stream), None)
        if number:
            self._refused = OSError(number, os.strerror(number))
        self._close(stream)
