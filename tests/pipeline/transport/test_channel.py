"""The inherited socket: whole messages, no waiting, and the end of the file is the other side's death."""

from __future__ import annotations

import re
import socket
import struct
import threading
import time
import tracemalloc
from collections.abc import Iterator

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from camgraph.pipeline.transport.channel import Channel
from camgraph.pipeline.transport.wire import MAX_PART

Ends = tuple[Channel, Channel]


def framed(data: bytes) -> bytes:
    return struct.pack("<I", len(data)) + data


@pytest.fixture
def pair() -> Iterator[tuple[Channel, Channel]]:
    one, other = socket.socketpair()
    yield Channel(one), Channel(other)
    one.close()
    other.close()


def test_messages_arrive_whole_and_in_order(pair: Ends) -> None:
    ours, theirs = pair
    sent = [{"op": "x", "n": n, "data": b"\0" * n * 5000} for n in range(60)]
    for message in sent:
        ours.send(**message)
    got = []
    while len(got) < len(sent):
        ours.flush()
        got += theirs.receive()
    assert got == sent
    assert not theirs.closed


def test_a_small_message_takes_little_memory(pair: Ends) -> None:
    """Much more would be cut down at once, but riddle the heap with gaps: it grew by megabytes."""
    ours, theirs = pair
    got = 0
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for n in range(200):
            if n == 100:
                before, _ = tracemalloc.get_traced_memory()
                tracemalloc.reset_peak()
            ours.send("x", data=bytes(500))
            got += len(theirs.receive())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert got == 200
    assert peak - before < 16_000


def test_unread_channel_neither_blocks_nor_grows(pair: Ends) -> None:
    ours, theirs = pair
    for _ in range(40):
        ours.send("x", data=b"\0" * (1 << 20))
    assert not ours.flush()
    got = 0
    while not ours.flush():
        got += len(theirs.receive())
    got += len(theirs.receive())
    assert 15 <= got < 40


def test_the_other_sides_death_is_seen(pair: Ends) -> None:
    ours, theirs = pair
    theirs.send("last")
    theirs.close()
    assert [message["op"] for message in ours.receive()] == ["last"]
    assert ours.closed
    ours.send("into the void")


@pytest.mark.parametrize(
    ("nonsense", "why"),
    [
        (struct.pack("<I", 1 << 31), "a message of 2147483648 bytes"),
        (framed(b"\xc1\xc1\xc1"), "not msgpack"),
        (framed(msgpack.packb(7)), "without an `op`"),
        (framed(msgpack.packb({"op": [1, 2]})), "without an `op`"),
        (framed(msgpack.packb({"n": 1})), "without an `op`"),
    ],
)
def test_invalid_message_closes_after_earlier_ones(nonsense: bytes, why: str, pair: Ends) -> None:
    ours, theirs = pair
    ours.send("good", n=1)
    ours._socket.send(nonsense)
    ours.send("unheard")
    assert theirs.receive() == [{"op": "good", "n": 1}]
    assert re.search(why, theirs.fault)
    assert theirs.closed
    assert theirs.receive() == []


def test_oversized_message_is_replaced_by_a_note(pair: Ends) -> None:
    ours, theirs = pair
    assert not ours.send("heartbeat", files=["x" * MAX_PART])
    assert ours.send("heartbeat", files=[])
    [note, heartbeat] = theirs.receive()
    assert (note["op"], note["of"]) == ("oversize", "heartbeat")
    assert note["bytes"] > MAX_PART
    assert heartbeat == {"op": "heartbeat", "files": []}
    assert not theirs.fault


def test_who_never_stops_sending_does_not_hold_up_who_hears(pair: Ends) -> None:
    ours, theirs = pair
    stop = threading.Event()

    def flood() -> None:
        while not stop.is_set():
            ours.send("log", text="x" * 50_000)

    thread = threading.Thread(target=flood)
    thread.start()
    began = time.monotonic()
    received: list[int] = []
    while len(received) < 20 or (not sum(received) and time.monotonic() - began < 60):
        received.append(len(theirs.receive()))
    took_s = time.monotonic() - began
    stop.set()
    thread.join()
    assert sum(received) > 0
    assert took_s < 60


@given(st.binary(max_size=200))
@settings(max_examples=100)
def test_no_bytes_at_all_raise(data: bytes) -> None:
    one, other = socket.socketpair()
    with one, other:
        channel = Channel(other)
        one.send(data)
        channel.receive()
        one.shutdown(socket.SHUT_RDWR)
        channel.receive()
        assert channel.closed
