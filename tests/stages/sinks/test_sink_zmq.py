from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgpack
import pytest
import zmq
from camgraph_test_stages.delivering import delivering
from camgraph_test_stages.incident_views import event
from camgraph_test_stages.waiting import until
from structlog.testing import capture_logs

from camgraph.pipeline.errors import Unavailable
from camgraph.pipeline.messages import Event
from camgraph.stages.sinks import sink_zmq
from camgraph.stages.sinks.sink_zmq import SinkZmq, SinkZmqSettings

OURS, OUR_SECRET = (key.decode() for key in zmq.curve_keypair())
READER, READER_SECRET = (key.decode() for key in zmq.curve_keypair())
WITHIN_MS = 30_000


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{probe.getsockname()[1]}"


@contextmanager
def sink_at(address: str, folder: Path, **more: Any) -> Iterator[SinkZmq]:
    with delivering(SinkZmq, {"address": address, **more}, folder) as sink:
        yield sink


@contextmanager
def reader(address: str, topic: str = "", *, secret: str = "") -> Iterator[zmq.Socket[bytes]]:
    with zmq.Context() as context, context.socket(zmq.SUB) as stream:
        stream.set(zmq.LINGER, 0)
        if secret:
            stream.set(zmq.CURVE_SECRETKEY, secret.encode())
            stream.set(zmq.CURVE_PUBLICKEY, zmq.curve_public(secret.encode()))
            stream.set(zmq.CURVE_SERVERKEY, OURS.encode())
        stream.set(zmq.RCVTIMEO, WITHIN_MS)
        stream.subscribe(topic)
        stream.connect(address)
        yield stream


def wait_for_readers(sink: SinkZmq, count: int, *topics: bytes) -> None:
    """Until the sink has their subscriptions, of which ZeroMQ tells the publisher alone."""

    def are_there() -> bool:
        assert sink._socket is not None
        sink._note_subscriptions(sink._socket)
        return len(sink._topics) >= count and set(topics) <= set(sink._topics)

    until(are_there, every_s=0.01)


def ids(stream: zmq.Socket[bytes], count: int) -> list[str]:
    return [json.loads(stream.recv_multipart()[1])["id"] for _ in range(count)]


def test_readers_get_the_subscribed_cameras_and_actions(tmp_path) -> None:
    address = free_address()
    sent = [event(1, camera="room-3"), event(2, camera="room-30"), event(3, camera="room-3", action="lying")]
    with sink_at(address, tmp_path) as sink:
        sink.process([event(0)])
        with reader(address) as everything, reader(address, "room-3/") as camera, reader(address, "room-3/fall") as one:
            wait_for_readers(sink, 3)
            sink.process(sent)
            assert ids(everything, 3) == [one.id for one in sent]
            assert ids(camera, 2) == [sent[0].id, sent[2].id]
            topic, body = one.recv_multipart()
            assert (topic, body) == (b"room-3/fall", sent[0].body)
        assert sink.context.counts == {
            ("unsent.no_reader", "cam"): 1,
            ("written", "room-3"): 2,
            ("written", "room-30"): 1,
        }


def test_msgpack(tmp_path) -> None:
    address = f"ipc://{tmp_path}/feed"
    with sink_at(address, tmp_path, format="msgpack") as sink, reader(address) as stream:
        wait_for_readers(sink, 1)
        odd = Event(event(1).stamp, "x", "", "single", b'{"id": "x", "n": 100000000000000000000}')
        sink.process([odd, event(2)])
        assert msgpack.unpackb(stream.recv_multipart()[1]) == json.loads(event(2).body)
        assert [letter.event.id for letter in sink.context.dead_letters] == ["x"]


def test_a_reader_that_never_reads_costs_bounded_memory(tmp_path) -> None:
    address = free_address()
    with sink_at(address, tmp_path, most_waiting=10) as sink:
        with reader(address, "") as mute, reader(address, "cam") as good:
            mute.set(zmq.RCVHWM, 1)
            wait_for_readers(sink, 2)
            for number in range(300):
                sink.process([event(number, text="x" * 20_000)])
                assert ids(good, 1) == [event(number).id]
        assert sink.context.counts == {("written", "cam"): 300}


