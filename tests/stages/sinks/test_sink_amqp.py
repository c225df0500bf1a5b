"""RabbitMQ takes seconds to start, so the tests share one. The one that kills it runs by `make lab`."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trustme
from amqp import Channel, Connection, Message
from camgraph_test_stages.brokers import (
    Server,
    assert_all_in_order,
    delivering,
    free_port,
    hand_in,
    incident,
    or_skip,
    serving,
    stream,
    struck,
)
from camgraph_test_stages.delivering import refusal
from camgraph_test_stages.waiting import until

from camgraph.pipeline.errors import Unavailable
from camgraph.stages.sinks.sink_amqp import SinkAmqp, SinkAmqpSettings
from camgraph.tools.lab import broker_servers


def rabbitmq(folder: Path, *more: str) -> Server:
    return or_skip(lambda: broker_servers.rabbitmq(folder, *more))


@contextmanager
def broker(port: int) -> Iterator[Channel]:
    connection = Connection(f"127.0.0.1:{port}", connect_timeout=60, read_timeout=60)
    try:
        connection.connect()
        yield connection.channel()
    finally:
        connection.collect()


@pytest.fixture(scope="module")
def pems(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ca.pem; server.pem (of broker.test), client.pem, stranger.pem with their keys; other.pem, another authority."""
    folder = tmp_path_factory.mktemp("pems")
    authority, other = trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    other.cert_pem.write_to_path(folder / "other.pem")
    issued = {
        "server": authority.issue_cert("broker.test"),
        "client": authority.issue_cert("client.test"),
        "stranger": other.issue_cert("client.test"),
    }
    for name, one in issued.items():
        one.private_key_and_cert_chain_pem.write_to_path(folder / f"{name}.pem")
    return folder


SECURE_PORT = free_port()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, pems: Path) -> Iterator[Server]:
    """It listens on SECURE_PORT as well, for clients that show a certificate of its authority."""
    tls = [f"listeners.ssl.1 = 127.0.0.1:{SECURE_PORT}", f"ssl_options.cacertfile = {pems}/ca.pem"]
    tls += [f"ssl_options.{name}file = {pems}/server.pem" for name in ("cert", "key")]
    tls += ["ssl_options.verify = verify_peer", "ssl_options.fail_if_no_peer_cert = true"]
    with serving(rabbitmq(tmp_path_factory.mktemp("rabbit"), *tls)) as one:
        until(lambda: is_open(SECURE_PORT), every_s=0.05)
        yield one


def is_open(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 5):
        return True
    return False


@contextmanager
def sink_to(port: int, folder: Path, **more: Any) -> Iterator[SinkAmqp]:
    with delivering(SinkAmqp, {"address": f"amqp://127.0.0.1:{port}", **more}, folder) as sink:
        yield sink


def messages(port: int, queue: str) -> list[Message]:
    with broker(port) as channel:
        found = []
        while message := channel.basic_get(queue, no_ack=True):
            found.append(message)
        return found


def waiting(port: int, queue: str) -> int:
    with suppress(Exception), broker(port) as channel:
        return int(channel.queue_declare(queue, passive=True).message_count)
    return 0


@pytest.mark.lab
def test_a_broker_that_is_killed_loses_no_event(tmp_path) -> None:
    events = stream(3000)
    with serving(rabbitmq(tmp_path)) as server, sink_to(server.port, tmp_path, queue="events") as sink:
        with struck(server, lambda: waiting(server.port, "events") > 300):
            assert hand_in(sink, events)
        assert_all_in_order(events, [message.body for message in messages(server.port, "events")])


def test_a_message(tmp_path, server: Server) -> None:
    event = incident(1, "a")
    with sink_to(server.port, tmp_path, queue="one") as sink:
        hand_in(sink, [event])
    [message] = messages(server.port, "one")
    assert message.body == event.body
    assert message.properties["message_id"] == event.id
    assert message.properties["delivery_mode"] == 2
    assert message.properties["content_type"] == "application/cloudevents+json"
    assert message.properties["type"] == "camgraph.incident.single"


