from __future__ import annotations

import socket

from camgraph.stages.sinks.sockets.streams import drop_input


def fill(stream: socket.socket) -> int:
    """Write until there is no more room; how many bytes."""
    stream.setblocking(False)
    size = 0
    while True:
        try:
            size += stream.send(bytes(1 << 12))
        except BlockingIOError:
            return size


def left_in(stream: socket.socket) -> int:
    size = 0
    while True:
        try:
            size += len(stream.recv(1 << 16))
        except BlockingIOError:
            return size


def test_a_peer_that_sends_without_a_pause_holds_up_nobody() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        size = fill(theirs)
        drop_input(ours)
        assert 0 < left_in(ours) < size, "some is dropped, and the rest another time"
