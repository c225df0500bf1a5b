"""Against the cluster that librdkafka has within itself for tests: it speaks Kafka's protocol on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from camgraph_test_stages.brokers import assert_all_in_order, delivering, hand_in, incident, stream
from camgraph_test_stages.waiting import until
from cloudevents.core.bindings.kafka import KafkaMessage, from_structured_event
from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, Producer, TopicPartition

from camgraph.stages.sinks.sink_kafka import SinkKafka, SinkKafkaSettings


@contextmanager
def cluster() -> Iterator[str]:
    """The addresses of its three brokers."""
    host = Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 3, "log_level": 0})
    until(lambda: len(host.list_topics(timeout=60).brokers) == 3)
    yield ",".join(f"{one.host}:{one.port}" for one in host.list_topics(timeout=60).brokers.values())
    host.flush(0)


@contextmanager
def sink_to(brokers: str, folder: Path, **more: Any) -> Iterator[SinkKafka]:
    first, *others = brokers.split(",")
    settings = {"address": f"kafka://{first}", "more_brokers": others, "topic": "camgraph", **more}
    with delivering(SinkKafka, settings, folder) as sink:
        yield sink


def messages(brokers: str, count: int) -> list[Message]:
    reader = Consumer({"bootstrap.servers": brokers, "group.id": "test", "auto.offset.reset": "earliest"})
    partitions = reader.list_topics("camgraph", timeout=60).topics["camgraph"].partitions
    reader.assign([TopicPartition("camgraph", number, OFFSET_BEGINNING) for number in partitions])
    found: list[Message] = []
    try:
        until(lambda: (found.extend(m for m in reader.consume(500, 0.2) if not m.error()), len(found) >= count)[1])
    finally:
        reader.close()
    return found


def test_all_events_arrive_in_order_by_camera(tmp_path) -> None:
    events = stream(500)
    with cluster() as brokers, sink_to(brokers, tmp_path) as sink:
        hand_in(sink, events, batch=50)
        found = messages(brokers, len(events))
        assert_all_in_order(events, [message.value() for message in found])
        assert {message.key() for message in found} == {b"a", b"b"}
        assert all(len({m.partition() for m in found if m.key() == key}) == 1 for key in (b"a", b"b"))


def test_a_message_is_a_cloud_event(tmp_path) -> None:
    event = incident(1, "a")
    with cluster() as brokers, sink_to(brokers, tmp_path) as sink:
        hand_in(sink, [event])
        [message] = messages(brokers, 1)
    headers = dict(message.headers())
    assert headers["id"] == event.id.encode()
    read = from_structured_event(KafkaMessage(headers, message.key(), message.value()))
    assert read.get_id() == event.id
    assert read.get_data()["action"] == "fall"


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="leave out `server_name`"):
        SinkKafkaSettings.model_validate({"address": "kafkas://a", "topic": "a", "tls": {"server_name": "b"}})