def test_garbage_on_the_port_harms_nobody(tmp_path) -> None:
    address = free_address()
    with sink_at(address, tmp_path) as sink, reader(address) as stream:
        wait_for_readers(sink, 1)  # before the garbage, which may be taken for a subscription of the oldest protocol
        with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n" * 1000)
            stranger.settimeout(60)
            assert stranger.recv(1), "ZeroMQ has not accepted the stranger"
            for number in range(100):
                sink.process([event(number)])
                assert ids(stream, 1) == [event(number).id]


GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
READY = b"\x05READY\x0bSocket-Type" + (3).to_bytes(4, "big") + b"SUB"


def subscription(topic: bytes) -> bytes:
    """A frame of ZMTP 3."""
    return b"\x02" + (len(topic) + 1).to_bytes(8, "big") + b"\x01" + topic


def test_a_reader_with_a_topic_of_a_megabyte_is_disconnected(tmp_path) -> None:
    """ZeroMQ keeps it in a tree with a level for each byte, and dies when it takes that down by recursion."""
    address = free_address()
    with sink_at(address, tmp_path) as sink, reader(address, "cam") as good:
        with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), 60) as hostile:
            hostile.sendall(GREETING + b"\x04" + bytes([len(READY)]) + READY)
            told = b""
            while b"XPUB" not in told:
                told += hostile.recv(1 << 16)
            hostile.sendall(subscription(b"small"))
            wait_for_readers(sink, 2, b"small")
            with suppress(ConnectionError):
                hostile.sendall(subscription(b"x" * 1_000_000))
                while hostile.recv(1 << 16):
                    pass
        sink.process([event(1)])
        assert ids(good, 1) == [event(1).id]
        assert max(map(len, sink._topics)) < 100


def test_only_readers_with_a_key_get_events(tmp_path) -> None:
    address = free_address()
    stranger_secret = zmq.curve_keypair()[1].decode()
    keys = {"curve_secret_key": OUR_SECRET, "curve_readers": READER}
    with sink_at(address, tmp_path, **keys) as sink:
        with (
            reader(address, "plain", secret="") as plain,
            reader(address, "stranger", secret=stranger_secret) as stranger,
            reader(address, "cam", secret=READER_SECRET) as known,
        ):
            wait_for_readers(sink, 1)
            sink.process([event(1), event(2, camera="plain"), event(3, camera="stranger"), event(4)])
            assert ids(known, 2) == [event(1).id, event(4).id]
            assert sink._topics == {b"cam"}
            for stream in (plain, stranger):
                assert stream.poll(0) == 0


def test_an_address_that_is_taken_is_waited_for(tmp_path) -> None:
    address = free_address()
    with socket.create_server(("127.0.0.1", int(address.rpartition(":")[2]))) as taken:
        with sink_at(address, tmp_path) as sink:
            with pytest.raises(Unavailable, match=r"Address already in use"):
                sink.process([event(1)])
            taken.close()

            def is_taken() -> bool:
                try:
                    sink.process([event(1)])
                except Unavailable:
                    return False
                return True

            until(is_taken, every_s=0.05)


# ---- connected to others


class Reading(threading.Thread):
    """A SUB that listens, and keeps the ids of what comes; a socket of ZeroMQ does nothing if nobody asks it."""

    def __init__(self, address: str, *, server_key: str = "") -> None:
        super().__init__()
        self.ids: list[str] = []
        self._address, self._key = address, server_key
        self._context = zmq.Context()

    def run(self) -> None:
        with self._context.socket(zmq.SUB) as stream, suppress(zmq.ContextTerminated):
            stream.set(zmq.LINGER, 0)
            if self._key:
                stream.set(zmq.CURVE_SECRETKEY, self._key.encode())
                stream.set(zmq.CURVE_SERVER, 1)
            stream.subscribe("cam/")
            stream.bind(self._address)
            while True:
                self.ids.append(json.loads(stream.recv_multipart()[1])["id"])

    def __enter__(self) -> Reading:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._context.term()
        self.join()


@contextmanager
def proxy(front: str, back: str) -> Iterator[None]:
    """As buses are made of: publishers connect to its front, subscribers to its back."""
    context = zmq.Context()

    def forward() -> None:
        with context.socket(zmq.XSUB) as publishers, context.socket(zmq.XPUB) as subscribers:
            publishers.bind(front)
            subscribers.bind(back)
            with suppress(zmq.ContextTerminated):
                zmq.proxy(publishers, subscribers)

    thread = threading.Thread(target=forward)
    thread.start()
    yield
    context.term()
    thread.join()


