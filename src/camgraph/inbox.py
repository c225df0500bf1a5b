"""The program's side of the sockets: receives items from the sinks of a run, and acknowledges them.

    sink --parcel n--> thread --> waiting --take--> in hand --confirm--> done n --ack--> sink
                                     '--discard (the program wants no more)--^

A restarted sink connects anew and resends every unacknowledged item. An inbox recognises the items that it has handed
out already by their ids, and acknowledges them without handing them out twice. `stages.sinks.handover` says why this is
no side channel.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from camgraph.pipeline.errors import WireError
from camgraph.stages.sinks.handover.link import BUFFER_BYTES
from camgraph.stages.sinks.handover.parcel import BYTE_OF, CREDIT, SIZES, Mode, Parcel

_EVERYTHING = 1 << 62
_KNOWN = 20_000
"""How many ids of handed-out items an inbox remembers: far more than can be on their way."""
_UNREAD_S = 10.0
_PARCEL_S = 30.0
"""Within this time a whole parcel has to come: a sink gives up a second after its program reads nothing."""
_MOST_HEADER, _MOST_BODY = 64 << 20, 1 << 30
"""Bytes of a parcel. A picture of 8k has 100 MB."""

T = TypeVar("T")
_log = logging.getLogger("camgraph")


class Board:
    """State that all inboxes of a run share: their lock, who waits for a change, and whether the run is over."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # no Condition: see `camgraph.threads`
        self.over = False
        self.arrivals = itertools.count()
        self._callbacks: list[Callable[[], None]] = []

    def end(self) -> None:
        """Record that no more items will arrive."""
        with self.lock:
            self.over = True
            self.wake()

    def wake(self) -> None:
        """Wake all waiting readers. The caller holds the lock."""
        waiting, self._callbacks = self._callbacks, []
        for callback in waiting:
            callback()

    def call_once(self, callback: Callable[[], None]) -> None:
        """Call `callback` once at the next change, from any thread. The caller holds the lock."""
        self._callbacks.append(callback)


@dataclass(frozen=True, slots=True)
class _Arrival(Generic[T]):
    value: T
    identity: Hashable
    connection: int
    number: int
    arrival: int


class Inbox(Generic[T]):
    """Unread items of one kind, at most `window`. The caller of any method but `listen` holds the board's lock.

    `read` makes a value of a parcel. Values with an equal `identity` are the same item.
    """

    def __init__(
        self, kind: str, board: Board, *, window: int, read: Callable[[Parcel], T], identity: Callable[[T], Hashable]
    ) -> None:
        self.kind = kind
        self.board = board
        self._window = window
        self._read = read
        self._identity = identity
        self._mode: Mode = "every"
        self._server: socket.socket | None = None
        self._sink: socket.socket | None = None
        self._connection = 0
        self._granted = self._taken = self._done = 0
        self._waiting: deque[_Arrival[T]] = deque()
        self._in_hand: _Arrival[T] | None = None
        self._known: dict[Hashable, None] = {}
        self._discarding = False
        self.readers = 0
        """How many threads wait for an item now."""
        self.wanted_at = time.monotonic()
        """When a reader last asked for an item."""
        self.discarded = 0

    # ---- the socket

    def listen(self, path: Path, mode: Mode) -> None:
        """Accept the sink on a socket at this path."""
        self._mode = mode
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._server.bind(str(path))
        self._server.listen()
        threading.Thread(target=self._serve, args=(self._server,), name=f"camgraph-{self.kind}", daemon=True).start()

    def close(self) -> None:
        """Receive no more items. Waiting items can still be taken."""
        for one in (self._server, self._sink):
            if one is not None:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)  # ends a blocking call in another thread
                one.close()
        self._server = self._sink = None

    def _serve(self, server: socket.socket) -> None:
        while True:
            try:
                sink, _ = server.accept()
            except OSError:  # closed
                return
            with sink:
                if not self._meet(sink):
                    return
                # After a broken or incomplete parcel, the sink connects again.
                with contextlib.suppress(OSError, EOFError, ValueError, TypeError, WireError):
                    while True:
                        self._receive(sink)

    def _meet(self, sink: socket.socket) -> bool:
        """Begin a connection; False if `close` came between its acceptance and here."""
        sink.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        with self.board.lock:
            if self._server is None:
                return False
            self._sink = sink
            self._connection += 1
            self._taken = self._done = 0
            self._granted = -1
            with contextlib.suppress(OSError):
                sink.sendall(BYTE_OF[self._mode])
            self._grant()
            self.board.wake()  # readers of newest frames ask again on the new connection
            return True

    def _receive(self, sink: socket.socket) -> None:
        first = _exactly(sink, 1, None)  # which may come at any time, and the rest of its parcel at once
        until_s = time.monotonic() + _PARCEL_S
        header_size, body_size = SIZES.unpack(first + _exactly(sink, SIZES.size - 1, until_s))
        if header_size > _MOST_HEADER or body_size > _MOST_BODY:
            raise WireError(f"a parcel of {header_size} and {body_size} bytes")
        header = bytes(_exactly(sink, header_size, until_s))
        value = self._read(Parcel.read(header, _exactly(sink, body_size, until_s)))
        with self.board.lock:
            if sink is not self._sink:
                return
            self._taken += 1
            came = _Arrival(value, self._identity(value), self._connection, self._taken, next(self.board.arrivals))
            if self._discarding:
                self._finish(came)
                self.discarded += 1
            else:
                self._waiting.append(came)
                self.board.wake()

    # ---- the items

    @property
    def arrival(self) -> int | None:
        """The first waiting item's number among all arrivals of the run; None if no item waits."""
        self._drop_known()
        return self._waiting[0].arrival if self._waiting else None

    @property
    def is_full(self) -> bool:
        """Whether the sink is blocked on this program."""
        return self._mode == "every" and len(self._waiting) >= self._window

    def _drop_known(self) -> None:
        while self._waiting and self._waiting[0].identity in self._known:
            again = self._waiting.popleft()
            if self._in_hand is None or self._in_hand.identity != again.identity:
                self._finish(again)
            else:  # its sink died while the program had it
                self._in_hand = again

    def take(self) -> T:
        """Take the first waiting item; it stays in hand until `confirm`."""
        came = self._waiting.popleft()
        self._in_hand = came
        self._known[came.identity] = None
        if len(self._known) > _KNOWN:
            del self._known[next(iter(self._known))]
        self._grant()
        return came.value

    def ask(self) -> None:
        """Ask for an item. The sinks of live cameras send their newest frame only when asked."""
        self.wanted_at = time.monotonic()
        self._grant(asked=True)

    def confirm(self) -> None:
        """Acknowledge the item in hand."""
        self._drop_known()
        if self._in_hand is not None:
            came, self._in_hand = self._in_hand, None
            self._finish(came)

    def discard(self) -> None:
        """Acknowledge every waiting item and all that arrive later, unread."""
        self._discarding = True
        self.confirm()
        self.discarded += len(self._waiting)
        self._waiting.clear()
        self._done = max(self._done, self._taken)
        self._grant(again=True)
        self.board.wake()

    def _finish(self, came: _Arrival[T]) -> None:
        if came.connection == self._connection and came.number > self._done:
            self._done = came.number
            self._grant(again=True)

    def _grant(self, *, asked: bool = False, again: bool = False) -> None:
        """Send the sink its credits and acks, if they have changed."""
        read = self._taken - len(self._waiting)
        if self._discarding:
            granted = _EVERYTHING
        elif self._mode == "every":
            granted = read + self._window
        else:
            granted = max(self._granted, read + 1 if asked and not self._waiting else 0)
        if granted <= self._granted and not again:
            return
        self._granted = max(granted, self._granted, 0)
        if self._sink is not None:
            with contextlib.suppress(OSError):  # the sink is gone; its successor resends unacknowledged items
                self._sink.sendall(CREDIT.pack(self._granted, self._done))


