"""A connection to an MQTT 5 broker that is kept by a thread of its own, also while nothing is sent.

    waiting --connected--> up: availability and all retained topics are published --gone--> waiting, 0.5 to 15 s --> ...

Every connection is a new client with a clean session. So nothing lingers in a library's queue: a publication that was
not acknowledged is the sender's to repeat. Retained topics are kept here, and a broker that has lost its memory gets
them again.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from camgraph.pipeline.errors import Unavailable
from camgraph.stages.sinks.delivery.attempts import Attempts
from camgraph.stages.sinks.delivery.bounded_line import HERE, BoundedLine, why_away
from camgraph.stages.sinks.delivery.broker import WAIT_S, BrokerAddress

if TYPE_CHECKING:
    from paho.mqtt.client import Client, MQTTMessageInfo

_PAUSES_S = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
_KEEPALIVE_S = 10
_MOST_IN_FLIGHT = 20
"""Unacknowledged at once; mosquitto, as it is delivered, takes no more."""
_LARGE_BYTES = 32_000
"""Retained payloads above that, such as pictures, are published one at a time, behind events."""
_LARGE_S = 120.0
"""For one of them, on a slow line."""
_HEAD_BYTES = 2000
"""More than a packet has beside its topic and payload."""
_LEAST_PACKET = 2 * _HEAD_BYTES
_LOOK_S = 0.2
_MOST_DELETIONS = 100_000
"""Of retained topics in one connection: each is kept in memory until the broker has acknowledged it."""
_FIRST_FAILURE = 0x80
_WHY_NOT = {
    0x84: "it does not speak MQTT 5: mosquitto does from version 1.6",
    0x85: "it refuses our client id",
    0x86: "it does not accept this `username` and `password`",
    0x87: "it does not permit this: check `username`, `password` and the access list of the broker",
    0x8A: "it has banned us",
    0x8C: "it wants another way to say who we are",
    0x8E: "another client has connected with our client id: set another `client_id`",
    0x95: "a packet was too large for it",
    0x97: "its quota is used up",
    0x9A: "it keeps no retained messages",
}
"""Reason codes of MQTT 5."""
MOST_PACKET = 5 << 20
"""Bytes; the largest that we get are pictures that we have published, of 4 MB.