def test_events_wait_until_a_queue_takes_them(tmp_path, server: Server) -> None:
    with broker(server.port) as channel:
        channel.exchange_declare("camgraph", "topic", durable=True, auto_delete=False)
    with sink_to(server.port, tmp_path, exchange="camgraph") as sink:
        with pytest.raises(Unavailable, match=r"no queue takes messages with the key camgraph.test.a.fall: bind one"):
            sink.process(stream(2))
        with broker(server.port) as channel:
            channel.queue_declare("bound", durable=True, auto_delete=False)
            channel.queue_bind("bound", "camgraph", "camgraph.test.#")
        hand_in(sink, stream(200), batch=50)
    assert_all_in_order(stream(200), [message.body for message in messages(server.port, "bound")])


def test_an_event_that_no_queue_takes_repeats_no_other(tmp_path, server: Server) -> None:
    with broker(server.port) as channel:
        channel.exchange_declare("only_a", "topic", durable=True, auto_delete=False)
        channel.queue_declare("of_a", durable=True, auto_delete=False)
        channel.queue_bind("of_a", "only_a", "camgraph.test.a.#")
    events = [incident(number, "b" if number == 4 else "a") for number in range(10)]
    with sink_to(server.port, tmp_path, exchange="only_a") as sink:
        for _ in range(3):
            assert "no queue takes messages with the key camgraph.test.b.fall" in refusal(sink, events)
        assert sink.context.counts == {("written", "a"): 9}
        with broker(server.port) as channel:
            channel.queue_bind("of_a", "only_a", "camgraph.test.b.#")
        hand_in(sink, events, batch=10)
    ids = [message.properties["message_id"] for message in messages(server.port, "of_a")]
    assert sorted(ids) == sorted(event.id for event in events)


def test_wrong_names(tmp_path, server: Server) -> None:
    for more, why in (
        ({"exchange": "nowhere"}, "there is no such exchange"),
        ({"queue": "q", "username": "camgraph", "password": "plum-74"}, "does not accept this"),
    ):
        with sink_to(server.port, tmp_path, **more) as sink:
            with pytest.raises(Unavailable, match=why) as error:
                sink.process(stream(1))
            assert "plum-74" not in str(error.value)


@contextmanager
def secure_sink(pems: Path, **tls: str) -> Iterator[SinkAmqp]:
    address = f"amqps://127.0.0.1:{SECURE_PORT}"
    with sink_to(0, pems, address=address, queue="secure", tls=tls) as sink:
        yield sink


RIGHT = {"ca": "ca.pem", "certificate": "client.pem", "server_name": "broker.test"}


def test_tls_with_certificates_of_both_sides(server: Server, pems: Path) -> None:
    with secure_sink(pems, **RIGHT) as sink:
        hand_in(sink, stream(20))
    assert_all_in_order(stream(20), [message.body for message in messages(server.port, "secure")])


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"server_name": "another.test"}, "its certificate is for another name"),
        ({"server_name": None}, "its certificate is for another name"),
        ({"ca": "other.pem"}, "an authority that is not trusted"),
        ({"certificate": None}, "does it ask for a `certificate` of ours"),
        ({"certificate": "stranger.pem"}, "trust our `certificate`|`certificate` of ours, or not trust"),
    ],
)
def test_tls_that_is_refused(server: Server, pems: Path, wrong: dict[str, Any], why: str) -> None:
    tls = {key: value for key, value in {**RIGHT, **wrong}.items() if value}
    with secure_sink(pems, **tls) as sink:
        # TLS 1.3 refuses our certificate behind the handshake: the alert may be lost if we write at that moment.
        until(lambda: re.search(why, refusal(sink, stream(1))), every_s=0.01)
    assert waiting(server.port, "secure") == 0


def test_mistakes() -> None:
    for settings in ({}, {"queue": "q", "exchange": "e"}):
        with pytest.raises(ValueError, match="either `exchange` or `queue`"):
            SinkAmqpSettings.model_validate({"address": "amqp://a", **settings})
