"""Publishes events to RabbitMQ and other AMQP 0.9.1 brokers, as persistent messages.

    crm: {use: sink_amqp, from: actions, with: {address: "amqps://broker.local/vhost", exchange: camgraph}}

The routing key is `camgraph.GRAPH.CAMERA.ACTION`, for a topic exchange; with `queue` the message goes to this queue,
which the sink declares durable. An event is delivered once the broker has confirmed it. If no queue takes it, that is
no delivery: events wait, and status says which key nobody is bound to. Its id is the `message_id`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from camgraph.stages.sinks.delivery.bounded_line import HERE, MOST_ANSWER
from camgraph.stages.sinks.delivery.broker import WAIT_S, BrokerSettings, BrokerSink
from camgraph.stages.sinks.delivery.event_view import EventView
from camgraph.stages.sinks.delivery.mqtt.mqtt_topics import level

_MOST_SHORT = 255
_LEAST_FRAME, _MOST_FRAME = 4096, 1 << 20
"""Bytes; the least is that of AMQP."""


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

    def connect(self) -> None:
        from amqp import AccessRefused, Connection  # noqa: PLC0415 - an extra

        until_s = time.monotonic() + WAIT_S
        self._connection = Connection(
            f"{HERE}:{self.dial(until_s)}",
            userid=self.settings.username or "guest",
            password=self.settings.password or "guest",
            virtual_host=self.address.path or "/",
            frame_writer=_frame_writer,
        )
        with self.call(until_s):
            try:
                self._connection.connect()
                self._open_channel()
            except AccessRefused:
                raise self.away("it does not accept this `username` and `password`, or this virtual host") from None
            except self._errors() as error:
                raise self.away(_why(error)) from None

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
        try:
            sizes = sum(len(view.event.body) for view in events)  # they come back if no queue takes them
            with self.call(time.monotonic() + WAIT_S, MOST_ANSWER + 2 * sizes):
                self._exchange(messages)
        finally:
            returned = [view for view in self._tagged.values() if _short(view.event.own_id) in self._returned]
            for tag, view in self._tagged.items():
                if tag in self._confirmed and view not in returned:
                    self.sent_already(view)
        if returned:
            key = self._key(returned[0])
            raise self.away(f"no queue takes messages with the key {key}: bind one to the exchange")
        if self._nacked:
            raise self.away("it could not store the messages")

    def _exchange(self, messages: Iterable[tuple[EventView, Any, str]]) -> None:
        """Publish all of these, and wait for what becomes of them. Raises Unavailable."""
        try:
            for view, message, key in messages:
                self._channel.basic_publish(message, self.settings.exchange or "", key, mandatory=True)
                self._sent += 1
                self._tagged[self._sent] = view
            while not self._confirmed.union(self._nacked).issuperset(
                self._tagged
            ):  # also what is returned is confirmed
                self._connection.drain_events()
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

    def disconnect(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            try:
                with self.call(time.monotonic() + WAIT_S / 2), suppress(*self._errors()):
                    connection.close()
            finally:
                connection.collect()
                super().disconnect()

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

    @staticmethod
    def _errors() -> tuple[type[Exception], ...]:
        from amqp.exceptions import AMQPError  # noqa: PLC0415

        return (AMQPError, OSError)


def _short(text: str) -> str:
    """As much of it as a `shortstr` of AMQP holds, which counts bytes."""
    return text.encode(errors="backslashreplace")[:_MOST_SHORT].decode(errors="ignore")


def _frame_writer(connection: Any, transport: Any) -> Callable[..., None]:
    """As of the library, which would make its frames as large or as small as the broker says, and a buffer for one."""
    from amqp.method_framing import frame_writer  # noqa: PLC0415 - an extra

    write = frame_writer(connection, transport)

    def write_bounded(*frame: Any) -> None:
        if connection.frame_max < _LEAST_FRAME:
            raise ValueError(f"frames of {connection.frame_max} bytes")
        connection.frame_max = min(connection.frame_max, _MOST_FRAME)
        write(*frame)

    return write_bounded


def _why(error: Exception) -> Exception | str:
    code = getattr(error, "reply_code", None)
    return {
        404: "there is no such exchange: declare it there, or write `queue`",
        403: "this user may not do that there",
        406: "the queue is there already, and not durable: name another one",
        311: "a message is too large for it",
    }.get(code or 0, error)
