"""The client of paho, for brokers that may send anything.

By itself the library's thread dies of an answer that it cannot read, and nobody notices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from paho.mqtt.client import Client
    from paho.mqtt.enums import MQTTErrorCode


def careful_client(failed: Callable[[Exception], object]) -> type[Client]:
    """The class. `failed` is called with an exception that an answer has caused; then the connection is closed."""
    from paho.mqtt.client import Client  # noqa: PLC0415 - an extra
    from paho.mqtt.enums import MQTTErrorCode  # noqa: PLC0415

    class CarefulClient(Client):  # type: ignore[misc]  # the library may be missing
        def _packet_read(self) -> MQTTErrorCode:
            try:
                return cast("MQTTErrorCode", super()._packet_read())
            except Exception as error:  # noqa: BLE001 - whatever an answer makes the library do
                failed(error)
                return MQTTErrorCode.MQTT_ERR_PROTOCOL

    return CarefulClient
