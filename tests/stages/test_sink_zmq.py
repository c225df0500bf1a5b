from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgpack
import pytest
import zmq
from camgraph_test_stages.incident_views import incident
from camgraph_test_stages.waiting import until

from pipeline.errors import Unavailable
from pipeline.messages import Event
from pipeline.testing import opened
from stages.sink_zmq import SinkZmq, SinkZmqSettings

OURS, OUR_SECRET = (key.decode() for key in zmq.curve_keypair())
READER, READER_SECRET = (key.decode() for key in zmq.curve_keypair())
WITHIN_MS = 30_000


def event(number: int, **data: Any) -> Event:
    return incident(f"{number:04x}", "single", at_s=number, **data).event


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{probe.getsockname()[1]}"


@contextmanager
def sink_at(address: str, folder: Path, **more: Any) -> Iterator[SinkZmq]:
    with opened(SinkZmq, {"address": address, **more}, folder=folder) as sink:
        assert isinstance(sink, SinkZmq)
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


def wait_for_readers(sink: SinkZmq, count: int) -> None:
    def are_there() -> bool:
        assert sink._socket is not None
        sink._note_subscriptions(sink._socket)
        return len(sink._topics) >= count

    until(are_there, every_s=0.01)


def ids(stream: zmq.Socket[bytes], count: int) -> list[str]:
    return [json.loads(stream.recv_multipart()[1])["id"] for _ in range(count)]


def test_readers_get_the_cameras_and_actions_that_they_subscribe_to(tmp_path) -> None:
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


def test_a_reader_that_never_reads_harms_nobody_and_memory_is_bounded(tmp_path) -> None:
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
        with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n" * 1000)
            wait_for_readers(sink, 1)
            sink.process([event(1)])
            assert ids(stream, 1) == [event(1).id]


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


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"address": "udp://127.0.0.1:1"}, "expected tcp://HOST:PORT or ipc:///PATH"),
        ({"address": "tcp://127.0.0.1"}, "a port from 1 to 65535"),
        ({"curve_secret_key": "s3cret"}, "expected a key of 40 letters"),
        ({"curve_readers": [READER]}, "`curve_secret_key` is missing"),
    ],
)
def test_mistakes_are_named_without_secrets(settings, text) -> None:
    with pytest.raises(ValueError, match="validation error") as refused:
        SinkZmqSettings(**{"address": "tcp://127.0.0.1:7002", **settings})
    told = " ".join(error["msg"] for error in refused.value.errors())  # type: ignore[attr-defined]
    assert text in told
    assert OUR_SECRET not in told
    assert "s3cret" not in told
