"""Publishes events to RabbitMQ and other AMQP 0.9.1 brokers, as persistent messages.

    crm: {use: sink_amqp, from: actions, with: {address: "amqps://broker.local/vhost", exchange: camgraph}}

The routing key is `camgraph.GRAPH.CAMERA.ACTION`, for a topic exchange; with `queue` the message goes to this queue,
which the sink declares durable. An event is delivered once the broker has confirmed it. If no queue takes it, that is
no delivery: events wait, and status says which key nobody is bound to. Its id is the `message_id`.
"""

from __future__ import annotations

import ssl
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from camgraph.pipeline.stage import Context
from camgraph.stages.sinks.delivery.bounded_amqp import bounded_connection_class
from camgraph.stages.sinks.delivery.bounded_socket import MOST_ANSWER, Allowance
from camgraph.stages.sinks.delivery.broker import WAIT_S, BrokerSettings, BrokerSink
from camgraph.stages.sinks.delivery.event_view import EventView
from camgraph.stages.sinks.delivery.mqtt.mqtt_topics import level
from camgraph.stages.sinks.delivery.tls import TlsSettings, tls_files

_MOST_SHORT = 255


class SinkAmqpSettings(BrokerSettings):
    """The broker, and where events go there."""

    ports: ClassVar[Mapping[str, int]] = {"amqp": 5672, "amqps": 5671}

    address: str = Field(description="amqp://HOST[:PORT][/VIRTUAL_HOST]; amqps:// with TLS")
    exchange: str | None = Field(None, min_length=1, max_length=255, description="An exchange that is there already")
    queue: str | None = Field(None, min_length=1, max_length=255, description="Instead: a queue, declared durable")

    @model_validator(mode="after")
    def _goes_somewhere(self) -> Self:
        if (self.exchange is None) == (self.queue is None):
            raise ValueError("expected either `exchange` or `queue`")
        return self


