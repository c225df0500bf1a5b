"""Writes events to a topic of Kafka, with the name of the camera as their key.

    lake: {use: sink_kafka, from: actions, with: {address: "kafka://broker.local:9092", topic: camgraph}}

So events of one camera are in one partition, in order. The producer is idempotent, and an event is delivered once all
replicas in sync have it (`acks=all`). Messages follow the CloudEvents binding for Kafka in its structured mode.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from camgraph.stages.sinks.delivery.broker import WAIT_S, BrokerSettings, BrokerSink
from camgraph.stages.sinks.delivery.event_sink import Refused
from camgraph.stages.sinks.delivery.event_view import EventView
from camgraph.stages.sinks.delivery.tls import TlsSettings, tls_files

_MOST_BYTES = 990_000
"""Of a body; `message.max.bytes` of librdkafka and of Kafka is 1 MB, with the key and the headers."""
_MOST_ANSWER = 4_000_000
"""The largest answer that we get is the list of brokers and partitions."""
_TOO_LARGE = "it is larger than Kafka takes (`message.max.bytes`)"


class SinkKafkaSettings(BrokerSettings):
    """The cluster and the topic."""

    ports: ClassVar[Mapping[str, int]] = {"kafka": 9092, "kafkas": 9093}

    address: str = Field(description="kafka://HOST[:PORT] of one broker; kafkas:// with TLS")
    more_brokers: list[str] = Field([], description="HOST:PORT of further brokers, if the first one is away")
    topic: str = Field(pattern=r"^[A-Za-z0-9._-]+$", max_length=249, description="A topic that is there already")
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field(
        "SCRAM-SHA-512", description="How `username` and `password` are shown (SASL)"
    )

    @model_validator(mode="after")
    def _name_is_the_address(self) -> Self:
        if self.tls and self.tls.server_name:
            raise ValueError("with Kafka, brokers are checked by their addresses: leave out `server_name`")
        return self


class SinkKafka(BrokerSink[SinkKafkaSettings]):
    """A batch of events -> messages, whose delivery reports are awaited together."""

    settings_type = SinkKafkaSettings
    package, extra = "confluent_kafka", "kafka"
    _producer: Any = None
    _trouble = ""

    def connect(self) -> None:
        from confluent_kafka import KafkaException, Producer  # noqa: PLC0415 - an extra

        try:
            self._trouble = ""
            self._producer = Producer(self._options())
        except (KafkaException, ValueError):
            raise self.away("the client library does not take these settings") from None

    def send(self, events: Sequence[EventView]) -> None:
        reports: dict[str, Any] = {}
        refused = {view.event.id: _TOO_LARGE for view in events if len(view.event.body) > _MOST_BYTES}
        for view in events:
            if view.event.id not in refused:
                self._produce(view, reports)
        self._producer.flush(WAIT_S)
        for view in events:
            error = reports.get(view.event.id, "none")
            if error is None:
                self.sent_already(view)
            elif error != "none" and error.name() == "MSG_SIZE_TOO_LARGE":
                refused[view.event.id] = _TOO_LARGE
            elif view.event.id not in refused:
                raise self.away(self._why(error))
        if refused:
            raise Refused(refused)

    def _produce(self, view: EventView, reports: dict[str, Any]) -> None:
        from confluent_kafka import KafkaException  # noqa: PLC0415

        def report(error: Any, _: Any) -> None:
            reports[view.event.id] = error

        try:
            self._producer.produce(
                self.settings.topic,
                view.event.body,
                key=view.camera.encode(),
                headers={"content-type": "application/cloudevents+json; charset=UTF-8", "id": view.event.own_id},
                on_delivery=report,
            )
        except KafkaException as error:
            reports[view.event.id] = error.args[0]
        except BufferError:
            raise self.away("too many messages wait for it") from None

    def disconnect(self) -> None:
        if self._producer is not None:
            producer, self._producer = self._producer, None
            producer.purge()
            producer.flush(0)

    def _options(self) -> dict[str, Any]:
        first = str(self.address._replace(path="")).partition("//")[2]
        secure, login = self.tls() is not None, self.settings.username is not None
        options = {
            "bootstrap.servers": ",".join([first, *self.settings.more_brokers]),
            "security.protocol": ("sasl_" if login else "") + ("ssl" if secure else "plaintext"),
            "enable.idempotence": True,
            "message.timeout.ms": round(WAIT_S * 10_000),
            "socket.timeout.ms": round(WAIT_S * 1000),
            # A dead address leaves half of a call to the host's next one. The library would wait for 30 s, and look the
            # host up again, which begins with any of its addresses.
            "socket.connection.setup.timeout.ms": max(1000, round(WAIT_S * 500)),  # which takes no less than 1000
            "broker.address.ttl": 60_000,
            "linger.ms": 1,
            "receive.message.max.bytes": _MOST_ANSWER,
            "error_cb": self._on_error,
            "log_level": 0,
            **_tls_options(self.settings.tls if secure else None, self.context.base_folder),
        }
        if login:
            options |= {
                "sasl.mechanism": self.settings.mechanism,
                "sasl.username": self.settings.username,
                "sasl.password": self.settings.password or "",
            }
        return options

    def _on_error(self, error: Any) -> None:
        self._trouble = _WHY.get(error.name(), self._trouble)

    def _why(self, error: Any) -> str:
        name = "" if error == "none" else error.name()
        return _WHY.get(name) or self._trouble or (f"it answers {name}" if name else "it does not answer")


_WHY = {
    "_ALL_BROKERS_DOWN": "no broker answers",
    "_TRANSPORT": "no broker answers",
    "_RESOLVE": "this host is not found",
    "_AUTHENTICATION": "it does not accept this `username` and `password`",
    "_SSL": "no TLS connection: is its certificate trusted, and for this address?",
    "_UNKNOWN_TOPIC": "there is no such topic: create it there",
    "UNKNOWN_TOPIC_OR_PART": "there is no such topic: create it there",
    "TOPIC_AUTHORIZATION_FAILED": "this user may not write the topic",
    "NOT_ENOUGH_REPLICAS": "too few replicas are in sync",
}


def _tls_options(tls: TlsSettings | None, base_folder: Path) -> Mapping[str, str]:
    if tls is None:
        return {}
    files: Iterable[tuple[str, str | None]] = zip(
        ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location"), tls_files(tls, base_folder), strict=True
    )
    found = {name: path for name, path in files if path}
    if "ssl.certificate.location" in found:
        found.setdefault("ssl.key.location", found["ssl.certificate.location"])
    return found
