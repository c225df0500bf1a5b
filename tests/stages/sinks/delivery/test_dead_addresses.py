"""A host with a dead IPv6 address beside a good IPv4 one, as every sink meets it; and hosts that have IPv6 alone."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import zmq
from aiosmtpd.controller import Controller
from camgraph_test_stages.brokers import delivering, free_port, hand_in, incident, or_skip, program, serving
from camgraph_test_stages.dead_addresses import dead_address, name_host
from camgraph_test_stages.delivering import refusal
from camgraph_test_stages.hostile import hostile
from camgraph_test_stages.waiting import until
from camgraph_test_stages.web_receiver import web_receiver

from camgraph.pipeline.system.happy_eyeballs import connect
from camgraph.stages.sinks.delivery.event_sink import EventSink
from camgraph.stages.sinks.sink_amqp import SinkAmqp
from camgraph.stages.sinks.sink_email import SinkEmail
from camgraph.stages.sinks.sink_mqtt import SinkMqtt
from camgraph.stages.sinks.sink_nats import SinkNats
from camgraph.stages.sinks.sink_redis import SinkRedis
from camgraph.stages.sinks.sink_syslog import SinkSyslog
from camgraph.stages.sinks.sink_webhook import SinkWebhook
from camgraph.stages.sinks.sink_zmq import SinkZmq
from camgraph.tools.lab import broker_servers
from camgraph.tools.lab.broker_servers import BrokerServer

HOST = "two.test"
LONG_S = 40.0
"""For one address of a host, if a client has it wait for all of its time."""


@pytest.fixture(autouse=True)
def two_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    name_host(monkeypatch, HOST, "::1", "127.0.0.1")


def assert_delivered_at_once(
    sink_class: type[EventSink[Any]], settings: dict[str, Any], port: int, folder: Path
) -> None:
    """Two events arrive at the first try, each over a connection of its own."""
    began_s = time.monotonic()
    with dead_address(port), delivering(sink_class, settings, folder) as sink:
        for number in (1, 2):
            assert hand_in(sink, [incident(number)]) == []
            sink.disconnect()
            sink._is_connected = False  # as behind a failure, which no server here makes
        assert sink.context.counts["written", "cam"] == 2
    assert time.monotonic() - began_s < LONG_S


def test_webhook(tmp_path: Path) -> None:
    with web_receiver() as server:
        settings = {"url": f"http://{HOST}:{server.port}/hook", "allow_private": True, "limit": f"{LONG_S:g}s"}
        assert_delivered_at_once(SinkWebhook, settings, server.port, tmp_path)
        assert len(server.requests) == 2


def test_redis(tmp_path: Path) -> None:
    with serving(or_skip(lambda: broker_servers.redis_server(tmp_path))) as server:
        assert_delivered_at_once(SinkRedis, {"address": f"redis://{HOST}:{server.port}"}, server.port, tmp_path)


def test_nats(tmp_path: Path) -> None:
    with serving(or_skip(lambda: broker_servers.nats_server(tmp_path))) as server:
        settings = {"address": f"nats://{HOST}:{server.port}", "stream": "EVENTS"}
        assert_delivered_at_once(SinkNats, settings, server.port, tmp_path)


def test_mqtt(tmp_path: Path) -> None:
    with serving(or_skip(lambda: broker_servers.mosquitto(tmp_path))) as server:
        assert_delivered_at_once(SinkMqtt, {"address": f"mqtt://{HOST}:{server.port}"}, server.port, tmp_path)


def test_mail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("camgraph.stages.sinks.delivery.mail.mail_server.CALL_S", LONG_S)

    class Box:
        async def handle_DATA(self, *_: Any) -> str:  # noqa: N802 - aiosmtpd's name
            return "250 OK"

    port = free_port()
    controller = Controller(Box(), hostname="127.0.0.1", port=port)
    controller.start()
    try:
        settings = {"server": HOST, "port": port, "security": "none", "sender": "a@b.org", "to": "c@d.org"}
        assert_delivered_at_once(SinkEmail, settings, port, tmp_path)
    finally:
        controller.stop()


def test_syslog(tmp_path: Path) -> None:
    with hostile(lambda _: iter(())) as server:
        assert_delivered_at_once(SinkSyslog, {"address": f"tcp://{HOST}:{server.port}"}, server.port, tmp_path)


def test_amqp_reaches_the_address_that_answers(tmp_path: Path) -> None:
    def talk(connection: socket.socket) -> Iterator[bytes]:
        yield b"AMQP\0\0\x09\x01"  # it speaks another version
        connection.shutdown(socket.SHUT_WR)

    with hostile(talk) as server, dead_address(server.port):
        settings = {"address": f"amqp://{HOST}:{server.port}", "queue": "q"}
        with delivering(SinkAmqp, settings, tmp_path) as sink:
            assert "does not answer" not in refusal(sink, [incident(1)])
        assert server.connections


@contextmanager
def subscriber(ip: str) -> Iterator[tuple[list[bytes], int]]:
    """A SUB that listens: the events that it gets, and its port."""
    events: list[bytes] = []
    over = threading.Event()
    with zmq.Context() as context, context.socket(zmq.SUB) as stream:
        stream.set(zmq.LINGER, 0)
        stream.set(zmq.IPV6, ":" in ip)
        stream.subscribe("")
        port = stream.bind_to_random_port(f"tcp://[{ip}]" if ":" in ip else f"tcp://{ip}")

        def read() -> None:
            while not over.is_set():
                if stream.poll(20):
                    events.append(stream.recv_multipart()[1])

        thread = threading.Thread(target=read)
        thread.start()
        try:
            yield events, port
        finally:
            over.set()
            thread.join()


def test_zmq_that_connects(tmp_path: Path) -> None:
    with subscriber("127.0.0.1") as (events, port):
        assert_delivered_at_once(SinkZmq, {"address": f"tcp://{HOST}:{port}", "connect": True}, port, tmp_path)
        until(lambda: events == [incident(1).body, incident(2).body])


@pytest.mark.parametrize("host", ["[::1]", "six.test"])
def test_zmq_reaches_a_host_that_has_ipv6_alone(tmp_path: Path, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name_host(monkeypatch, "six.test", "::1")
    with subscriber("::1") as (events, port):
        settings = {"address": f"tcp://{host}:{port}", "connect": True}
        with delivering(SinkZmq, settings, tmp_path) as sink:
            assert hand_in(sink, [incident(1)]) == []
            until(lambda: events == [incident(1).body])


@pytest.mark.parametrize("host", ["[::1]", "six.test", "127.0.0.1", "localhost"])
def test_zmq_listens_at_numbers_and_names(tmp_path: Path, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name_host(monkeypatch, "six.test", "::1")
    port = free_port()
    with delivering(SinkZmq, {"address": f"tcp://{host}:{port}"}, tmp_path):
        connect(host.strip("[]"), port, time.monotonic() + LONG_S).close()


@pytest.mark.parametrize("host", ["[::1]", "six.test"])
def test_nats_reaches_a_host_that_has_ipv6_alone(tmp_path: Path, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name_host(monkeypatch, "six.test", "::1")
    port = free_port()
    (tmp_path / "six.conf").write_text(f'listen: "[::1]:{port}"\njetstream {{ store_dir: "{tmp_path}/kept" }}\n')
    command = [program("nats-server"), "-c", "six.conf"]
    with serving(BrokerServer(command, port, tmp_path, ip="::1")):
        with delivering(SinkNats, {"address": f"nats://{host}:{port}", "stream": "EVENTS"}, tmp_path) as sink:
            hand_in(sink, [incident(1)])
