"""What a server answers that is none, or is up to something: events wait, whatever it says."""

from __future__ import annotations

import json
import re
import select
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from camgraph_test_stages.brokers import incident
from camgraph_test_stages.delivering import delivering, refusal
from camgraph_test_stages.hostile import Talk, flood, hostile

from camgraph.stages.sinks.delivery.event_sink import EventSink
from camgraph.stages.sinks.sink_amqp import SinkAmqp
from camgraph.stages.sinks.sink_email import SinkEmail
from camgraph.stages.sinks.sink_kafka import SinkKafka
from camgraph.stages.sinks.sink_mqtt import SinkMqtt
from camgraph.stages.sinks.sink_nats import SinkNats
from camgraph.stages.sinks.sink_redis import SinkRedis
from camgraph.stages.sinks.sink_webhook import SinkWebhook

MARK = "\x1b]0;owned\x07"
"""A terminal would obey it, and no log may hold it."""


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits for answers that never come."""
    for module, wait_s in [("delivery.mqtt.mqtt_link", 0.3), ("sink_nats", 0.4), ("sink_kafka", 1.0)]:
        monkeypatch.setattr(f"camgraph.stages.sinks.{module}.WAIT_S", wait_s)


def settings_of(sink: type[EventSink[Any]], port: int) -> dict[str, Any]:
    here = f"127.0.0.1:{port}"
    return {
        SinkRedis: {"address": f"redis://{here}"},
        SinkNats: {"address": f"nats://{here}", "stream": "S"},
        SinkAmqp: {"address": f"amqp://{here}", "queue": "q"},
        SinkMqtt: {"address": f"mqtt://{here}"},
        SinkKafka: {"address": f"kafka://{here}", "topic": "t"},
        SinkWebhook: {"url": f"http://{here}", "allow_private": True},
        SinkEmail: {"server": "127.0.0.1", "port": port, "security": "none", "sender": "a@b.org", "to": "c@d.org"},
    }[sink]


def at_once(answer: bytes) -> Talk:
    """Says this, and no more."""

    def talk(connection: socket.socket) -> Iterator[bytes]:
        yield answer
        connection.shutdown(socket.SHUT_WR)

    return talk


def refused(sink: type[EventSink[Any]], talk: Talk, folder: Path, times: int = 3) -> str:
    """Hand in one event a few times, to a server that talks like this: why it waits. Checks the log."""
    with structlog.testing.capture_logs() as lines, hostile(talk) as server:
        with delivering(sink, settings_of(sink, server.port), folder) as one:
            why = [refusal(one, [incident(1)]) for _ in range(times)][-1]
            assert not list(one.context.dead_letters)
            assert one.context.counts == {}
    traces = [line for line in lines if line["event"] == "answer_not_understood"]
    assert len(traces) <= 1
    assert MARK not in f"{why}{lines}"
    return why


def redis(answer: bytes) -> Talk:
    """A server until it gets an entry."""

    def talk(connection: socket.socket) -> Iterator[bytes]:
        while some := connection.recv(1 << 16):
            if b"XADD" in some:
                yield answer
                connection.shutdown(socket.SHUT_WR)
            else:
                yield (
                    b"+PONG\r\n" if b"PING" in some else b"+OK\r\n" * len(re.findall(rb"^\*\d+\r$", some, re.MULTILINE))
                )

    return talk


@pytest.mark.parametrize(
    "answer",
    [
        b":x\r\n",
        b"*1\r\n" * 5000,
        b"$x\r\n",
        b"*9" + b"9" * 5000 + b"\r\n",
        b"+OK\r\n+QUEUED\r\n*0\r\n",
        b"+OK\r\n+QUEUED\r\n:1\r\n",
        b"\xff\xfe\r\n",
        f"-ERR {MARK}\r\n".encode(),
    ],
)
def test_events_wait_while_redis_answers_nonsense(tmp_path: Path, answer: bytes) -> None:
    refused(SinkRedis, redis(answer), tmp_path)


def nats(answer: bytes, **info: Any) -> Talk:
    """A server until it gets a message or a question."""

    def talk(connection: socket.socket) -> Iterator[bytes]:
        yield b"INFO %s\r\n" % json.dumps({"max_payload": 1 << 20, "headers": True, **info}).encode()
        while some := connection.recv(1 << 16):
            yield b"PONG\r\n" * some.count(b"PING\r\n")
            if b"PUB " in some:
                yield answer

    return talk


@pytest.mark.parametrize(
    "answer", [b"HMSG a 1 99999 3\r\nxxx\r\n", b"INFO []\r\n", b"INFO {\r\n", b"-ERR '\xff'\r\n", b"-ERR \r\n"]
)
def test_events_wait_while_nats_answers_nonsense(
    tmp_path: Path, answer: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    refused(SinkNats, nats(answer), tmp_path, times=2)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("most", [None, "many", 0, -5, 10])
def test_events_wait_for_a_nats_server_that_takes_no_message(
    tmp_path: Path, most: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("camgraph.stages.sinks.sink_nats.WAIT_S", 30.0)  # it answers at once: a busy machine needs time
    with hostile(nats(b"", max_payload=most)) as server:
        settings = {"address": f"nats://127.0.0.1:{server.port}"}
        with delivering(SinkNats, settings, tmp_path) as sink:
            assert "it takes no messages of any use" in refusal(sink, [incident(1)])
            assert not list(sink.context.dead_letters)


def frame(kind: int, payload: bytes, channel: int = 0, end: bytes = b"\xce") -> bytes:
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + end


@pytest.mark.parametrize(
    "answer",
    [
        frame(1, b""),
        frame(1, b"\0\x0a\0\x0a"),
        frame(1, b"\0\x0a\0\x0a\0\x09" + struct.pack(">I", 1 << 30)),
        frame(1, b"\0\x0a\0\x1e\0\0\0\0\0\x01\0\0"),  # tune: frames of one byte
        frame(1, b"\0\x14\0\x0b", 7),
        frame(2, b"\0\x3c\0\0", 3),
        frame(3, b"x"),
    ],
)
def test_events_wait_for_an_amqp_broker_that_sends_nonsense(tmp_path: Path, answer: bytes) -> None:
    refused(SinkAmqp, at_once(answer), tmp_path)


@pytest.mark.parametrize(
    "answer",
    [
        b"\x20\x00",
        b"\x20\x03\x00\x00\x7f",
        b"\x20\x06\x00\x00\x03\x21\x00\x00",
        b"\x20\x03\x00\x00\x00\x40\x00",
        b"\x20\x03\x00\x00\x00\x30\x05\x00\xff\xff\xff\xff",
        b"\x20\x03\x00\x00\x00\x90\x00",
        b"\x20\x08\x00\x00\x05\x27\x00\x00\x00\x10",  # packets of 16 bytes at most
        b"\xe0\x01\x77",
    ],
)
def test_the_connection_to_a_broker_of_mqtt_survives_nonsense(
    tmp_path: Path, answer: bytes, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("camgraph.stages.sinks.delivery.mqtt.mqtt_link._PAUSES_S", (0.01, 0.01))
    with hostile(at_once(answer)) as server:
        with delivering(SinkMqtt, settings_of(SinkMqtt, server.port), tmp_path) as sink:
            while server.connections < 2:
                assert refusal(sink, [incident(1)])
            assert not list(sink.context.dead_letters)
    assert capfd.readouterr() == ("", "")


def at_once_endless() -> Talk:
    def talk(connection: socket.socket) -> Iterator[bytes]:
        return flood(b"220-on and on\r\n" * 4000)

    return talk


LITTLE = 16 << 20
"""Bytes that a server may get rid of until it is cut off, with what the kernel's buffers take."""


