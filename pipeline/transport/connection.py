"""One connection of a sender to a reader, and how its loss is noticed.

ZeroMQ drops a connection on its own if the other side breaks its rules or its bounds, connects again, and goes on:
messages under way are lost, without a word. So the socket is watched: once its connection is gone it is closed for
good, and a sender with unacknowledged messages opens another one.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection

import zmq

from camgraph.pipeline.transport.protocol import ATTACH, SenderId
from camgraph.pipeline.transport.wire import MAX_PART

_RETRY_MOST_MS = 2000
# As plain numbers: an enumeration takes longer to combine than a message to send.
_READABLE, _NOBLOCK = int(zmq.POLLIN), int(zmq.NOBLOCK)
_NUMBERS = itertools.count(1)


class Connection:
    """A socket that has sent its first message; it stays registered with `poller` until it is closed."""

    def __init__(self, endpoint: str, sender: SenderId, poller: zmq.Poller) -> None:
        self.socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.SNDHWM, 0)
        self.socket.setsockopt(zmq.RCVHWM, 0)
        self.socket.setsockopt(zmq.MAXMSGSIZE, MAX_PART)
        # A reader that has died is looked for until its successor's address comes: ever less often.
        self.socket.setsockopt(zmq.RECONNECT_IVL_MAX, _RETRY_MOST_MS)
        self.socket.setsockopt(zmq.ROUTING_ID, sender.routing_id())
        self._losses: zmq.Socket[bytes] = self.socket.get_monitor_socket(
            zmq.EVENT_DISCONNECTED, f"inproc://losses.{next(_NUMBERS)}"
        )
        self._poller = poller
        self._given_up = False
        poller.register(self.socket, zmq.POLLIN)
        poller.register(self._losses, zmq.POLLIN)
        self.socket.connect(endpoint)
        self.send(ATTACH)

    def send(self, kind: bytes, body: bytes = b"") -> None:
        """Hand a message to ZeroMQ, which has no bound here: the credits are the bound.

        If ZeroMQ has given the connection up, the message is gone; the connection was, or will be, `lost`.
        """
        try:
            self.socket.send(kind + body, _NOBLOCK)
        except zmq.Again:
            self._given_up = True

    def receive(self) -> list[bytes] | None:
        """The parts of the next message, None if there is none now. Each of ours has one."""
        if not int(self.socket.getsockopt(zmq.EVENTS)) & _READABLE:
            return None
        return self.socket.recv_multipart(_NOBLOCK)

    def give_up(self) -> None:
        """The reader believes nothing more that comes on it: it counts as `lost`."""
        self._given_up = True

    def lost(self, ready: Collection[object]) -> bool:
        """True if the connection is gone; earlier messages may still be received."""
        return self._given_up or self._losses in ready

    def close(self) -> None:
        """Messages that were not sent yet, or not received, are gone."""
        self._poller.unregister(self.socket)
        self._poller.unregister(self._losses)
        self.socket.disable_monitor()
        self._losses.close(0)
        self.socket.close(0)
