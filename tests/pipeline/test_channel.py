"""The inherited socket: whole messages, no waiting, and the end of the file is the other side's death."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest

from pipeline.channel import Channel
from pipeline.errors import WireError

Ends = tuple[Channel, Channel]


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


def test_a_side_that_does_not_read_holds_nobody_up_and_costs_bounded_memory(pair: Ends) -> None:
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


def test_an_impossible_length_is_refused() -> None:
    one, other = socket.socketpair()
    one.send(struct.pack("<I", 1 << 31))
    with pytest.raises(WireError, match="control channel"):
        Channel(other).receive()
    one.close()
    other.close()