def endless(*first: bytes, piece: bytes = b"x" * (1 << 16)) -> Talk:
    """Says these, each once the client has sent something, then more than anybody should read."""

    def talk(connection: socket.socket) -> Iterator[bytes]:
        for answer in first:
            connection.recv(1 << 16)
            yield answer
        yield from flood(piece)

    return talk


def redis_flood(head: bytes, piece: bytes = b"x" * (1 << 16)) -> Talk:
    def talk(connection: socket.socket) -> Iterator[bytes]:
        for answer in redis(b"XADD")(connection):
            if answer == b"XADD":
                yield head
                yield from flood(piece)
            yield answer

    return talk


def nats_flood(head: bytes, piece: bytes) -> Talk:
    def talk(connection: socket.socket) -> Iterator[bytes]:
        for answer in nats(b"PUB")(connection):
            if answer == b"PUB":
                yield head
                yield from flood(piece)
            yield answer

    return talk


HUGE_FRAME = struct.pack(">BHI", 1, 0, 4_000_000_000)
HEARTBEATS = frame(8, b"") * 8000
BROKERS: dict[str, tuple[type[EventSink[Any]], Talk]] = {
    "redis: a large answer to the first word": (SinkRedis, endless(b"$4000000000\r\n")),
    "redis: a line without an end": (SinkRedis, endless()),
    "redis: a large answer to an entry": (SinkRedis, redis_flood(b"$4000000000\r\n")),
    "redis: a list without an end": (SinkRedis, redis_flood(b"*4000000000\r\n", b":1\r\n" * 16000)),
    "nats: a line without an end": (SinkNats, nats_flood(b"", b"x" * (1 << 16))),
    "nats: a line of blanks": (SinkNats, nats_flood(b"INFO ", b" " * (1 << 16))),
    "nats: a large message": (SinkNats, nats_flood(b"MSG a 1 4000000000\r\n", b"x" * (1 << 16))),
    "nats: small lines without an end": (SinkNats, nats_flood(b"", b"+OK\r\n" * 13000)),
    "amqp: a large frame": (SinkAmqp, endless(HUGE_FRAME)),
    "amqp: frames without an end": (SinkAmqp, endless(HEARTBEATS, piece=HEARTBEATS)),
    "mqtt: a large packet": (SinkMqtt, endless(b"\x20\xff\xff\xff\x7f")),
    "mqtt: a large packet later": (SinkMqtt, endless(b"\x20\x03\x00\x00\x00\x30\xff\xff\xff\x7f")),
    "mqtt: messages that are kept": (
        SinkMqtt,
        endless(b"\x20\x03\x00\x00\x00", piece=(b"\x34\x86\x80\x04\x00\x01a\x00\x01\x00" + b"x" * 65536)),
    ),
    "kafka: a large answer": (SinkKafka, endless(struct.pack(">I", 90_000_000))),
    "webhook: a large answer": (SinkWebhook, endless(b"HTTP/1.1 500 No\r\nContent-Length: 4000000000\r\n\r\n")),
    "webhook: headers without an end": (SinkWebhook, endless(b"HTTP/1.1 500 No\r\n", piece=b"a: b\r\n" * 10000)),
    "email: a greeting without an end": (SinkEmail, at_once_endless()),
}


