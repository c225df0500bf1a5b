"""Receivers for `tools.lab.benchmarks.sinks`, each in a process of its own, so that they take no time from the sink.

    receiver("lines")    listens on a port of loopback, and counts lines
    receiver("http")     answers each POST with 204, over connections that are kept
    receiver("feed", p)  connects to port p and counts lines        receiver("zmq", p)   subscribes at port p

The process prints its port at the start. Once its standard input ends, it prints how many different events it has.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

_ID = re.compile(rb'"id": ?"(incident-\d+)"')
_LINGER_S = 2.0
"""After the end of the input, until nothing new has come for so long."""


class Ids:
    """The different events that have arrived."""

    def __init__(self) -> None:
        self.seen: set[bytes] = set()

    def note(self, data: bytes) -> None:
        self.seen.update(_ID.findall(data))

    def when_quiet(self) -> int:
        before = -1
        while len(self.seen) != before:
            before = len(self.seen)
            time.sleep(_LINGER_S / 4)
        return before


def _lines(stream: Iterable[bytes], ids: Ids) -> None:
    for line in stream:
        ids.note(line)


def _serve(take: Callable[[socket.socket, Ids], None], ids: Ids) -> int:
    """Hand each client to `take`, in a thread. Returns the port."""
    server = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        while True:
            client = server.accept()[0]
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=take, args=(client, ids), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return int(server.getsockname()[1])


def _take_lines(client: socket.socket, ids: Ids) -> None:
    with client, client.makefile("rb") as file:
        _lines(file, ids)


def _take_requests(client: socket.socket, ids: Ids) -> None:
    with client, client.makefile("rb") as file:
        while file.readline():
            size = 0
            while (line := file.readline()) not in (b"\r\n", b""):
                name, _, value = line.partition(b":")
                size = int(value) if name.lower() == b"content-length" else size
            ids.note(file.read(size))
            client.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")


def _read_feed(port: int, ids: Ids) -> None:
    with socket.create_connection(("127.0.0.1", port)) as stream, stream.makefile("rb") as file:
        print(port, flush=True)  # noqa: T201 - the parent reads it
        _lines(file, ids)


def _subscribe(port: int, ids: Ids) -> None:
    import zmq  # noqa: PLC0415 - the other receivers need none

    stream: Any = zmq.Context().socket(zmq.SUB)
    stream.set(zmq.RCVHWM, 100_000)
    stream.subscribe("")
    stream.connect(f"tcp://127.0.0.1:{port}")
    print(port, flush=True)  # noqa: T201 - the parent reads it
    while True:
        ids.note(stream.recv_multipart()[1])


def main(kind: str, port: str) -> None:
    ids = Ids()
    if kind in ("lines", "http"):
        print(_serve(_take_lines if kind == "lines" else _take_requests, ids), flush=True)  # noqa: T201
    else:
        read = _read_feed if kind == "feed" else _subscribe
        threading.Thread(target=read, args=(int(port), ids), daemon=True).start()
    sys.stdin.read()
    print(json.dumps(ids.when_quiet()), flush=True)  # noqa: T201


class Receiver:
    """A running receiver. `port`: its own, or that of the feed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert process.stdout
        self.port = int(process.stdout.readline())

    def count(self) -> int:
        """End it: how many different events it has."""
        out, _ = self._process.communicate("", timeout=60)
        return int(out)


@contextmanager
def receiver(kind: str, port: int = 0) -> Iterator[Receiver]:
    command = [sys.executable, "-m", __spec__.name if __spec__ else __name__, kind, str(port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            yield Receiver(process)
        finally:
            process.kill()


if __name__ == "__main__":
    main(*sys.argv[1:])
