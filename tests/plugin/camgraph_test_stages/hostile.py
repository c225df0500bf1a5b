"""Servers that answer whatever a test wants, instead of what a client expects."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress


class Hostile:
    """Its port, and how much its clients have let it send."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.connections = 0
        self.sent = 0
        """Bytes that left for clients, those in the buffers of the kernel as well."""
        self.is_cut_off = threading.Event()
        """Set once a client has closed a connection that still got bytes."""
        self.open: set[socket.socket] = set()


Talk = Callable[[socket.socket], Iterator[bytes]]


@contextmanager
def hostile(talk: Talk) -> Iterator[Hostile]:
    """Serves each connection with the bytes that `talk` yields, then waits until the client closes it."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        seen = Hostile(int(listener.getsockname()[1]))
        thread = threading.Thread(target=_serve, args=(listener, talk, seen))
        thread.start()
        try:
            yield seen
        finally:
            for one in (listener, *seen.open):
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
            thread.join()


def _serve(listener: socket.socket, talk: Talk, seen: Hostile) -> None:
    talks = []
    with suppress(OSError):
        while True:
            connection, _ = listener.accept()
            seen.connections += 1
            seen.open.add(connection)
            talks.append(threading.Thread(target=_talk, args=(connection, talk, seen)))
            talks[-1].start()
    for one in talks:
        one.join()


def _talk(connection: socket.socket, talk: Talk, seen: Hostile) -> None:
    with connection:
        try:
            for some in talk(connection):
                connection.sendall(some)
                seen.sent += len(some)
            while connection.recv(1 << 16):
                pass
        except OSError:
            seen.is_cut_off.set()
        seen.open.discard(connection)


def flood(piece: bytes = b"x" * (1 << 16), most: int = 64 << 20) -> Iterator[bytes]:
    """Much more than anybody should read, in pieces."""
    for _ in range(most // len(piece)):
        yield piece


def saying(*answers: bytes) -> Talk:
    """Sends these, one for each time that the client has sent something; the first at once if it is for nothing."""

    def talk(connection: socket.socket) -> Iterator[bytes]:
        for answer in answers:
            if connection.recv(1 << 16):
                yield answer

    return talk
