"""A connection introduces itself, and its loss is noticed however it comes about."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq
from camgraph_test_stages.waiting import until

from camgraph.pipeline.transport import connection
from camgraph.pipeline.transport.connection import Connection
from camgraph.pipeline.transport.protocol import ATTACH, DATA, SIGNAL, SenderId

SENDER = SenderId("src.a", 2, 3)


class Ends:
    """Both ends: the reader's plain socket, and a sender's connection to it."""

    def __init__(self, folder: Path) -> None:
        self.endpoint = f"ipc://{folder}/in"
        self.reader: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.ROUTER)
        self.reader.setsockopt(zmq.LINGER, 0)
        self.reader.bind(self.endpoint)
        self.poller = zmq.Poller()
        self.connection = Connection(self.endpoint, SENDER, self.poller)

    def received(self) -> list[bytes]:
        """The next message of the sender: its routing id, and one part."""
        until(lambda: self.reader.poll(10))
        return self.reader.recv_multipart(zmq.NOBLOCK)

    def lost(self) -> bool:
        return self.connection.lost(dict(self.poller.poll(10)))

    def close(self) -> None:
        self.connection.close()
        self.reader.close(0)


@pytest.fixture
def ends(tmp_path: Path) -> Iterator[Ends]:
    both = Ends(tmp_path)
    yield both
    both.close()


def test_the_first_message_attaches_and_names_the_sender(ends: Ends) -> None:
    assert ends.received() == [SENDER.routing_id(), ATTACH]
    ends.connection.send(DATA, b"rows")
    assert ends.received() == [SENDER.routing_id(), DATA + b"rows"]
    assert not ends.lost()


def test_messages_are_received_one_at_a_time(ends: Ends) -> None:
    ends.received()
    assert ends.connection.receive() is None
    for number in (b"1", b"2"):
        ends.reader.send_multipart([SENDER.routing_id(), SIGNAL + number])
    assert [until(ends.connection.receive), until(ends.connection.receive)] == [[SIGNAL + b"1"], [SIGNAL + b"2"]]
    assert ends.connection.receive() is None


def test_a_reader_that_goes_away_is_noticed(ends: Ends) -> None:
    ends.received()
    ends.reader.close(0)
    until(ends.lost)


def test_messages_that_came_before_the_loss_can_be_received(ends: Ends) -> None:
    ends.received()
    ends.reader.send_multipart([SENDER.routing_id(), SIGNAL])
    ends.reader.setsockopt(zmq.LINGER, 10_000)
    ends.reader.close()
    until(ends.lost)
    assert ends.connection.receive() == [SIGNAL]


def test_a_message_beyond_the_bound_ends_the_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ZeroMQ drops the connection and makes another one, without a word to either side."""
    monkeypatch.setattr(connection, "MAX_PART", 1000)
    ends = Ends(tmp_path)
    ends.received()
    ends.reader.send_multipart([SENDER.routing_id(), bytes(1001)])
    until(ends.lost)
    assert ends.connection.receive() is None
    ends.close()


def test_a_connection_that_is_given_up_is_lost(ends: Ends) -> None:
    assert not ends.connection.lost([])
    ends.connection.give_up()
    assert ends.connection.lost([])


def test_a_message_without_a_way_is_a_loss_and_no_wait(ends: Ends) -> None:
    ends.received()
    ends.connection.socket.disconnect(ends.endpoint)
    ends.connection.send(DATA)
    assert ends.connection.lost([])


def test_a_closed_connection_leaves_nothing_with_the_poller(tmp_path: Path) -> None:
    ends = Ends(tmp_path)
    assert len(ends.poller.sockets) == 2
    ends.close()
    assert ends.poller.sockets == []
    assert ends.connection.socket.closed
