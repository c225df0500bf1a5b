"""A reader believes its senders and nobody else, and on each connection only messages before the first gap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
import zmq
from camgraph_test_stages.parts import process_parts
from camgraph_test_stages.waiting import until
from structlog.testing import capture_logs

from camgraph.pipeline.items import END_SEQ, Item, Key
from camgraph.pipeline.messages import Message
from camgraph.pipeline.monitoring.metrics import Counters
from camgraph.pipeline.plan import EdgePlan, ProcessPlan, StagePlan
from camgraph.pipeline.testing import stamp
from camgraph.pipeline.transport.protocol import (
    AGAIN,
    ATTACH,
    DATA,
    HELLO,
    SIGNAL,
    WATERMARKS,
    Signals,
    Watermark,
    packed_data,
    packed_watermarks,
    plain_row,
    read_hello,
)
from camgraph.pipeline.transport.receiver import Receiver
from camgraph.pipeline.transport.wire import pack


@dataclass(frozen=True, eq=False)
class Note(Message):
    TYPE: ClassVar[str] = "note"


LEFT = EdgePlan("left", "sum", "", "note", "block", 8)
RIGHT = EdgePlan("right", "sum", "", "note", "block", 8)
SENDERS = {LEFT.name: ("left.0",), RIGHT.name: ("right.0", "right.1")}
PLAN = ProcessPlan("sum.0", (StagePlan("sum", "sum", {}),), ("a",), 8, (LEFT, RIGHT), {}, senders=SENDERS)


class Reader:
    """A receiver, and senders that say what a test wants."""

    def __init__(self, folder: Path) -> None:
        self.counters = Counters()
        accepted = {LEFT.name: [Note], RIGHT.name: [Note]}
        self.receiver = Receiver(f"ipc://{folder}/in", PLAN, accepted, process_parts(self.counters))
        self.sockets: list[zmq.Socket[bytes]] = []

    def sender(self, identity: str, *, attached: bool = True) -> zmq.Socket[bytes]:
        socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
        self.sockets.append(socket)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.ROUTING_ID, identity.encode())
        socket.connect(self.receiver.endpoint)
        socket.send_multipart([ATTACH])
        if attached:
            assert self.hear(socket)[:1] == HELLO
        return socket

    def hear(self, socket: zmq.Socket[bytes]) -> bytes:
        """The next message to this sender."""
        until(lambda: self.turn() or socket.poll(5))
        [body] = socket.recv_multipart()
        return body

    def turn(self) -> None:
        self.receiver.receive()
        self.receiver.flush()

    def signals(self, socket: zmq.Socket[bytes]) -> Signals:
        body = self.hear(socket)
        assert body[:1] == SIGNAL
        return Signals.read(body[1:])

    def take(self) -> list[Item]:
        return self.receiver.mailboxes.take(100, lambda _: 100)

    def close(self) -> None:
        for socket in self.sockets:
            socket.close(0)
        self.receiver.close()


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    reader = Reader(tmp_path)
    yield reader
    reader.close()


def plain(seq: int, edge: EdgePlan = LEFT, body: bytes | None = None) -> tuple[Any, ...]:
    body = pack(["note", 1, stamp(seq, "a"), {}, None, []]) if body is None else body
    return plain_row(edge.name, "a", Key(0, seq, 0), (0, 0), body)


def note(n: int, seq: int, edge: EdgePlan = LEFT, body: bytes | None = None) -> list[bytes]:
    return [DATA + packed_data(n, [plain(seq, edge, body)])]


def arrived(reader: Reader, count: int) -> bool:
    reader.turn()
    return reader.receiver.mailboxes.waiting() >= count


@pytest.mark.parametrize("identity", ["stranger.0#1#1", "sum.0#1#1", "left.0", "left.0#1", "left.0#x#1"])
def test_a_stranger_is_refused_and_told_of_once(reader: Reader, identity: str) -> None:
    with capture_logs() as logs:
        stranger = reader.sender(identity, attached=False)
        stranger.send_multipart([ATTACH])
        stranger.send_multipart(note(1, 0))
        until(lambda: reader.turn() or reader.counters.get("refused.attach", "") == 2)
    assert [line["event"] for line in logs] == ["message_refused"]
    known = reader.sender("left.0#1#1")
    known.send_multipart(note(1, 0))
    until(lambda: arrived(reader, 1))
    assert reader.receiver.mailboxes.waiting() == 1
    assert not stranger.poll(0)


def test_nobody_sends_on_anothers_edge(reader: Reader) -> None:
    sender = reader.sender("right.1#1#1")
    sender.send_multipart(note(1, 0, LEFT))
    assert reader.signals(sender) == ([], [1], [])
    sender.send_multipart(note(2, 0, RIGHT))
    until(lambda: arrived(reader, 1))
    assert reader.counters.get("dropped.wire", "") == 1


def test_watermark_of_removed_camera_does_not_outlive_it(reader: Reader) -> None:
    left, right = reader.sender("left.0#1#1"), reader.sender("right.0#1#1")
    reader.receiver.revise(replace(PLAN, cameras=()))
    reported = Watermark(RIGHT.name, "a", Key(0, END_SEQ + 1, 0), None, final=True)
    right.send(WATERMARKS + packed_watermarks([reported]))
    right.send_multipart([b"X"])
    until(lambda: reader.turn() or reader.counters.get("dropped.wire", "") == 1)
    reader.receiver.revise(PLAN)
    left.send_multipart(note(1, 0))
    until(lambda: arrived(reader, 1))
    assert reader.take() == [], "what comes on the other edge belongs before"
    right.send_multipart(note(2, 0, RIGHT))
    until(lambda: arrived(reader, 2))
    assert [item.sender for item in reader.take()] == ["left"]


def test_late_attach_is_ignored(reader: Reader) -> None:
    now = reader.sender("left.0#2#1")
    late = reader.sender("left.0#1#7", attached=False)
    late.send_multipart(note(1, 5))
    now.send_multipart(note(1, 0))
    until(lambda: arrived(reader, 1))
    assert not late.poll(100)
    assert reader.receiver.mailboxes.waiting() == 1
    assert reader.counters.get("refused.attach", "") == 0


def test_a_second_attach_on_one_connection_is_refused(reader: Reader) -> None:
    sender = reader.sender("left.0#1#1")
    sender.send_multipart([ATTACH])
    sender.send_multipart(note(1, 0))
    until(lambda: arrived(reader, 1))
    assert reader.counters.get("refused.attach", "") == 1


def test_what_follows_a_gap_waits_for_what_is_missing(reader: Reader) -> None:
    first = reader.sender("left.0#1#1")
    for n, seq in ((1, 0), (3, 2), (4, 3)):
        first.send_multipart(note(n, seq))
    until(lambda: arrived(reader, 1))
    second = reader.sender("left.0#1#2")
    for n, seq in enumerate(range(4), 1):
        second.send_multipart(note(n, seq))
    other = reader.sender("right.0#1#1")
    for n, seq in enumerate(range(4), 1):
        other.send_multipart(note(n, seq, RIGHT))
    until(lambda: arrived(reader, 8) or reader.counters.get("repeated", "a") > 1)
    items = reader.take()
    assert [item.stamp.seq for item in items if item.sender == "left"] == [0, 1, 2, 3]
    assert reader.counters.get("repeated", "a") == 1


def test_numbers_of_an_earlier_connection_are_not_mixed_up(reader: Reader) -> None:
    first = reader.sender("left.0#1#1")
    other = reader.sender("right.0#1#1")
    for n, seq in ((1, 0), (2, 1), (3, 2)):
        first.send_multipart(note(n, seq))
        other.send_multipart(note(n, seq, RIGHT))
    until(lambda: arrived(reader, 6))
    items = [item for item in reader.take() if item.sender == "left"]
    reader.receiver.ack(items[0])
    assert reader.signals(first) == ([], [1], [])
    reader.receiver.credit(items[2])
    second = reader.sender("left.0#1#2", attached=False)
    body = reader.hear(second)
    assert (body[:1], read_hello(body[1:])) == (HELLO, [(LEFT.name, "a", stamp(0, "a"), stamp(2, "a"))])
    second.send_multipart(note(1, 1))
    second.send_multipart(note(2, 2))
    assert reader.signals(second) == ([2], [], [])
    reader.receiver.ack(items[1])
    reader.receiver.ack(items[2])
    assert reader.signals(second) == ([], [1, 2], [])
    assert not first.poll(0) or Signals.read(first.recv()[1:]) == ([3], [], [])


BROKEN: list[list[bytes]] = [
    [b""],
    [b"X"],
    [DATA],
    [DATA + b"\xc1"],
    [DATA + pack([1, ["left>sum"]])],
    [DATA + pack([1, [["none>sum", "a", 0, 0, 0, 0, 0, pack(["note", 1, stamp(0, "a"), {}, None, []])]]])],
    note(1, 0, body=b"\xc1"),
    note(1, 0, body=pack(["note", 1, stamp(0, "a"), {}, [5, "x", None], []])),
    note(1, 0, body=pack(["note", 1, stamp(0, "a"), {}, ["/etc/passwd", 0, 0], []])),
    note(1, 0, body=pack([["note"], 1, stamp(0, "a"), {}, None, []])),
    [*note(1, 0), b"more"],
]


@pytest.mark.parametrize("parts", BROKEN)
def test_a_broken_message_is_counted_and_costs_nothing_else(reader: Reader, parts: list[bytes]) -> None:
    sender = reader.sender("left.0#1#1")
    with capture_logs() as logs:
        sender.send_multipart(parts)
        sender.send_multipart(note(2, 1))
        until(lambda: arrived(reader, 1))
    assert reader.counters.get("dropped.wire", "") == 1
    assert [line["event"] for line in logs] == ["message_refused"]


def test_one_broken_message_among_others_costs_nothing_else(reader: Reader) -> None:
    sender = reader.sender("left.0#1#1")
    sender.send(DATA + packed_data(1, [plain(0), plain(1, body=b"\xc1"), plain(2)]))
    assert reader.signals(sender) == ([], [2], [])
    sender.send(DATA + packed_data(4, [plain(3)]))
    right = reader.sender("right.0#1#1")
    right.send(DATA + packed_data(1, [plain(seq, RIGHT) for seq in (0, 2, 3)]))
    until(lambda: arrived(reader, 6))
    assert [item.stamp.seq for item in reader.take() if item.sender == "left"] == [0, 2, 3]


def test_unreadable_message_is_not_overtaken(reader: Reader) -> None:
    """The successor resends it, and it must count as new then, although smaller messages have come behind it."""
    gone = pack(["note", 1, stamp(0, "a"), {}, ["camgraph-gone-with-its-owner", 0, 1], []])
    first = reader.sender("left.0#1#1")
    first.send(DATA + packed_data(1, [plain(0, body=gone), plain(1)]))
    first.send_multipart(note(3, 2))
    assert reader.hear(first) == AGAIN
    successor = reader.sender("left.0#2#1")
    for n, seq in ((1, 0), (2, 1)):
        successor.send_multipart(note(n, seq))
    right = reader.sender("right.0#1#1")
    for n, seq in ((1, 0), (2, 1)):
        right.send_multipart(note(n, seq, RIGHT))
    until(lambda: arrived(reader, 4))
    assert [item.stamp.seq for item in reader.take() if item.sender == "left"] == [0, 1]
    assert reader.counters.get("repeated", "a") == 0
