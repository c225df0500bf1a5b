from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
from camgraph_test_stages.brokers import (
    Server,
    certify,
    delivering,
    free_port,
    hand_in,
    incident,
    or_skip,
    program,
    serving,
    stream,
)
from camgraph_test_stages.delivering import refusal
from camgraph_test_stages.hostile import hostile, saying
from camgraph_test_stages.waiting import until

from camgraph.pipeline.errors import Unavailable
from camgraph.stages.sinks import sink_redis
from camgraph.stages.sinks.sink_redis import SinkRedis, SinkRedisSettings
from camgraph.tools.lab import broker_servers

PASSWORD = "plum-garden-74"


def redis_server(folder: Path, *more: str) -> Server:
    return or_skip(lambda: broker_servers.redis_server(folder, *more))


@contextmanager
def sink_to(port: int, folder: Path, **more: Any) -> Iterator[SinkRedis]:
    with delivering(SinkRedis, {"address": f"redis://127.0.0.1:{port}", **more}, folder) as sink:
        yield sink


def entries(port: int, **login: Any) -> list[Mapping[bytes, bytes]]:
    with redis.Redis(port=port, **login) as client:
        return [fields for _, fields in client.xrange("camgraph:test")]


def test_an_entry_and_the_length_of_the_stream(tmp_path) -> None:
    with serving(redis_server(tmp_path)) as server, sink_to(server.port, tmp_path, max_length=100) as sink:
        event = incident(1, "a")
        hand_in(sink, [event])
        [entry] = entries(server.port)
        assert entry == {
            b"id": event.id.encode(),
            b"type": b"camgraph.incident.single",
            b"camera": b"a",
            b"event": event.body,
        }
        hand_in(sink, stream(1000), batch=100)
        assert 100 <= len(entries(server.port)) < 400


def test_password_and_what_the_server_refuses(tmp_path) -> None:
    with serving(redis_server(tmp_path, "--requirepass", PASSWORD)) as server:
        with sink_to(server.port, tmp_path, password=PASSWORD) as sink:
            hand_in(sink, stream(2))
            assert len(entries(server.port, password=PASSWORD)) == 2
        with sink_to(server.port, tmp_path, password="wrong-" + PASSWORD) as sink:
            with pytest.raises(Unavailable, match="does not accept this") as error:
                sink.process(stream(1))
            assert PASSWORD not in str(error.value)
        with redis.Redis(port=server.port, password=PASSWORD) as client:
            client.set("other", 1)
        with sink_to(server.port, tmp_path, password=PASSWORD, stream="other") as sink:
            with pytest.raises(Unavailable, match="holds something else"):
                sink.process(stream(1))


@pytest.mark.parametrize(
    ("options", "user", "why"),
    [
        (["--maxmemory", "1"], {}, "its memory is full: raise its `maxmemory`"),
        (["--min-replicas-to-write", "1"], {}, "too few of its replicas are there"),
        (["--replicaof", "127.0.0.1 1"], {}, "it is a replica, which takes no entries"),
        (["--requirepass", PASSWORD], {}, "it asks for a `password`"),
        (
            ["--user", "reader", "on", f">{PASSWORD}", "~*", "+@read", "+@connection"],
            {"username": "reader", "password": PASSWORD},
            "this user may not write the stream",
        ),
    ],
)
def test_status_says_why_a_server_takes_no_entries(
    tmp_path, options: list[str], user: dict[str, str], why: str
) -> None:
    with serving(redis_server(tmp_path, *options)) as server, sink_to(server.port, tmp_path, **user) as sink:
        with pytest.raises(Unavailable) as raised:
            sink.process(stream(1))
        assert why in str(raised.value)
        assert not list(sink.context.dead_letters)


def test_server_that_is_still_loading_gets_the_events_later(tmp_path) -> None:
    with hostile(saying(b"-LOADING Redis is loading the dataset in memory\r\n")) as server:
        with sink_to(server.port, tmp_path) as sink:
            assert "it is still loading its data" in refusal(sink, stream(1))
            assert not list(sink.context.dead_letters)


def test_server_that_has_hung_up_in_between_is_met_anew_at_once(tmp_path) -> None:
    with serving(redis_server(tmp_path)) as server, sink_to(server.port, tmp_path) as sink:
        hand_in(sink, [incident(1, "a")])
        with redis.Redis(port=server.port) as client:
            client.client_kill_filter(_type="normal", skipme=True)
        until(sink.is_gone)
        sink.process([incident(2, "a")])
        assert len(entries(server.port)) == 2


def test_error_of_an_older_client_is_known_by_its_class() -> None:
    assert "memory is full" in sink_redis._refusal(redis.exceptions.OutOfMemoryError("command not allowed"))


def test_tls(tmp_path) -> None:
    certify(tmp_path, "redis.test")
    port = free_port()
    files = [f"--tls-{name}" for name in ("cert-file", "key-file", "ca-cert-file")]
    named = [
        word for name, file in zip(files, ("server.pem", "server.pem", "ca.pem"), strict=True) for word in (name, file)
    ]
    command = [program("redis-server"), "--port", "0", "--tls-port", str(port), "--tls-auth-clients", "no", *named]
    with serving(Server(command, port, tmp_path)):
        address = {"address": f"rediss://127.0.0.1:{port}"}
        with sink_to(port, tmp_path, **address, tls={"ca": "ca.pem", "server_name": "redis.test"}) as sink:
            hand_in(sink, stream(2))
            assert sink.context.counts["written", "a"] == 1
        with sink_to(port, tmp_path, **address, tls={"ca": "ca.pem"}) as sink:
            with pytest.raises(Unavailable, match="for another name"):
                sink.process(stream(1))


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="number of a database"):
        SinkRedisSettings.model_validate({"address": "redis://a/b"})
