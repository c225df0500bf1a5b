"""A sender resends messages that a lost connection took with it, exactly once, and survives any answer of a reader."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pytest
import zmq
from camgraph_test_stages.parts import process_parts
from camgraph_test_stages.waiting import until
from structlog.testing import capture_logs

from camgraph.pipeline.items import Item, Key
from camgraph.pipeline.messages import Array, Message, Stamp
from camgraph.pipeline.monitoring.metrics import Counters
from camgraph.pipeline.plan import EdgePlan, Policy, ProcessPlan, StagePlan
from camgraph.pipeline.shm.slots import SlotRing
from camgraph.pipeline.system.paths import SHARED_MEMORY
from camgraph.pipeline.testing import stamp
from camgraph.pipeline.transport.in_flight import Ticket
from camgraph.pipeline.transport.protocol import (
    ATTACH,
    DATA,
    HELLO,
    SIGNAL,
    WATERMARKS,
    Head,
    SenderId,
    Signals,
    Watermark,
    packed_hello,
    read_data,
    read_head,
    read_watermarks,
)
from camgraph.pipeline.transport.receiver import Receiver
from camgraph.pipeline.transport.sender import Sender
from camgraph.pipeline.transport.wire import INLINE_BYTES, MAX_PART, pack


@dataclass(frozen=True, eq=False)
class Parcel(Message):
    """`payload` (n,) uint8."""

    TYPE: ClassVar[str] = "parcel"
    payload: Array

    def arrays(self) -> Mapping[str, Array]:
        return {"payload": self.payload}

    @classmethod
    def build(cls, stamp: Stamp, fields: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        return cls(stamp, arrays["payload"])


class Pair:
    """A sender and, if the test opens one, a reader; a test turns both."""

    def __init__(self, folder: Path, policy: Policy = "block", depth: int = 4) -> None:
        self.edge = EdgePlan("src", "model", "", "parcel", policy, depth)
        self.folder = folder
        self.counters = Counters()
        self.poller = zmq.Poller()
        self.ring = SlotRing(f"camgraph-{os.getuid()}-test{os.getpid()}-sender.1", 32)
        self.parts = process_parts(self.counters)
        routes = {self.edge.name: {"a": "model.0"}}
        plan = ProcessPlan("src.a", (StagePlan("src", "src", {}),), ("a",), 8, (self.edge,), routes)
        self.sender = Sender(plan, self.ring, self.poller, self.parts)
        self.receiver: Receiver | None = None
        self.taken: list[Item] = []
        self.done: list[int] = []

    def open_receiver(self, name: str = "in") -> Receiver:
        """A reader that knows of nothing, at this endpoint."""
        stages = (StagePlan("model", "model", {}),)
        senders = {self.edge.name: ("src.a",)}
        plan = ProcessPlan("model.0", stages, ("a",), 8, (self.edge,), {}, senders=senders)
        endpoint = f"ipc://{self.folder}/{name}"
        self.receiver = Receiver(endpoint, plan, {self.edge.name: [Parcel]}, self.parts)
        self.sender.connect({"model.0": endpoint})
        until(lambda: self.turn() or self.sender.attached)
        return self.receiver

    def submit(self, seq: int, size: int = 100) -> None:
        message = Parcel(stamp(seq, "a"), np.full(size, seq, np.uint8))
        ticket = Ticket(lambda: self.done.append(seq))
        self.sender.submit([self.edge], "a", Key(0, seq, 0), message, ticket)
        ticket.closed()

    def turn(self) -> None:
        self.sender.receive(dict(self.poller.poll(2)))
        if self.receiver:
            self.receiver.receive()
            self.taken += self.receiver.mailboxes.take(100, lambda _: 100)
            self.receiver.flush()
        self.sender.flush()

    def finish(self, item: Item) -> None:
        assert self.receiver
        self.receiver.credit(item)
        self.receiver.ack(item)

    @property
    def socket(self) -> zmq.Socket[bytes]:
        """That of the sender's present connection."""
        return next(socket for socket, _ in self.poller.sockets if socket.type == zmq.DEALER)

    @property
    def seqs(self) -> list[int]:
        return [item.stamp.seq for item in self.taken]

    def close(self) -> None:
        self.sender.close()
        if self.receiver:
            self.receiver.close()
        self.ring.close()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    pair = Pair(tmp_path)
    yield pair
    pair.close()


def break_from_the_sender(pair: Pair) -> None:
    pair.socket.send(DATA + b"\0" * (MAX_PART + 1))


def break_from_the_reader(pair: Pair) -> None:
    assert pair.receiver
    pair.receiver.socket.send_multipart([pair.socket.getsockopt(zmq.ROUTING_ID), SIGNAL + b"\0" * (MAX_PART + 1)])