The broker may say so much from one message that the library has understood to the next. By itself the library reads
packets of 256 MB, and keeps any number of messages whose delivery the broker does not complete.
"""
_GOODBYE_S = 1.0


class Publication(NamedTuple):
    """One message. `properties`: those of MQTT 5 by their names."""

    topic: str
    payload: bytes
    retain: bool = False
    properties: Mapping[str, Any] = {}


class Refusal(NamedTuple):
    """Why the broker has not taken a publication. Not for good if a person can mend it there."""

    why: str
    for_good: bool


@dataclass(frozen=True)
class LinkOptions:
    """Whom to connect to, and as whom. `tls` reads the files anew for each connection."""

    address: BrokerAddress
    client_id: str
    username: str | None
    password: str | None
    tls: Callable[[], ssl.SSLContext | None]
    server_name: str
    availability: str
    """The topic that says online or offline, if there is one."""
    stale: Mapping[str, Callable[[str], bool]]
    """Filter of topics -> whether one that the broker has retained is left over, so that it is deleted."""
    not_understood: Callable[[Exception], Unavailable]
    """The error for one of the library, of which nobody knows what it means."""
    too_large: Callable[[str, int, int], object] = lambda topic, size, most: None
    """Called for a topic whose retained payload is larger than the broker takes, once."""


@dataclass
class _Fate:
    """What became of one connection."""

    up: threading.Event = field(default_factory=threading.Event)
    gone: threading.Event = field(default_factory=threading.Event)
    acked: threading.Event = field(default_factory=threading.Event)
    refused: dict[int, int] = field(default_factory=dict)
    """Message id -> reason code."""
    why: str = ""
    most_bytes: int = 1 << 28
    pending: dict[tuple[str, bytes], MQTTMessageInfo] = field(default_factory=dict)
    """(topic, payload) of events that were published, and not acknowledged in the time of a call."""
    slow_until_s: float = 0.0
    """While a large payload is on its way, and a little longer, what comes behind it may take its time."""
    deletions: int = 0

    def takes(self, topic: str, payload: bytes) -> bool:
        """False if the broker would close the connection because of this one, each time."""
        return len(payload) + len(topic.encode()) + _HEAD_BYTES <= self.most_bytes

    def end(self, why: str) -> None:
        self.why = self.why or why
        self.gone.set()
        self.up.set()
        self.acked.set()


class MqttLink:
    """See the module. All methods may be called from any thread."""

    def __init__(self, options: LinkOptions, report: Callable[[str], None]) -> None:
        """`report` is called with the reason when the broker is away, and with "" once it is back."""
        self._options, self._report = options, report
        self._retained: dict[str, bytes] = {}
        self._large: dict[str, bytes] = {}
        """Topic -> the payload that is still to be retained there."""
        self._has_large = threading.Event()
        self._too_large: set[str] = set()
        """Topics whose payload was once too large: that is reported once."""
        self._lock = threading.Lock()
        """Held while retained topics are changed and published, so that the last one is the last there too."""
        self._now: tuple[Client, _Fate] | None = None
        self._is_up = threading.Event()
        self._stopping, self._hurry = threading.Event(), threading.Event()
        self._in_flight = _MOST_IN_FLIGHT
        self._why = "not connected yet"
        self._thread = threading.Thread(target=self._stay_connected, name="mqtt", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Say that we are offline, and go."""
        self._stopping.set()
        self._hurry.set()
        with self._lock:  # a connection that has just said that we are online is known behind it
            now = self._now
        if now:
            client, fate = now
            if self._options.availability:
                last = client.publish(self._options.availability, b"offline", qos=1, retain=True)
                _wait([last], fate, time.monotonic() + WAIT_S / 2)
            fate.end("")
        if self._thread.is_alive():
            self._thread.join(WAIT_S)

    def wait(self) -> None:
        """Wait for the connection. Raises Unavailable if it is not there soon."""
        self._hurry.set()
        if not self._is_up.wait(WAIT_S / 2):
            raise Unavailable(self._why)

    def show(self, topic: str, payload: bytes) -> None:
        """Retain this, now and in all connections to come; b"" deletes it."""
        with self._lock:
            if self._retained.get(topic, b"") == payload:
                return
            if payload:
                self._retained[topic] = payload
            else:
                del self._retained[topic]
            if self._now:
                self._retain(*self._now, topic, payload)

    def keep(self, topic: str, payload: bytes) -> None:
        """This was published: retain it in connections to come."""
        with self._lock:
            self._retained[topic] = payload

    @property
    def shown(self) -> Mapping[str, bytes]:
        with self._lock:
            return dict(self._retained)

    def deliver(self, publications: Sequence[Publication]) -> list[Refusal | None]:
        """Publish all, and wait for their acknowledgements: None for each that has one.

        The answer is shorter if not all were acknowledged; then call `wait` before the next try. Raises Unavailable if
        there is no connection.
        """
        now = self._now
        if not now:
            raise Unavailable(self._why)
        client, fate = now
        before, fate.pending = fate.pending, {}
        sent = [before.get((one.topic, one.payload)) or self._publish(client, fate, one) for one in publications]
        _wait([one for one in sent if one], fate, time.monotonic() + WAIT_S)
        if not fate.gone.is_set() and any(one and not _is_acked(one) for one in sent):
            if time.monotonic() < fate.slow_until_s:
                fate.pending = {(one.topic, one.payload): i for one, i in zip(publications, sent, strict=True) if i}
                raise Unavailable(f"{self._options.address}: a picture is on its way to it", patient=True)
            fate.end(f"{self._options.address}: the broker does not confirm what it got")
        results: list[Refusal | None] = []
        for one in sent:
            if one and not _is_acked(one):
                break
            results.append(_refusal(fate, one))
        return results

    @property
    def why(self) -> str:
        return self._why

    def _publish(self, client: Client, fate: _Fate, one: Publication) -> MQTTMessageInfo | None:
        """None if it is too large: the broker would close the connection, each time."""
        if not fate.takes(one.topic, one.payload):
            return None
        return client.publish(one.topic, one.payload, qos=1, retain=one.retain, properties=_properties(one.properties))

    def _retain(self, client: Client, fate: _Fate, topic: str, payload: bytes) -> None:
        """What is too large for the broker is deleted there: nothing is better than what is no longer true."""
        fits = fate.takes(topic, payload)
        if not fits and topic not in self._too_large:
            self._too_large.add(topic)
            self._options.too_large(topic, len(payload), fate.most_bytes)
        self._large.pop(topic, None)
        if fits and len(payload) > _LARGE_BYTES:
            self._large[topic] = payload
            self._has_large.set()
        else:
            client.publish(topic, payload if fits else b"", qos=1, retain=True)

    # ---- the thread

    def _stay_connected(self) -> None:
        attempts = Attempts(_PAUSES_S)
        while not self._stopping.is_set():
            self._hurry.clear()
            fate = _Fate()
            was_up = self._one_connection(fate)
            if self._stopping.is_set():
                return
            if was_up:
                attempts.succeeded()
            self._why = fate.why or self._why
            self._report(self._why)
            attempts.failed(time.monotonic(), self._why)
            self._stopping.wait(_PAUSES_S[0])
            self._hurry.wait(attempts.next_s - time.monotonic())

    def _one_connection(self, fate: _Fate) -> bool:
        """Connect, and return once it is over; whether it was up."""
        try:
            with closing(self._line()) as line:
                return self._converse(line, fate)
        except Exception as error:  # noqa: BLE001 - the thread must go on, whatever a broker answers
            fate.end(self._why_failed(error))
            return False

    def _line(self) -> BoundedLine:
        address, tls, until_s = self._options.address, self._options.tls(), time.monotonic() + WAIT_S
        return BoundedLine(address.host, address.port, until_s, tls=tls, server_name=self._options.server_name)

    def _converse(self, line: BoundedLine, fate: _Fate) -> bool:
        """Until the connection is over; whether it was up."""
        client = self._client(fate, line)
        with line.call(time.monotonic() + WAIT_S, MOST_PACKET):
            most = _properties({"MaximumPacketSize": MOST_PACKET}, "CONNECT")
            client.connect(HERE, line.port, keepalive=_KEEPALIVE_S, clean_start=True, properties=most)
            network = threading.Thread(target=self._read_and_write, args=(client, fate), name="mqtt-net", daemon=True)
            network.start()
            if not fate.up.wait(WAIT_S):
                fate.end(f"{self._options.address}: it does not answer as an MQTT broker")
        try:
            if fate.gone.is_set() or self._stopping.is_set():
                return False
            self._begin(client, fate)
            self._report("")
            self._publish_large(client, fate)
            return True
        finally:
            self._is_up.clear()
            with self._lock:
                self._now = None
            client.disconnect()
            network.join(_GOODBYE_S)
            line.close()
            network.join()

    def _read_and_write(self, client: Client, fate: _Fate) -> None:
        """A thread of the library would die of an answer that it cannot read, and nobody would notice."""
        try:
            while client.loop() == 0:
                pass
            fate.end(self._why_gone(None))
        except Exception as error:  # noqa: BLE001 - whatever an answer makes the library do
            fate.end(self._why_failed(error))
        finally:
            if left := client.socket():
                left.close()

    def _begin(self, client: Client, fate: _Fate) -> None:
        """Publish all that is retained, then take messages."""
        for topic_filter in self._options.stale:
            client.subscribe(topic_filter, qos=1)
        with self._lock:
            if self._stopping.is_set():
                fate.end("")
                return
            if self._options.availability:
                client.publish(self._options.availability, b"online", qos=1, retain=True)
            for topic, payload in self._retained.items():
                self._retain(client, fate, topic, payload)
            self._now = (client, fate)
        self._is_up.set()

    def _publish_large(self, client: Client, fate: _Fate) -> None:
        """One after the other as they come, until the connection is over."""
        while not fate.gone.is_set():
            with self._lock:
                self._has_large.clear()
                topic = next(iter(self._large), None)
                if topic:
                    fate.slow_until_s = time.monotonic() + _LARGE_S
                    sent = client.publish(topic, self._large.pop(topic), qos=1, retain=True)
            if not topic:
                self._has_large.wait(_LOOK_S)
                continue
            _wait([sent], fate, fate.slow_until_s)
            if not _is_acked(sent):
                fate.end(f"{self._options.address}: the broker does not confirm a picture")
            fate.slow_until_s = time.monotonic() + WAIT_S

    def _client(self, fate: _Fate, line: BoundedLine) -> Client:
        from paho.mqtt.client import Client, MQTTv5  # noqa: PLC0415 - an extra
        from paho.mqtt.enums import CallbackAPIVersion  # noqa: PLC0415

        options = self._options
        client = Client(CallbackAPIVersion.VERSION2, options.client_id, protocol=MQTTv5, reconnect_on_failure=False)
        if options.availability:
            client.will_set(options.availability, b"offline", qos=1, retain=True)
        client.username_pw_set(options.username, options.password)
        client.max_inflight_messages_set(self._in_flight)
        client.on_socket_open = lambda _, __, opened: opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.on_socket_register_write = lambda *_: None  # so that only our thread writes
        client.on_connect = lambda _, __, ___, code, properties: self._on_connect(fate, line, code, properties)
        client.on_disconnect = lambda _, __, ___, code, ____: fate.end(
            self._why_failed(line.why_cut) if line.why_cut else self._why_gone(code)
        )
        client.on_publish = lambda _, __, mid, code, ___: _on_publish(fate, line, mid, code)
        client.on_message = lambda client, _, message: self._on_message(client, fate, line, message)
        return client

    def _on_connect(self, fate: _Fate, line: BoundedLine, code: Any, properties: Any) -> None:
        line.allow(MOST_PACKET)
        if code.is_failure:
            fate.end(self._why_gone(code))
            return
        fate.most_bytes = getattr(properties, "MaximumPacketSize", fate.most_bytes)
        if fate.most_bytes < _LEAST_PACKET:  # events are not to be given up for a mistake there
            fate.end(f"{self._options.address}: it takes no messages of any use: at most {fate.most_bytes} bytes")
        in_flight = getattr(properties, "ReceiveMaximum", self._in_flight)
        if in_flight < self._in_flight:  # the library has to know before it connects
            self._in_flight = in_flight
            fate.end(f"{self._options.address}: connecting anew, for a broker that takes {in_flight} messages at once")
        fate.up.set()

    def _why_failed(self, error: Exception) -> str:
        if isinstance(error, OSError):
            return f"{self._options.address}: {why_away(error)}"
        return str(error if isinstance(error, Unavailable) else self._options.not_understood(error))

    def _why_gone(self, code: Any) -> str:
        value = int(getattr(code, "value", 0))
        why = _WHY_NOT.get(value, "the broker has closed the connection" if value else "the connection is lost")
        return f"{self._options.address}: {why}"

    def _on_message(self, client: Client, fate: _Fate, line: BoundedLine, message: Any) -> None:
        """Delete what is retained of cameras and rules that are no more."""
        line.allow(MOST_PACKET)
        if (
            fate.deletions >= _MOST_DELETIONS
            or not message.retain
            or not message.payload
            or message.topic in self._retained
        ):
            return
        if any(
            client_matches(topic_filter, message.topic) and is_stale(message.topic)
            for topic_filter, is_stale in self._options.stale.items()
        ):
            fate.deletions += 1
            client.publish(message.topic, b"", qos=1, retain=True)


