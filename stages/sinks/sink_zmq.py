"""Publishes events with ZeroMQ: any number of programs subscribe to cameras and actions.

    feed: {use: sink_zmq, from: actions, with: {address: "tcp://127.0.0.1:7002"}}                    listens
    bus:  {use: sink_zmq, from: actions, with: {address: "tcp://bus.local:5559", connect: true}}     connects

Each message has two parts: the topic `CAMERA/ACTION`, and the event as JSON or msgpack. Subscribe to `room-3/` for all
of a camera, to `room-3/fall` for one action, to an empty topic for everything.

ZeroMQ's PUB confirms nothing. Events count as delivered once they are handed to ZeroMQ: a reader gets those that come
while it is connected, and one that is more than `most_waiting` events behind loses some without a word. Events that
nobody has subscribed to are counted as `unsent.no_reader`. If every event has to arrive, take another sink.

With `connect: true` the other side listens: the XSUB of a proxy, as buses have it, or a single SUB. Events wait while
it is away; those that were on their way when it went are lost.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Annotated, ClassVar, Self
from urllib.parse import urlsplit

import zmq
import zmq.auth
from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from zmq.auth.thread import ThreadAuthenticator
from zmq.utils.monitor import recv_monitor_message

from camgraph.pipeline.errors import Unavailable
from camgraph.pipeline.stage import Context, Counts
from camgraph.pipeline.system.happy_eyeballs import Place, connect_first, places_of
from camgraph.stages.sinks.delivery.event_formats import Format, packed
from camgraph.stages.sinks.delivery.event_sink import DeliverySettings, EventSink, Refused
from camgraph.stages.sinks.delivery.event_view import EventView
from camgraph.stages.sinks.sockets.address import Address, parse_address

_WAIT_S = 3.0
"""How long one call waits for the other side to answer."""
_SUBSCRIBES_WITHIN_S = 0.5
"""A proxy tells what its readers want right behind the handshake; without readers it tells nothing."""
_LINGER_MS = 1000
"""How long the last events may take to leave at the end of a run."""
_MOST_TOPIC = 2000
"""Bytes of a message that others send: all that they have to say is a topic. ZeroMQ dies of one with a million."""
_MOST_TOPICS = 10_000
_ANY_NETWORK = ("0.0.0.0", "::")  # noqa: S104 - to refuse them
_KEY_LETTERS = 40


def _is_place(address: str) -> str:
    scheme, _, rest = address.partition("://")
    if scheme == "ipc" and rest.startswith("/"):
        return address
    if scheme != "tcp":
        raise ValueError("expected tcp://HOST:PORT or ipc:///PATH")
    return str(parse_address(address))


def _is_key(key: str) -> str:
    try:
        zmq.curve_public(key.encode())  # any 32 bytes are a key
    except (ValueError, zmq.ZMQError):
        raise ValueError(f"expected a key of {_KEY_LETTERS} letters (Z85), as `zmq.curve_keypair()` makes it") from None
    return key


def _as_list(value: object) -> object:
    return value if isinstance(value, list) else [value]


Key = Annotated[str, AfterValidator(_is_key)]


class SinkZmqSettings(DeliverySettings):
    """The address that readers connect to, and who may; or that of a proxy."""

    address: Annotated[str, AfterValidator(_is_place)] = Field(description="tcp://HOST:PORT or ipc:///PATH")
    connect: bool = Field(
        False, description="Connect to a proxy (its XSUB) or a SUB that listens there, instead of waiting for readers"
    )
    format: Format = Field("json", description="How the event is written: json or msgpack")
    most_waiting: int = Field(
        1000, ge=1, le=1_000_000, description="A reader that is further behind, in events, loses some"
    )
    curve_secret_key: Key | None = Field(
        None, description="Encrypt with CURVE; our secret key. Write `${secret:NAME}`. Readers need its public key"
    )
    curve_server_key: Key | None = Field(
        None, description="With `connect`: encrypt with CURVE; the public key of the other side"
    )
    curve_readers: Annotated[list[Key], BeforeValidator(_as_list)] | None = Field(
        None, description="The public keys of those who may read; by default everybody who has our public key"
    )

    @model_validator(mode="after")
    def _keys_go_together(self) -> Self:
        if self.connect:
            return self._goes_to_a_broker()
        if self.curve_server_key:
            raise ValueError("`curve_server_key` is that of a proxy: write `connect: true`, or leave it out")
        if self.curve_readers and not self.curve_secret_key:
            raise ValueError("`curve_secret_key` is missing: without it nothing is encrypted")
        return self

    def _goes_to_a_broker(self) -> Self:
        if self.curve_readers:
            raise ValueError("with `connect: true`, the other side says who may read: leave out `curve_readers`")
        if self.curve_secret_key and not self.curve_server_key:
            raise ValueError("`curve_server_key` is missing: without it nothing is encrypted")
        if urlsplit(self.address).hostname in _ANY_NETWORK:
            raise ValueError(f"nobody can connect to {self.address}: name the host of the proxy")
        return self

    @property
    def is_local(self) -> bool:
        """Whether nobody on another machine can reach the address."""
        return self.address.startswith("ipc:") or parse_address(self.address).is_local


class SinkZmq(EventSink[SinkZmqSettings]):
    """An event -> a message on a PUB socket (XPUB, which also tells who has subscribed)."""

    settings_type = SinkZmqSettings
    counts: ClassVar[Counts] = {
        **EventSink.counts,
        "unsent.no_reader": "Events to which nobody had subscribed at a `sink_zmq`.",
    }

    def __init__(self, settings: SinkZmqSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._zmq: zmq.Context[zmq.Socket[bytes]] | None = None
        self._socket: zmq.Socket[bytes] | None = None
        self._doorman: ThreadAuthenticator | None = None
        self._line: _Line | None = None
        """With `connect`."""
        self._topics: set[bytes] = set()

    def open(self) -> None:
        """Listen from the start: a reader that is there before the first event gets it."""
        super().open()
        if not self.settings.connect and not self.settings.is_local:
            self.context.log.warning("listening_beyond_this_machine", address=self.settings.address)
        try:
            self._begin()
        except Unavailable as error:
            self.disconnect()
            self.context.log.warning("not_listening_yet", address=self.settings.address, why=str(error))

    def connect(self) -> None:
        self._begin()
        if self._line is not None:
            self._line.wait(_WAIT_S)
            self._wait_for_subscriptions()

    def _begin(self) -> None:
        """Listen, or connect in the background. Raises Unavailable."""
        if self._socket is not None:
            return
        self._zmq = zmq.Context()
        self._topics.clear()
        try:
            self._socket = self._opened(self._zmq)
        except (zmq.ZMQError, OSError) as error:
            raise Unavailable(f"{self.settings.address}: {error.strerror or error}") from None

    def _opened(self, context: zmq.Context[zmq.Socket[bytes]]) -> zmq.Socket[bytes]:
        settings = self.settings
        stream = context.socket(zmq.XPUB)
        self._socket = stream  # for `disconnect`, whatever happens
        stream.set(zmq.SNDHWM, settings.most_waiting)
        stream.set(zmq.LINGER, _LINGER_MS)
        stream.set(zmq.MAXMSGSIZE, _MOST_TOPIC)
        if settings.curve_secret_key:
            _show_key(stream, settings.curve_secret_key.encode())
        if settings.connect:
            self._line = _Line(stream, settings)
        else:
            self._guard(context, stream)
            _attach(stream, settings.address, stream.bind, lambda places: places[0])
        return stream

    def _guard(self, context: zmq.Context[zmq.Socket[bytes]], stream: zmq.Socket[bytes]) -> None:
        settings = self.settings
        if settings.curve_secret_key:
            stream.set(zmq.CURVE_SERVER, 1)
        if settings.curve_readers:
            self._doorman = ThreadAuthenticator(context)
            self._doorman.start()
            self._doorman.configure_curve_callback(credentials_provider=_Readers(settings.curve_readers))

    def _wait_for_subscriptions(self) -> None:
        assert self._socket is not None
        until_s = time.monotonic() + _SUBSCRIBES_WITHIN_S
        while not self._topics and (left_s := until_s - time.monotonic()) > 0:
            self._socket.poll(int(1000 * left_s) + 1)
            self._note_subscriptions(self._socket)

    def disconnect(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._doorman is not None:
            self._doorman.stop()
            self._doorman = None
        if self._zmq is not None:
            # `term` would wait for ever for a socket that is still open, as after a name that is not known.
            self._zmq.destroy(_LINGER_MS)
            self._zmq = None

    def send(self, events: Sequence[EventView]) -> None:
        assert self._socket is not None
        for view in events:
            if self._line is not None:
                self._line.check()
            topic = f"{view.camera}/{view.action}".encode()
            self._socket.send_multipart([topic, self._body(view)])
            self._note_subscriptions(self._socket)  # behind it: ZeroMQ looks for new ones while it sends
            if self._is_read(topic):
                self.sent_already(view)
            else:
                self._finished(view, "unsent.no_reader")

    def _body(self, view: EventView) -> bytes:
        if self.settings.format == "json":
            return view.event.body
        try:
            return packed(view.event.body)
        except ValueError as error:
            raise Refused({view.event.id: str(error)}) from None

    def _note_subscriptions(self, stream: zmq.Socket[bytes]) -> None:
        while stream.poll(0):
            message = stream.recv()
            if message[:1] == b"\x01" and len(self._topics) < _MOST_TOPICS:
                self._topics.add(message[1:])
            elif message[:1] == b"\x00":
                self._topics.discard(message[1:])

    def _is_read(self, topic: bytes) -> bool:
        return len(self._topics) >= _MOST_TOPICS or any(topic.startswith(one) for one in self._topics)


class _Line:
    """The connection to a proxy. ZeroMQ makes it, and tells on another socket how it stands."""

    def __init__(self, stream: zmq.Socket[bytes], settings: SinkZmqSettings) -> None:
        self._stream, self._address = stream, settings.address
        self._is_up = self._is_refused = False
        self._why = "nobody answers there"
        self._news = stream.get_monitor_socket(_UP | zmq.EVENT_DISCONNECTED | _REFUSED)
        stream.set(zmq.IMMEDIATE, 1)  # nothing is kept in memory for somebody who is away: it would be counted as sent
        if settings.curve_server_key:
            if not settings.curve_secret_key:
                _show_key(stream, zmq.curve_keypair()[1])
            stream.set(zmq.CURVE_SERVERKEY, settings.curve_server_key.encode())
        _attach(stream, settings.address, stream.connect, _that_answers)

    def wait(self, within_s: float) -> None:
        """Until it stands. Raises Unavailable if it does not."""
        until_s = time.monotonic() + within_s
        while not self._is_up and not self._is_refused and (left_s := until_s - time.monotonic()) > 0:
            self._news.poll(int(1000 * left_s) + 1)
            self._read()
        self.check()

    def check(self) -> None:
        """Raises Unavailable if it does not stand."""
        self._read()
        if not self._is_up:
            raise Unavailable(f"{self._address}: {self._why}")

    def _read(self) -> None:
        while self._news.poll(0):
            event = recv_monitor_message(self._news)["event"]
            if event & _REFUSED:
                self._is_refused = True
                self._why = "it refuses the connection: do both sides use CURVE or neither, and is the key its own?"
            elif self._is_up and event == zmq.EVENT_DISCONNECTED:
                self._why = "the connection is lost"
            self._is_up = event == _UP

    def close(self) -> None:
        self._stream.disable_monitor()
        self._news.close(0)


def _attach(
    stream: zmq.Socket[bytes], address: str, go: Callable[[str], object], choose: Callable[[list[Place]], Place]
) -> None:
    """Bind or connect. By itself ZeroMQ knows no IPv6, binds to no name, and tries one address of a host alone.

    Raises OSError.
    """
    if address.startswith("ipc:"):
        go(address)
        return
    host, port = parse_address(address)[1:3]
    place = choose(places_of(host, port))
    number, _ = socket.getnameinfo(place.where, socket.NI_NUMERICHOST | socket.NI_NUMERICSERV)  # with any %interface
    if place.family == socket.AF_INET6:
        stream.set(zmq.IPV6, 1)
    go(str(Address("tcp", number, port)))


def _that_answers(places: list[Place]) -> Place:
    """The place of the host that takes a connection; the first one if none does now. ZeroMQ itself goes on trying."""
    if len(places) == 1:
        return places[0]
    with suppress(OSError), connect_first(places, time.monotonic() + _WAIT_S) as probe:
        return Place(int(probe.family), probe.getpeername())
    return places[0]


_UP = zmq.EVENT_HANDSHAKE_SUCCEEDED
_REFUSED = zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL


def _show_key(stream: zmq.Socket[bytes], secret_key: bytes) -> None:
    stream.set(zmq.CURVE_SECRETKEY, secret_key)
    stream.set(zmq.CURVE_PUBLICKEY, zmq.curve_public(secret_key))


class _Readers:
    """Asked by ZeroMQ for each one that connects."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = {key.encode() for key in keys}

    def callback(self, domain: str, key: bytes) -> bool:
        """`key`: in Z85."""
        return key in self._keys