@pytest.mark.parametrize("break_connection", [break_from_the_sender, break_from_the_reader])
def test_what_a_lost_connection_took_along_is_handed_over_again(
    pair: Pair, break_connection: Callable[[Pair], None]
) -> None:
    pair.open_receiver()
    with capture_logs() as logs:
        pair.submit(0)
        until(lambda: pair.turn() or pair.seqs == [0])
        break_connection(pair)
        for seq in (1, 2, 3):
            pair.submit(seq, 50_000)  # as long as nobody has noticed, into the void
        until(lambda: pair.turn() or (len(pair.taken) >= 4 and any(line["log_level"] == "warning" for line in logs)))
    assert [line for line in logs if line["log_level"] != "info"] == [
        {"event": "attached_again", "reader": "model.0", "messages": 4, "log_level": "warning"}
    ]
    for item in pair.taken:
        pair.finish(item)
    until(lambda: pair.turn() or not pair.sender.in_flight)
    assert (pair.seqs, pair.done) == ([0, 1, 2, 3], [0, 1, 2, 3])
    assert all(item.deaths == 0 for item in pair.taken), "nobody died"
    assert pair.ring.in_use == 0


def test_credits_come_back_after_a_loss(pair: Pair) -> None:
    pair.open_receiver()
    for seq in range(4):
        pair.submit(seq)
    until(lambda: pair.turn() or len(pair.taken) == 4)
    assert pair.receiver
    pair.receiver.credit(pair.taken[0])
    break_from_the_reader(pair)
    for seq in range(4, 12):
        pair.submit(seq)
    until(lambda: ([pair.finish(item) for item in pair.taken] and pair.turn()) or pair.done == list(range(12)))
    assert pair.seqs == list(range(12))
    assert pair.sender.room(pair.edge.name, "a") == 4


def test_rebound_reader_gets_unacked_messages(pair: Pair) -> None:
    old = pair.open_receiver()
    for seq in range(3):
        pair.submit(seq)
    until(lambda: pair.turn() or len(pair.taken) == 3)
    pair.finish(pair.taken[0])
    until(lambda: pair.turn() or pair.done == [0])
    old.close()
    pair.taken.clear()
    pair.open_receiver()
    until(lambda: pair.turn() or pair.seqs == [1, 2])


@pytest.mark.parametrize("policy", ["drop_oldest", "drop_newest"])
def test_droppable_frame_survives_lost_connection(tmp_path: Path, policy: Policy) -> None:
    pair = Pair(tmp_path, policy)
    try:
        pair.open_receiver()
        for seq in (0, 1):
            pair.submit(seq, 50_000)
        until(lambda: pair.turn() or pair.seqs == [0, 1])
        break_from_the_sender(pair)
        pair.submit(2, 50_000)
        until(lambda: pair.turn() or pair.seqs == [0, 1, 2])
        assert all(item.intact() for item in pair.taken), "the reader still reads their memory"
        assert pair.counters.get("dropped.reader_lost", "a") == 0
        for item in pair.taken:
            pair.finish(item)
        until(lambda: pair.turn() or pair.ring.in_use == 0)
    finally:
        pair.close()


def test_lost_connections_do_not_count_as_deaths(pair: Pair) -> None:
    first = pair.open_receiver()
    pair.submit(0)
    until(lambda: pair.turn() or pair.taken)
    first.trying(pair.taken[0])
    until(lambda: pair.turn() or pair.poller.poll(50) == [])
    lost = pair.socket
    break_from_the_reader(pair)
    until(lambda: pair.turn() or (lost.closed and pair.sender.attached))
    first.close()
    pair.taken.clear()
    pair.open_receiver("next")
    until(lambda: pair.turn() or pair.taken)
    assert (pair.taken[0].deaths, pair.taken[0].tries) == (1, 1)


class RawReader:
    """A reader's socket that says what a test wants."""

    def __init__(self, pair: Pair, name: str = "raw") -> None:
        self.pair = pair
        self.socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.ROUTER)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.endpoint = f"ipc://{pair.folder}/{name}"
        self.socket.bind(self.endpoint)
        pair.sender.connect({"model.0": self.endpoint})
        kind, _ = self.hear()
        assert kind == ATTACH

    def hear(self) -> tuple[bytes, bytes]:
        """Of the next message, the kind and what is behind it."""
        until(lambda: self.pair.turn() or self.socket.poll(2))
        self.identity, body = self.socket.recv_multipart()
        return body[:1], body[1:]

    def hear_data(self) -> tuple[int, list[Head]]:
        """The next messages and the number of the first; the sender's statement of what is done comes before them."""
        kind, body = self.hear()
        if kind == WATERMARKS:
            kind, body = self.hear()
        assert kind == DATA
        first, rows = read_data(body)
        return first, [read_head(row) for row in rows]

    def say(self, *parts: bytes) -> None:
        self.socket.send_multipart([self.identity, *parts])


BROKEN: list[list[bytes]] = [
    [b""],
    [b"X"],
    [b"X", b""],
    [HELLO + packed_hello([])],  # a second one
    [SIGNAL],
    [SIGNAL + b"\xc1"],
    [SIGNAL + pack([[1], [2]])],
    [SIGNAL + pack([["1"], [], []])],
    [SIGNAL + pack([[1], [], []]), b""],
]


