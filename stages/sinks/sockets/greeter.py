"""Takes clients that speak TLS: accepts them and shakes hands, in a thread of its own.

    backlog --accept--> shaking hands --done--> ready --next_client--> the listener
                             |                    |
                        10 s, wrong          gone meanwhile: disconnected

A plain client is connected once the kernel has it in its backlog. One that speaks TLS waits for our part of the
handshake, and that must not be as late as the next event. A client can neither hold up another nor the sink.
"""

from __future__ import annotations

import os
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from camgraph.pipeline.errors import Unavailable
from camgraph.pipeline.stage import Logger
from camgraph.stages.sinks.delivery.tls import tls_failure

HANDSHAKE_S = 10.0
_RENEW_S = 60.0
"""The files of the certificate are read again after so long, if somebody connects."""
_LOOK_S = 1.0
_MOST_READ = 1 << 16


class Greeter:
    """`most`: the most clients that it has in its hands at a time; others wait in the backlog."""

    def __init__(
        self, server: socket.socket, make_context: Callable[[], ssl.SSLContext], log: Logger, most: int
    ) -> None:
        """Raises Unavailable if the files of the certificate cannot be used."""
        self._server, self._make_context, self._log, self._most = server, make_context, log, most
        self._context, self._context_s = make_context(), time.monotonic()
        self._shaking: dict[int, tuple[ssl.SSLSocket, float]] = {}
        """Descriptor -> the client, and until when it must have shaken hands."""
        self._ready: dict[int, ssl.SSLSocket] = {}
        self._lock = threading.Lock()
        self._wake_read, self._wake_write = os.pipe()
        self._thread = threading.Thread(target=self._run, name="greeter", daemon=True)
        self._thread.start()

    def next_client(self) -> ssl.SSLSocket:
        """One that has become ready; it is the caller's from now on. Raises BlockingIOError if there is none."""
        with self._lock:
            if not self._ready:
                raise BlockingIOError
            return self._ready.pop(next(iter(self._ready)))

    def close(self) -> None:
        os.write(self._wake_write, b"x")
        self._thread.join()
        for client in (*self._ready.values(), *(client for client, _ in self._shaking.values())):
            client.close()
        os.close(self._wake_read)
        os.close(self._wake_write)

    # ---- in the thread

    def _run(self) -> None:
        while True:
            for descriptor in self._readable():
                if descriptor == self._wake_read:
                    return
                if descriptor == self._server.fileno():
                    self._accept()
                elif descriptor in self._shaking:
                    self._shake(descriptor)
                else:
                    self._look_at_ready(descriptor)
            self._drop_late(time.monotonic())

    def _readable(self) -> list[int]:
        poll = select.poll()
        poll.register(self._wake_read, select.POLLIN)
        with self._lock:
            known = [*self._shaking, *self._ready]
            for descriptor in known:
                poll.register(descriptor, select.POLLIN)
        if len(known) < self._most:
            poll.register(self._server, select.POLLIN)
        return [descriptor for descriptor, _ in poll.poll(_LOOK_S * 1000)]

    def _accept(self) -> None:
        try:
            plain = self._server.accept()[0]
        except OSError:  # it is gone again, or this machine has no descriptor left: it stays in the backlog
            time.sleep(0.01)
            return
        plain.setblocking(False)
        try:
            plain.getpeername()  # one that is gone: `wrap_socket` would leave it open
            client = self._present_context().wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
        except OSError:
            plain.close()
            return
        self._shaking[client.fileno()] = client, time.monotonic() + HANDSHAKE_S
        self._shake(client.fileno())

    def _present_context(self) -> ssl.SSLContext:
        """With the certificate as it is now, so that a renewed one needs no restart."""
        if time.monotonic() - self._context_s > _RENEW_S:
            self._context_s = time.monotonic()
            try:
                self._context = self._make_context()
            except Unavailable as error:
                self._log.warning("certificate_not_renewed", why=str(error))
        return self._context

    def _shake(self, descriptor: int) -> None:
        client, _ = self._shaking[descriptor]
        try:
            client.do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return
        except OSError as error:
            del self._shaking[descriptor]
            client.close()
            why = tls_failure(error) if isinstance(error, ssl.SSLError) else error.strerror or "it is gone"
            self._log.info("client_refused", why=why)
            return
        del self._shaking[descriptor]
        with self._lock:
            self._ready[descriptor] = client

    def _look_at_ready(self, descriptor: int) -> None:
        """Drop a client that is gone before an event came. What it sends is thrown away."""
        with self._lock:
            client = self._ready.get(descriptor)
            if client is not None and _is_gone(client):
                del self._ready[descriptor]
                client.close()

    def _drop_late(self, now_s: float) -> None:
        for descriptor, (client, until_s) in list(self._shaking.items()):
            if now_s > until_s:
                del self._shaking[descriptor]
                client.close()


def _is_gone(client: ssl.SSLSocket) -> bool:
    try:
        return not client.recv(_MOST_READ)
    except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
        return False
    except OSError:
        return True


_VERDICT_S = 0.3
"""How long a server may take to refuse a certificate that it has seen."""


def shake_hands(client: ssl.SSLSocket, deadline: float) -> None:
    """Our part as a client, of a socket that does not block. Raises OSError, also at the deadline (monotonic s).

    A server that refuses our certificate says so behind the handshake: without a look at that, an event would count as
    received that nobody reads.
    """
    while True:
        try:
            client.do_handshake()
            break
        except ssl.SSLWantReadError:
            _wait(client, select.POLLIN, deadline)
        except ssl.SSLWantWriteError:
            _wait(client, select.POLLOUT, deadline)
    with suppress(TimeoutError):
        _wait(client, select.POLLIN, min(deadline, time.monotonic() + _VERDICT_S))
    with suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError):
        client.recv(_MOST_READ)


def _wait(client: ssl.SSLSocket, event: int, deadline: float) -> None:
    poll = select.poll()
    poll.register(client, event)
    if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
        raise TimeoutError("it took too long")