class SinkAmqp(BrokerSink[SinkAmqpSettings]):
    """A batch of events -> messages, whose confirmations are awaited together."""

    settings_type = SinkAmqpSettings
    package, extra = "amqp", "amqp"
    _connection: Any = None
    _is_broken = False

    def __init__(self, settings: SinkAmqpSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._allowance = Allowance()

    def connect(self) -> None:
        from amqp import AccessRefused  # noqa: PLC0415 - an extra

        self._allowance.renew(WAIT_S)
        self._is_broken = True  # until it has been opened, a farewell would only take as long again
        try:
            self._connection = bounded_connection_class(self._allowance)(
                str(self.address._replace(path="")).partition("//")[2],
                userid=self.settings.username or "guest",
                password=self.settings.password or "guest",
                virtual_host=self.address.path or "/",
                ssl=self._tls_options(),
                connect_timeout=WAIT_S,
                read_timeout=WAIT_S,
                write_timeout=WAIT_S,
            )
            self._connection.connect()
            self._open_channel()
        except AccessRefused:
            raise self.away("it does not accept this `username` and `password`, or this virtual host") from None
        except self._errors() as error:
            raise self.away(_why(error)) from None
        self._is_broken = False

    def _open_channel(self) -> None:
        self._channel = self._connection.channel()
        self._channel.confirm_select()
        self._channel.events["basic_ack"].add(self._on_ack)
        self._channel.events["basic_nack"].add(self._on_nack)
        self._channel.events["basic_return"].add(self._on_return)
        self._sent = 0
        if self.settings.queue:
            self._channel.queue_declare(self.settings.queue, durable=True, auto_delete=False)

    def send(self, events: Sequence[EventView]) -> None:
        messages = [(view, self._message(view), self._key(view)) for view in events]
        self._begin_batch()
        self._is_broken = True
        sizes = sum(len(view.event.body) for view in events)  # they come back if no queue takes them
        self._allowance.renew(WAIT_S, MOST_ANSWER + 2 * sizes)
        try:
            self._exchange(messages)
        finally:
            returned = [view for view in self._tagged.values() if _short(view.event.own_id) in self._returned]
            for tag, view in self._tagged.items():
                if tag in self._confirmed and view not in returned:
                    self.sent_already(view)
        self._is_broken = False
        if returned:
            key = self._key(returned[0])
            raise self.away(f"no queue takes messages with the key {key}: bind one to the exchange")
        if self._nacked:
            raise self.away("it could not store the messages")

    def _exchange(self, messages: Iterable[tuple[EventView, Any, str]]) -> None:
        """Publish all of these, and wait for what becomes of them. Raises Unavailable."""
        with self.conversing():
            try:
                for view, message, key in messages:
                    self._channel.basic_publish(message, self.settings.exchange or "", key, mandatory=True)
                    self._sent += 1
                    self._tagged[self._sent] = view
                self._wait(self._tagged)
            except self._errors() as error:
                raise self.away(_why(error)) from None

    def _begin_batch(self) -> None:
        """Tags count the messages of a channel from 1; these are those of the batch."""
        self._first = self._sent + 1
        self._tagged: dict[int, EventView] = {}
        self._confirmed: set[int] = set()
        self._nacked: set[int] = set()
        self._returned: set[str] = set()
        """Ids of messages that no queue takes."""

    def _wait(self, tags: Collection[int]) -> None:
        """Until each is confirmed or refused. One that is returned is confirmed after that."""
        while not self._confirmed.union(self._nacked).issuperset(tags):
            self._connection.drain_events(timeout=self._allowance.left_s())

    def disconnect(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            try:
                if not self._is_broken:
                    self._allowance.renew(WAIT_S / 2)
                    connection.close()
            except self._errors():
                pass
            finally:
                connection.collect()

    def _message(self, view: EventView) -> Any:
        from amqp import Message  # noqa: PLC0415

        return Message(
            view.event.body,
            content_type="application/cloudevents+json",
            delivery_mode=2,
            message_id=_short(view.event.own_id),
            type=_short(str(view.body.get("type", ""))),
        )

    def _key(self, view: EventView) -> str:
        if self.settings.queue:
            return self.settings.queue
        names = (view.camera, view.action or view.kind)
        return _short(".".join(["camgraph", self.context.graph, *(level(name).replace(".", "_") for name in names)]))

    def _on_ack(self, tag: int, multiple: bool) -> None:
        self._confirmed.update(self._tags(tag, multiple))

    def _on_nack(self, tag: int, multiple: bool) -> None:
        self._nacked.update(self._tags(tag, multiple))

    def _tags(self, tag: int, multiple: bool) -> Iterable[int]:
        """Of one message of the batch, or of all up to it, as far as they were sent."""
        return range(self._first, min(tag, self._sent) + 1) if multiple else (tag,)

    def _on_return(self, error: Exception, exchange: str, key: str, message: Any) -> None:
        self._returned.add(str(message.properties.get("message_id", "")))

    def _tls_options(self) -> Mapping[str, Any] | bool:
        if not self.tls():  # says it better than the library if a file is wrong
            return False
        files = tls_files(self.settings.tls or TlsSettings.model_validate({}), self.context.base_folder)
        return {
            "ca_certs": files.ca,
            "certfile": files.certificate,
            "keyfile": files.key,
            "cert_reqs": ssl.CERT_REQUIRED,
            "server_hostname": self.server_name,
        }

    @staticmethod
    def _errors() -> tuple[type[Exception], ...]:
        from amqp.exceptions import AMQPError  # noqa: PLC0415

        return (AMQPError, OSError)


def _short(text: str) -> str:
    """As much of it as a `shortstr` of AMQP holds, which counts bytes."""
    return text.encode(errors="backslashreplace")[:_MOST_SHORT].decode(errors="ignore")


def _why(error: Exception) -> Exception | str:
    code = getattr(error, "reply_code", None)
    return {
        404: "there is no such exchange: declare it there, or write `queue`",
        403: "this user may not do that there",
        406: "the queue is there already, and not durable: name another one",
        311: "a message is too large for it",
    }.get(code or 0, error)