def client_matches(topic_filter: str, topic: str) -> bool:
    from paho.mqtt.client import topic_matches_sub  # noqa: PLC0415 - an extra

    return bool(topic_matches_sub(topic_filter, topic))


def _on_publish(fate: _Fate, line: BoundedLine, mid: int, code: Any) -> None:
    """Called while the library holds its locks: wait for nothing here."""
    line.allow(MOST_PACKET)
    if code.value >= _FIRST_FAILURE:
        fate.refused[mid] = code.value
    fate.acked.set()


def _wait(sent: Iterable[MQTTMessageInfo], fate: _Fate, until_s: float) -> None:
    """Until all are acknowledged, the connection is gone, or the time is over."""
    for one in sent:
        while not _is_acked(one) and not fate.gone.is_set() and time.monotonic() < until_s:
            fate.acked.wait(0.1)
            fate.acked.clear()


def _is_acked(one: MQTTMessageInfo) -> bool:
    return bool(one.rc == 0 and one.is_published())


def _refusal(fate: _Fate, one: MQTTMessageInfo | None) -> Refusal | None:
    if one is None:
        return Refusal(f"it is larger than the broker takes ({fate.most_bytes} bytes)", True)
    code = fate.refused.pop(one.mid, 0)
    if not code:
        return None
    return Refusal(_WHY_NOT.get(code, f"the broker has refused it with the code {code:#x}"), code in (0x90, 0x99))


def _properties(wanted: Mapping[str, Any], packet: Literal["PUBLISH", "CONNECT"] = "PUBLISH") -> Any:
    if not wanted:
        return None
    from paho.mqtt.packettypes import PacketTypes  # noqa: PLC0415 - an extra
    from paho.mqtt.properties import Properties  # noqa: PLC0415

    found = Properties(getattr(PacketTypes, packet))
    for name, value in wanted.items():
        setattr(found, name, value)
    return found
