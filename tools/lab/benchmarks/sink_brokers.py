"""Brokers for `tools.lab.benchmarks.sinks`: each tells how many different events it holds, once the sink is done.

A broker that is not installed is a LookupError.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from camgraph.tools.lab.broker_servers import mosquitto, nats_server, rabbitmq, redis_server, serving

Held = tuple[Mapping[str, Any], Callable[[], int]]
"""The settings of the sink, and the question how many events have arrived."""
_LATE_S = 60.0


@contextmanager
def redis_stream(folder: Path) -> Iterator[Held]:
    with serving(redis_server(folder)) as server:

        def held() -> int:
            import redis  # noqa: PLC0415 - an extra

            with redis.Redis(port=server.port) as client:
                return len({fields[b"id"] for _, fields in client.xrange("events")})

        yield {"address": f"redis://127.0.0.1:{server.port}", "stream": "events", "max_length": 0}, held


@contextmanager
def nats_stream(folder: Path) -> Iterator[Held]:
    with serving(nats_server(folder)) as server:

        async def ask() -> int:
            import nats  # noqa: PLC0415 - an extra

            client = await nats.connect(f"nats://127.0.0.1:{server.port}")
            info = await client.jetstream().stream_info("EVENTS")
            await client.close()
            return int(info.state.messages)

        yield {"address": f"nats://127.0.0.1:{server.port}", "stream": "EVENTS"}, lambda: asyncio.run(ask())


@contextmanager
def rabbitmq_queue(folder: Path) -> Iterator[Held]:
    with serving(rabbitmq(folder)) as server:

        def held() -> int:
            from amqp import Connection  # noqa: PLC0415 - an extra

            with Connection(f"127.0.0.1:{server.port}") as connection:
                return int(connection.channel().queue_declare("events", passive=True).message_count)

        yield {"address": f"amqp://127.0.0.1:{server.port}", "queue": "events"}, held


@contextmanager
def mqtt_session(folder: Path) -> Iterator[Held]:
    """A reader with a session, which is away meanwhile: the broker keeps all for it."""
    with serving(mosquitto(folder, "allow_anonymous true", "max_queued_messages 0")) as server:
        _mqtt_reader(server.port, until=0)
        settings = {"address": f"mqtt://127.0.0.1:{server.port}", "prefix": "bench", "topic": "events"}
        yield settings, lambda: _mqtt_reader(server.port, until=None)


def _mqtt_reader(port: int, until: int | None) -> int:
    """Connect, subscribe, and read until nothing has come for a second."""
    from paho.mqtt.client import Client, MQTTv5  # noqa: PLC0415 - an extra
    from paho.mqtt.enums import CallbackAPIVersion  # noqa: PLC0415
    from paho.mqtt.packettypes import PacketTypes  # noqa: PLC0415
    from paho.mqtt.properties import Properties  # noqa: PLC0415

    seen, subscribed, came = set[bytes](), threading.Event(), threading.Event()

    def read(_: Any, __: Any, message: Any) -> None:
        seen.add(message.payload)
        came.set()

    keep = Properties(PacketTypes.CONNECT)
    keep.SessionExpiryInterval = 3600
    client = Client(CallbackAPIVersion.VERSION2, "bench-reader", protocol=MQTTv5)
    client.on_connect = lambda reader, *_: reader.subscribe("bench/events", qos=1)
    client.on_subscribe = lambda *_: subscribed.set()
    client.on_message = read
    client.connect("127.0.0.1", port, clean_start=False, properties=keep)
    client.loop_start()
    subscribed.wait(_LATE_S)
    while until is None and came.wait(1.0):
        came.clear()
    client.disconnect()
    client.loop_stop()
    return len(seen)


@contextmanager
def kafka_within_its_client(folder: Path) -> Iterator[Held]:
    """The cluster for tests of librdkafka, in this process."""
    from confluent_kafka import Consumer, Producer, TopicPartition  # noqa: PLC0415 - an extra

    host = Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 0})
    [broker] = host.list_topics(timeout=_LATE_S).brokers.values()
    address = f"{broker.host}:{broker.port}"

    def held() -> int:
        """How many it has appended: it keeps only 5 MB of a partition."""
        reader = Consumer({"bootstrap.servers": address, "group.id": "bench"})
        partitions = reader.list_topics("events", timeout=_LATE_S).topics["events"].partitions
        ends = [
            reader.get_watermark_offsets(TopicPartition("events", number), timeout=_LATE_S) for number in partitions
        ]
        reader.close()
        return sum(end for _, end in ends)

    yield {"address": f"kafka://{address}", "topic": "events"}, held
    host.flush(0)
