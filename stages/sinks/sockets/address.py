"""The address of a socket sink: `tcp://host:port`, `udp://host:port`, `unix:///path`."""

from __future__ import annotations

import errno
import os
import queue
import socket
import threading
import time
from typing import Literal, NamedTuple
from urllib.parse import SplitResult, urlsplit

from camgraph.pipeline.errors import Unavailable
from camgraph.pipeline.system.happy_eyeballs import Place, host_and_port, is_this_machine

EXPECTED = "expected tcp://HOST:PORT, udp://HOST:PORT or unix:///PATH"
LONGEST_UNIX_PATH = 107


class Address(NamedTuple):
    """A parsed address: host and port, or (unix) the path of a socket file."""

    scheme: Literal["tcp", "udp", "unix"]
    host: str = ""
    port: int = 0
    path: str = ""

    def __str__(self) -> str:
        if self.scheme == "unix":
            return f"unix://{self.path}"
        return f"{self.scheme}://{host_and_port(self.host, self.port)}"

    @property
    def is_local(self) -> bool:
        """Whether only this machine can be meant."""
        return self.scheme == "unix" or is_this_machine(self.host)


def parse_address(text: str) -> Address:
    """The address in `text`. Raises ValueError, whose message repeats no user name or password."""
    if "@" in text:
        raise ValueError(f"{EXPECTED}: there is no place for a user name or password")
    parts = urlsplit(text)
    if parts.query or parts.fragment:
        raise ValueError(f"{EXPECTED}, got {text!r}")
    if parts.scheme == "unix":
        return _unix(parts, text)
    if parts.scheme not in ("tcp", "udp") or parts.path:
        raise ValueError(f"{EXPECTED}, got {text!r}")
    try:
        host, port = parts.hostname or "", parts.port or 0
    except ValueError:
        raise ValueError(f"{EXPECTED} with a port from 1 to 65535, got {text!r}") from None
    if not port:
        raise ValueError(f"{EXPECTED} with a port from 1 to 65535, got {text!r}")
    if not host or host == "*":
        raise ValueError(f"{EXPECTED}: name the host; 127.0.0.1 is this machine, 0.0.0.0 (to listen) all its networks")
    try:
        host.encode("idna")
    except UnicodeError:
        raise ValueError(f"{EXPECTED}: HOST can be no name of a host, got {text!r}") from None
    return Address("tcp" if parts.scheme == "tcp" else "udp", host, port)


class Lookup:
    """Finds a host's addresses without waiting for the system's resolver, which may take half a minute."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._answers: queue.SimpleQueue[list[Place] | OSError] = queue.SimpleQueue()
        self._asked = False

    def places(self, deadline: float) -> list[Place]:
        """The host's addresses, IPv4 first. Raises Unavailable when there are none before `deadline` (monotonic s).

        A question without an answer yet stays asked; the next call waits for the same one.
        """
        if self._address.scheme == "unix":
            return [Place(socket.AF_UNIX, self._address.path)]
        if not self._asked:
            self._start()
        try:
            answer = self._answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise Unavailable(f"{self._address}: the name server has not answered yet") from None
        self._asked = False
        if isinstance(answer, OSError):
            raise Unavailable(f"{self._address}: cannot find this host: {answer.strerror}") from answer
        return answer

    def _start(self) -> None:
        try:
            threading.Thread(target=self._ask, name="lookup", daemon=True).start()
        except RuntimeError as error:  # there are as many threads as there may be
            raise Unavailable(f"{self._address}: cannot ask for this host: {error}: raise ulimit -u") from error
        self._asked = True

    def _ask(self) -> None:
        try:
            self._answers.put(find(self._address))
        except OSError as error:
            self._answers.put(error)
        except MemoryError:  # the waiting side must get some answer
            self._answers.put(OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)))


def find(address: Address) -> list[Place]:
    """All addresses of a tcp or udp host, IPv4 first; may take long. Raises OSError."""
    kind = socket.SOCK_STREAM if address.scheme == "tcp" else socket.SOCK_DGRAM
    found = [Place(family, where) for family, *_, where in socket.getaddrinfo(address.host, address.port, type=kind)]
    return sorted(found, key=lambda place: place.family != socket.AF_INET)


def _unix(parts: SplitResult, text: str) -> Address:
    if parts.netloc or not parts.path.startswith("/") or parts.path == "/":
        raise ValueError(f"expected three slashes and an absolute path, unix:///run/events.sock, got {text!r}")
    if len(parts.path.encode()) > LONGEST_UNIX_PATH:
        raise ValueError(f"expected a path of {LONGEST_UNIX_PATH} bytes at most (a limit of Linux), got {text!r}")
    return Address("unix", path=parts.path)
