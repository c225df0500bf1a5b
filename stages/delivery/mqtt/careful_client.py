"""The client of paho, for brokers that may send anything.

By itself the library's thread dies of an answer that it cannot read, and nobody notices. It reads packets
of 256 MB, and keeps any number of messages whose delivery the broker does not complete.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from pipeline.system import happy_eyeballs
from stages.delivery.bounded_socket import AnswerTooLong

if TYPE_CHECKING:
    from paho.mqtt.client import Client
    from paho.mqtt.enums import MQTTErrorCode

MOST_PACKET = 5 << 20
"""Bytes; the largest that we get are pictures that we have published, of 4 MB."""
_PUBLISH_TWICE = 0x34
"""A publication with QoS 2; we subscribe with 1."""


def careful_client(failed: Callable[[Exception], object]) -> type[Client]:
    """The class. `failed` is called with an exception that an answer has caused; then the connection is closed."""
    from paho.mqtt.client import Client  # noqa: PLC0415 - an extra
    from paho.mqtt.enums import MQTTErrorCode  # noqa: PLC0415

    class CarefulClient(Client):  # type: ignore[misc]  # the library may be missing
        def _create_socket_connection(self) -> socket.socket:
            """The library would give each address of the host the whole time, one after the other."""
            return happy_eyeballs.connect(self._host, self._port, time.monotonic() + self._connect_timeout)

        def _sock_recv(self, bufsize: int) -> bytes:
            """`bufsize` is what is missing of the packet."""
            if bufsize > MOST_PACKET or self._in_packet["command"] & 0xF4 == _PUBLISH_TWICE:
                failed(AnswerTooLong())
                raise AnswerTooLong
            return bytes(super()._sock_recv(bufsize))

        def _packet_read(self) -> MQTTErrorCode:
            try:
                return cast("MQTTErrorCode", super()._packet_read())
            except Exception as error:  # noqa: BLE001 - whatever an answer makes the library do
                failed(error)
                return MQTTErrorCode.MQTT_ERR_PROTOCOL

    return CarefulClient
