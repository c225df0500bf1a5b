"""Appends events to a stream of Redis or Valkey (XADD), which keeps the latest `max_length` of them.

    stream: {use: sink_redis, from: actions, with: {address: "redis://127.0.0.1:6379/0"}}

An entry has the fields `id`, `type`, `camera` and `event`, which is the whole event as JSON. An event is delivered once
Redis has answered; what Redis itself keeps through a crash follows from its `appendonly` and `appendfsync`. A batch is
one transaction. An event may arrive twice: drop repetitions by `id`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from camgraph.stages.sinks.delivery.bounded_line import HERE
from camgraph.stages.sinks.delivery.broker import WAIT_S, BrokerSettings, BrokerSink
from camgraph.stages.sinks.delivery.event_view import EventView

_REFUSALS = {
    "WRONGPASS": "it does not accept this `username` and `password`",
    "NOAUTH": "it asks for a `password`",
    "NOPERM": "this user may not write the stream: allow XADD, MULTI, EXEC and the key in its access list",
    "OOM": "its memory is full: raise its `maxmemory`, or choose a `maxmemory-policy` that drops old keys",
    "READONLY": "it is a replica, which takes no entries: name the address of the primary",
    "LOADING": "it is still loading its data after a start",
    "MASTERDOWN": "it is a replica, and has lost its primary: name the address of the primary",
    "NOREPLICAS": "too few of its replicas are there (`min-replicas-to-write`)",
    "WRONGTYPE": "the key of the stream holds something else: name another `stream`",
    "MISCONF": "it cannot write its own disk: its log says why",
    "MOVED": "it is one of a cluster, and another one holds this stream: name that one's address",
    "CLUSTERDOWN": "its cluster is down",
    "max number of clients": "it has as many clients as it takes: raise its `maxclients`",
}
"""How its errors begin; status shows the reason, and events wait until it takes them."""


_CODES = {
    "OutOfMemoryError": "OOM",
    "ReadOnlyError": "READONLY",
    "BusyLoadingError": "LOADING",
    "NoPermissionError": "NOPERM",
    "MasterDownError": "MASTERDOWN",
    "MovedError": "MOVED",
    "ClusterDownError": "CLUSTERDOWN",
}
"""Class of an error -> the code that the library has taken out of its text. Only its newer versions keep the code."""


def _refusal(error: Exception) -> str:
    """The reason in words; "" for one that is not known."""
    code = getattr(error, "status_code", None) or _CODES.get(type(error).__name__, "")
    if "Authentication required" in str(error):  # its class is also that of a wrong password
        code = "NOAUTH"
    text = f"{code} {error}"
    return next((why for word, why in _REFUSALS.items() if word in text), "")


class SinkRedisSettings(BrokerSettings):
    """The server and the stream."""

    ports: ClassVar[Mapping[str, int]] = {"redis": 6379, "rediss": 6379}

    address: str = Field(description="redis://HOST[:PORT][/DATABASE]; rediss:// with TLS")
    stream: str | None = Field(None, min_length=1, max_length=1000, description="Its key; by default camgraph:GRAPH")
    needs_username: ClassVar[bool] = False
    max_length: int = Field(
        100_000, ge=0, description="Redis drops the oldest entries beyond about so many; 0: it keeps all"
    )

    @model_validator(mode="after")
    def _has_a_database(self) -> Self:
        if not (self.broker.path or "0").isdecimal():
            raise ValueError("expected the number of a database behind the port, as in redis://HOST:6379/0")
        return self


class SinkRedis(BrokerSink[SinkRedisSettings]):
    """A batch of events -> one MULTI of XADD."""

    settings_type = SinkRedisSettings
    package, extra = "redis", "redis"
    _client: Any = None

    def connect(self) -> None:
        import redis  # noqa: PLC0415 - an extra
        from redis.backoff import NoBackoff  # noqa: PLC0415
        from redis.retry import Retry  # noqa: PLC0415

        until_s = time.monotonic() + WAIT_S
        pool = redis.ConnectionPool(
            host=HERE,
            port=self.dial(until_s),
            db=int(self.address.path or 0),
            username=self.settings.username,
            password=self.settings.password,
            retry=Retry(NoBackoff(), 0),
            protocol=2,  # in version 3, a server may send us to another one, with the password
        )
        self._client = redis.Redis(connection_pool=pool)
        self._ask(self._client.ping, until_s)

    def send(self, events: Sequence[EventView]) -> None:
        stream = self.settings.stream or f"camgraph:{self.context.graph}"
        transaction = self._client.pipeline(transaction=True)
        for fields in [_fields(view) for view in events]:
            transaction.xadd(stream, fields, maxlen=self.settings.max_length or None, approximate=True)
        self._ask(transaction.execute, time.monotonic() + WAIT_S)

    def disconnect(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client.connection_pool.disconnect()
            self._client = None
        super().disconnect()

    def _ask(self, question: Callable[[], object], until_s: float) -> None:
        from redis import exceptions as errors  # noqa: PLC0415 - an extra

        with self.call(until_s):
            try:
                question()
            except errors.AuthenticationError as error:
                raise self.away(_refusal(error) or _REFUSALS["WRONGPASS"]) from None
            except errors.RedisError as error:
                if why := _refusal(error):
                    raise self.away(why) from None
                raise self.away(
                    error if isinstance(error, errors.ConnectionError) else "it refuses the entries"
                ) from None


def _fields(view: EventView) -> dict[str, bytes]:
    """As bytes: letters that UTF-8 does not have are no fault of the server."""
    words = {"id": view.event.own_id, "type": str(view.body.get("type", "")), "camera": view.camera}
    return {**{name: text.encode(errors="backslashreplace") for name, text in words.items()}, "event": view.event.body}