def push(sink: SinkZmq, events: list[Event]) -> list[str]:
    """Hand in until they are taken. Why they were not, before."""
    whys: list[str] = []

    def is_taken() -> bool:
        try:
            sink.process(events)
        except Unavailable as error:
            whys.append(str(error))
            return False
        return True

    until(is_taken, every_s=0.02)
    return whys


def test_events_wait_for_a_reader_and_for_its_restart(tmp_path, monkeypatch) -> None:
    address = free_address()
    with sink_at(address, tmp_path, connect=True) as sink:
        with monkeypatch.context() as patch:
            patch.setattr(sink_zmq, "_WAIT_S", 0.1)
            with pytest.raises(Unavailable, match="nobody answers there"):
                sink.process([event(1)])
        for number in (1, 2):
            with Reading(address) as first:
                push(sink, [event(number)])
                until(lambda first=first: first.ids)
            assert first.ids == [event(number).id]
            until(lambda: lost(sink))
        assert sink.context.counts == {("written", "cam"): 2}


def lost(sink: SinkZmq) -> bool:
    """Whether the sink knows that the other side is gone; it has nothing more to send."""
    assert sink._line is not None
    try:
        sink._line.check()
    except Unavailable as error:
        return "the connection is lost" in str(error)
    return False


def test_readers_of_a_proxy_get_what_they_subscribe_to(tmp_path) -> None:
    front, back = free_address(), free_address()
    with proxy(front, back), sink_at(front, tmp_path, connect=True) as sink, reader(back, "room-3/") as stream:
        push(sink, [event(1)])
        wait_for_readers(sink, 1)
        push(sink, [event(2, camera="room-3"), event(3)])
        assert ids(stream, 1) == [event(2).id]
        assert sink.context.counts[("unsent.no_reader", "cam")] == 2


@pytest.mark.parametrize("ours", [None, READER_SECRET], ids=["any key", "its own key"])
def test_a_listening_reader_with_curve(tmp_path, ours) -> None:
    address = free_address()
    with sink_at(address, tmp_path, connect=True, curve_server_key=OURS, curve_secret_key=ours) as sink:
        with Reading(address, server_key=OUR_SECRET) as known:
            push(sink, [event(1)])
            until(lambda: known.ids)


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [("", OURS), (READER_SECRET, OURS), (OUR_SECRET, None)],
    ids=["no key", "another key", "expected none"],
)
def test_no_event_goes_to_somebody_with_another_key_or_none(tmp_path, theirs, expected) -> None:
    address = free_address()
    with Reading(address, server_key=theirs) as stranger:
        with sink_at(address, tmp_path, connect=True, curve_server_key=expected) as sink:
            with pytest.raises(Unavailable, match="it refuses the connection"):
                sink.process([event(1)])
            assert sink.context.counts == {}
    assert stranger.ids == []


def refusal(sink: SinkZmq) -> str:
    with pytest.raises(Unavailable) as refused:
        sink.process([event(1)])
    return str(refused.value)


def test_listening_beyond_this_machine_is_told(tmp_path) -> None:
    address = free_address().replace("127.0.0.1", "0.0.0.0")
    with capture_logs() as lines, sink_at(address, tmp_path):
        pass
    assert [line["address"] for line in lines if line["event"] == "listening_beyond_this_machine"] == [address]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"address": "udp://127.0.0.1:1"}, "expected tcp://HOST:PORT or ipc:///PATH"),
        ({"address": "tcp://127.0.0.1"}, "a port from 1 to 65535"),
        ({"curve_secret_key": "s3cret"}, "expected a key of 40 letters"),
        ({"curve_readers": [READER]}, "`curve_secret_key` is missing"),
        ({"curve_server_key": OURS}, "write `connect: true`"),
        ({"connect": True, "curve_readers": [READER]}, "leave out `curve_readers`"),
        ({"connect": True, "curve_secret_key": OUR_SECRET}, "`curve_server_key` is missing"),
        ({"connect": True, "address": "tcp://0.0.0.0:1"}, "name the host of the proxy"),
    ],
)
def test_mistakes_are_named_without_secrets(settings, text) -> None:
    with pytest.raises(ValueError, match="validation error") as refused:
        SinkZmqSettings(**{"address": "tcp://127.0.0.1:7002", **settings})
    told = " ".join(error["msg"] for error in refused.value.errors())  # type: ignore[attr-defined]
    assert text in told
    assert OUR_SECRET not in told
    assert "s3cret" not in told