@pytest.mark.parametrize("name", BROKERS)
def test_nobody_can_make_a_sink_read_without_end(tmp_path: Path, name: str) -> None:
    sink, talk = BROKERS[name]
    with hostile(talk) as server, delivering(sink, settings_of(sink, server.port), tmp_path) as one:
        assert refusal(one, [incident(1)])
        assert not list(one.context.dead_letters)
        assert server.is_cut_off.wait(60)
        assert server.sent < LITTLE * server.connections


def dripping(piece: bytes) -> Talk:
    """Says a little, again and again: no single wait of the client is long."""

    def talk(connection: socket.socket) -> Iterator[bytes]:
        while True:
            yield piece
            select.select([], [], [connection], 0.02)

    return talk


@pytest.mark.parametrize(
    ("sink", "piece"),
    [
        (SinkRedis, b"x"),
        (SinkAmqp, b"\x08\0\0\0\0\0\0\xce"),
        (SinkAmqp, b"\x01"),
        (SinkNats, b"x"),
        (SinkMqtt, b"\x40\x02\x00\x01"),
    ],
)
def test_a_server_that_drips_is_given_up(
    tmp_path: Path, sink: type[EventSink[Any]], piece: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("redis", "amqp"):
        monkeypatch.setattr(f"camgraph.stages.sinks.sink_{module}.WAIT_S", 0.4)
    with hostile(dripping(piece)) as server, delivering(sink, settings_of(sink, server.port), tmp_path) as one:
        assert refusal(one, [incident(1)])
        assert server.is_cut_off.wait(60)


def heard(talk: Talk, said: bytearray) -> Talk:
    """As `talk`, and notes whatever the client says after that."""

    def both(connection: socket.socket) -> Iterator[bytes]:
        yield from talk(connection)
        while some := connection.recv(1 << 16):
            said.extend(some)

    return both


def test_a_nats_server_without_tls_gets_no_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("camgraph.stages.sinks.sink_nats.WAIT_S", 30.0)  # it answers at once: a busy machine needs time
    said = bytearray()
    with hostile(heard(lambda _: iter([b'INFO {"auth_required": true}\r\n']), said)) as server:
        login = {"username": "me", "password": "plum-garden-74"}
        settings = {"address": f"tls://127.0.0.1:{server.port}", **login}
        with delivering(SinkNats, settings, tmp_path) as sink:
            assert "it speaks no TLS: nothing was sent to it" in refusal(sink, [incident(1)])
    assert said == b""


def test_a_broker_of_amqp_cannot_confirm_more_than_was_sent(tmp_path: Path) -> None:
    with delivering(SinkAmqp, settings_of(SinkAmqp, 1), tmp_path) as sink:
        # A broker of ours cannot be made to confirm so much: the callback of the library is called with it.
        sink._sent = 0
        sink._begin_batch()
        sink._sent = 3
        sink._on_ack(1 << 62, multiple=True)
        assert sink._confirmed == {1, 2, 3}
