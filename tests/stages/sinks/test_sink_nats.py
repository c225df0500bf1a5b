from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nats
import pytest
from camgraph_test_stages.brokers import (
    Server,
    certify,
    delivering,
    hand_in,
    incident,
    or_skip,
    serving,
    stream,
)
from camgraph_test_stages.delivering import refusal
from nats.js.api import ConsumerConfig, DeliverPolicy, DiscardPolicy

from camgraph.pipeline.errors import Unavailable
from camgraph.stages.sinks.sink_nats import SinkNats, _Loop
from camgraph.tools.lab import broker_servers

PASSWORD = "plum-garden-74"


def nats_server(folder: Path, more: str = "", *, streams: bool = True) -> Server:
    return or_skip(lambda: broker_servers.nats_server(folder, more, streams=streams))


@contextmanager
def sink_to(port: int, folder: Path, **more: Any) -> Iterator[SinkNats]:
    settings = {"address": f"nats://127.0.0.1:{port}", "stream": "CAMGRAPH", **more}
    with delivering(SinkNats, settings, folder) as sink:
        yield sink


def messages(port: int) -> list[Any]:
    """All that the stream holds."""

    async def read() -> list[Any]:
        client = await nats.connect(f"nats://127.0.0.1:{port}")
        try:
            held = (await client.jetstream().stream_info("CAMGRAPH")).state.messages
            config = ConsumerConfig(deliver_policy=DeliverPolicy.ALL)
            subscription = await client.jetstream().subscribe("camgraph.>", ordered_consumer=True, config=config)
            return [await subscription.next_msg(timeout=60) for _ in range(held)]
        finally:
            await client.close()

    return asyncio.run(read())


def count(port: int) -> int:
    async def ask() -> int:
        client = await nats.connect(f"nats://127.0.0.1:{port}", max_reconnect_attempts=0, connect_timeout=60)
        try:
            return int((await client.jetstream().stream_info("CAMGRAPH")).state.messages)
        finally:
            await client.close()

    try:
        return asyncio.run(ask())
    except nats.errors.Error:
        return 0


def test_a_message(tmp_path) -> None:
    with serving(nats_server(tmp_path)) as server, sink_to(server.port, tmp_path) as sink:
        event = incident(1, "a", action="raised.hand")
        hand_in(sink, [event])
        [message] = messages(server.port)
        assert message.subject == "camgraph.test.a.raised_hand"
        assert message.data == event.body
        assert message.headers == {"Nats-Msg-Id": event.id, "content-type": "application/cloudevents+json"}


def test_an_event_too_large_for_the_stream_is_a_dead_letter(tmp_path) -> None:
    with serving(nats_server(tmp_path)) as server, sink_to(server.port, tmp_path) as sink:
        asyncio.run(make_stream(server.port, max_msg_size=4096))
        hand_in(sink, [incident(1, "a"), incident(2, "a", text="x" * 6000), incident(3, "a")], batch=3)
        assert sink.context.counts == {("written", "a"): 2, ("dropped.refused", "a"): 1}
        [letter] = sink.context.dead_letters
        assert "the stream does not take it" in letter.why
        assert len(messages(server.port)) == 2


def test_full_stream_says_so_and_takes_events_once_it_has_room(tmp_path) -> None:
    with serving(nats_server(tmp_path)) as server, sink_to(server.port, tmp_path) as sink:
        asyncio.run(make_stream(server.port, max_msgs=1, discard=DiscardPolicy.NEW))
        hand_in(sink, [incident(1, "a")])
        assert "the stream is full: raise its `max_msgs`" in refusal(sink, [incident(2, "a")])
        assert not list(sink.context.dead_letters)
        asyncio.run(empty_stream(server.port))
        hand_in(sink, [incident(2, "a")])
        assert count(server.port) == 1


def test_a_server_without_streams_says_so(tmp_path) -> None:
    with serving(nats_server(tmp_path, streams=False)) as server, sink_to(server.port, tmp_path) as sink:
        assert "it has no JetStream" in refusal(sink, [incident(1, "a")])


async def empty_stream(port: int) -> None:
    client = await nats.connect(f"nats://127.0.0.1:{port}")
    try:
        await client.jetstream().purge_stream("CAMGRAPH")
    finally:
        await client.close()


async def make_stream(port: int, **limits: Any) -> None:
    client = await nats.connect(f"nats://127.0.0.1:{port}")
    try:
        await client.jetstream().add_stream(name="CAMGRAPH", subjects=["camgraph.test.>"], **limits)
    finally:
        await client.close()


def test_events_wait_for_a_stream(tmp_path) -> None:
    with serving(nats_server(tmp_path)) as server:
        with sink_to(server.port, tmp_path, stream=None) as sink:
            with pytest.raises(Unavailable, match=r"no stream takes camgraph.test.>: create one there, or name it"):
                sink.process(stream(1))
        with sink_to(server.port, tmp_path) as sink:
            hand_in(sink, stream(1))
            assert count(server.port) == 1


def test_password(tmp_path, capfd) -> None:
    with serving(nats_server(tmp_path, f"authorization {{ user: camgraph, password: {PASSWORD} }}")) as server:
        with sink_to(server.port, tmp_path, username="camgraph", password=PASSWORD) as sink:
            hand_in(sink, stream(2))
        with sink_to(server.port, tmp_path, username="camgraph", password="wrong-" + PASSWORD) as sink:
            with pytest.raises(Unavailable, match="does not accept this `username` and `password`") as error:
                sink.process(stream(1))
    assert PASSWORD not in f"{error.value}{capfd.readouterr()}"


def test_tls(tmp_path) -> None:
    certify(tmp_path, "nats.test")
    with serving(nats_server(tmp_path, 'tls { cert_file: "server.pem", key_file: "server.pem" }')) as server:
        address = {"address": f"tls://127.0.0.1:{server.port}"}
        with sink_to(server.port, tmp_path, **address, tls={"ca": "ca.pem", "server_name": "nats.test"}) as sink:
            hand_in(sink, stream(2))
            assert sink.context.counts["written", "a"] == 1
        with sink_to(server.port, tmp_path, **address, tls={"ca": "ca.pem"}) as sink:
            with pytest.raises(Unavailable, match="for another name"):
                sink.process(stream(1))


def test_what_still_waits_at_the_end_is_cancelled() -> None:
    ended = []

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async def begin() -> None:
        asyncio.get_running_loop().waiting = asyncio.create_task(wait())  # type: ignore[attr-defined]
        await asyncio.sleep(0)

    loop = _Loop()
    loop.run(begin(), 60)
    loop.stop()
    assert ended == [True]