def _exactly(sink: socket.socket, size: int, until_s: float | None) -> bytearray:
    """Read exactly `size` bytes. Raises EOFError at the end of the connection, and TimeoutError at `until_s`."""
    data = bytearray(size)
    left = memoryview(data)
    poll = select.poll()  # a time-out of the socket would be one for the thread that sends credits, too
    poll.register(sink, select.POLLIN)
    while left:
        if until_s is not None and not poll.poll(max(0.0, until_s - time.monotonic()) * 1000):
            raise TimeoutError
        received = sink.recv_into(left)
        if not received:
            raise EOFError
        left = left[received:]
    return data


class Selection:
    """Takes items from some inboxes of a run, in the order of their arrival. Use it from one thread at a time."""

    def __init__(self, inboxes: Sequence[Inbox[object]], all_inboxes: Sequence[Inbox[object]]) -> None:
        self._inboxes = inboxes
        self._others = [inbox for inbox in all_inboxes if inbox not in inboxes]
        self._board = all_inboxes[0].board
        self._warned = False

    @property
    def board(self) -> Board:
        """The board of the run. The caller of the other methods holds its lock."""
        return self._board

    def confirm(self) -> None:
        """Acknowledge the item that was taken last."""
        for inbox in self._inboxes:
            inbox.confirm()

    def ask(self) -> None:
        """Ask every inbox for an item."""
        for inbox in self._inboxes:
            inbox.ask()

    def ready(self) -> Inbox[object] | None:
        """Return the inbox with the earliest arrival; None if no item waits."""
        arrivals = [(arrival, inbox) for inbox in self._inboxes if (arrival := inbox.arrival) is not None]
        return min(arrivals, key=lambda pair: pair[0])[1] if arrivals else None

    def warn_of_unread(self) -> None:
        """Warn once if this thread may wait for ever, because nobody reads another kind whose inbox is full."""
        now = time.monotonic()
        unread = [o.kind for o in self._others if o.is_full and now - o.wanted_at > _UNREAD_S]
        if unread and not self._warned:
            self._warned = True
            _log.warning(
                "nobody reads %s() of this run, and a graph of files waits for all its readers: read it in another "
                "thread, or read both with items()",
                unread[0],
            )