@pytest.mark.parametrize("parts", BROKEN)
def test_a_reader_that_talks_nonsense_is_not_listened_to(pair: Pair, parts: list[bytes]) -> None:
    reader = RawReader(pair)
    try:
        with capture_logs() as logs:
            reader.say(HELLO + pack(7))
            until(lambda: pair.turn() or pair.counters.get("refused.signal", "") == 1)
            reader.say(HELLO + packed_hello([]))
            pair.submit(0)
            assert reader.hear_data()[0] == 1
            reader.say(*parts)
            reader.say(*parts)
            reader.say(SIGNAL + Signals([1, 5], [1, 99], []).packed())
            until(lambda: pair.turn() or pair.done == [0])
        assert pair.counters.get("refused.signal", "") == 3
        assert [line["event"] for line in logs] == ["message_refused"] * 2, "each kind once"
    finally:
        reader.socket.close(0)


def test_successor_of_dead_reader_gets_all(pair: Pair) -> None:
    dead = RawReader(pair)
    dead.say(HELLO + packed_hello([]))
    pair.submit(0)
    dead.hear()
    dead.socket.close(0)
    with capture_logs() as logs:
        quiet_until = time.monotonic() + 0.5
        until(lambda: pair.turn() or time.monotonic() > quiet_until)
    assert logs == []
    successor = RawReader(pair, "next")
    try:
        assert SenderId.of(successor.identity).connection <= 3, "once more at the old address, then at the new one"
        successor.say(HELLO + packed_hello([]))
        kind, body = successor.hear()
        assert kind == WATERMARKS, "before what comes again, which may have holes"
        key = Key(0, 0, 0)
        assert read_watermarks(body) == [Watermark(pair.edge.name, "a", key, key, final=True)]
        first, [(_, _, key, deaths, _, _)] = successor.hear_data()
        assert (first, key.seq, deaths) == (1, 0, 1)
    finally:
        successor.socket.close(0)


def test_watermarks_are_sent_once_per_camera(pair: Pair) -> None:
    """Otherwise each process behind a restarted one would report all cameras again for each camera."""
    pair.sender.revise({pair.edge.name: dict.fromkeys("abc", "model.0")})
    reader = RawReader(pair)
    try:
        reader.say(HELLO + packed_hello([]))
        until(lambda: pair.turn() or pair.sender.attached)

        def reported(camera: str, seq: int, *, final: bool) -> list[Watermark]:
            pair.sender.raise_watermarks([(camera, {pair.edge.name: Key(0, seq, 0)})], final=final)
            pair.submit(seq)  # behind it
            kind, body = reader.hear()
            if kind == WATERMARKS:
                assert [key.seq for _, _, key, *_ in reader.hear_data()[1]] == [seq]
            return read_watermarks(body) if kind == WATERMARKS else []

        def says(camera: str, seq: int, *, final: bool) -> Watermark:
            return Watermark(pair.edge.name, camera, Key(0, seq, 0), None, final)

        assert reported("b", 1, final=False) == [says("b", 1, final=False)]
        assert reported("b", 1, final=False) == []
        assert reported("c", 1, final=False) == [says("c", 1, final=False)]
        assert reported("b", 1, final=True) == [says("b", 1, final=True)]
    finally:
        reader.socket.close(0)


def test_reconnecting_is_limited_to_once_a_second(pair: Pair) -> None:
    reader = RawReader(pair)
    try:
        attaches = [reader.identity]
        begun = time.monotonic()
        over = begun + 2.5
        while time.monotonic() < over:
            reader.say(SIGNAL + b"\0" * (MAX_PART + 1))
            until(lambda: pair.turn() or time.monotonic() > over or reader.socket.poll(2))
            if reader.socket.poll(0):
                reader.identity, *_ = reader.socket.recv_multipart()
                attaches.append(reader.identity)
        tried = [SenderId.of(identity).connection for identity in attaches]
        assert tried == list(range(1, len(tried) + 1))
        assert 2 <= len(tried) <= 2 + (time.monotonic() - begun)  # at most one a second
    finally:
        reader.socket.close(0)


def test_removed_segment_loses_only_its_message(pair: Pair) -> None:
    """The sender attaches anew, because nobody else resends; a message that is unreadable then is refused, and the rest
    goes on."""
    pair.open_receiver()
    until(lambda: pair.turn() or pair.sender.attached)
    pair.submit(0, INLINE_BYTES + 1)
    [segment] = SHARED_MEMORY.glob(f"camgraph-{os.getuid()}-test{os.getpid()}-sender.1.*")
    segment.unlink()
    pair.submit(1)
    until(lambda: pair.turn() or pair.sender.in_flight == 1)
    assert pair.done == [0]
    assert pair.counters.get("dropped.wire", "") == 1
    until(lambda: pair.turn() or pair.taken)
    assert pair.seqs == [1]
