"""Publishes events to NATS, into a stream of JetStream.

    bus: {use: sink_nats, from: actions, with: {address: "nats://127.0.0.1:4222", stream: CAMGRAPH}}

The subject is `camgraph.GRAPH.CAMERA.ACTION`. An event is delivered once the stream has confirmed it. Its id is the
`Nats-Msg-Id`, by which the stream drops an event that comes again within its window for duplicates. If no stream takes
the subjects, events wait; with `stream`, the sink creates one that does.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import ssl
import threading
import time
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

from pydantic import Field

from camgraph.stages.sinks.delivery.bounded_line import HERE, LineCut
from camgraph.stages.sinks.delivery.broker import WAIT_S, BrokerSettings, BrokerSink
from camgraph.stages.sinks.delivery.event_sink import Refused
from camgraph.stages.sinks.delivery.event_view import EventView
from camgraph.stages.sinks.delivery.mqtt.mqtt_topics import level
from camgraph.stages.sinks.delivery.tls import client_tls

logging.getLogger("nats").addHandler(logging.NullHandler())  # or it tells the standard error what the server says
_LEAST_PAYLOAD = 1024
"""Nobody runs a server that takes less; events are not to be given up for a mistake there."""
_TOO_LARGE_FOR_STREAM = 10054
"""JetStream's error code of a message above the stream's `max_msg_size`."""

_NOT_STORED = 10077
_FULL = "raise its `max_msgs` or `max_bytes`, or let it drop old messages (`discard: old`)"
_REFUSALS = {
    _NOT_STORED: f"the stream is full: {_FULL}",
    10002: "its account has no room for more streams or messages: raise the limits of the account",
    10023: "it has no memory or disk left for streams: raise `max_mem` and `max_file` of its `jetstream`",
    10028: "it has no memory left for streams: raise `max_mem` of its `jetstream`",
    10039: "its account has no JetStream: enable it there",
    10047: "it has no disk left for streams: raise `max_file` of its `jetstream`, or free some disk space",
    10065: "another stream has these subjects already: name that one as `stream`, or set another `prefix`",
    10076: "it runs without JetStream: enable it there",
    10109: "the stream is sealed: name another one",
}
"""JetStream's error codes, from the errors.json of nats-server."""
_NO_NATS = "it does not speak the protocol of NATS"
_MOST_OP = 16
_BLANKS = re.compile(rb"(?:INFO|-ERR|MSG|PING|PONG|\+OK)[ \t\r\n\f\v]{12}")

T = TypeVar("T")


class SinkNatsSettings(BrokerSettings):
    """The server, and where events go there."""

    ports: ClassVar[Mapping[str, int]] = {"nats": 4222, "tls": 4222}

    address: str = Field(description="nats://HOST[:PORT]; tls:// with TLS")
    prefix: str | None = Field(
        None,
        pattern=r"^[\w-]+(\.[\w-]+)*$",
        max_length=500,
        description="Subjects begin with it; by default camgraph.GRAPH",
    )
    stream: str | None = Field(
        None, pattern=r"^[\w-]+$", max_length=200, description="Create this stream, in files, if it is not there"
    )


class SinkNats(BrokerSink[SinkNatsSettings]):
    """A batch of events -> publications, which are confirmed one by one."""

    settings_type = SinkNatsSettings
    package, extra = "nats", "nats"
    _client: Any = None
    _stream: Any = None
    _loop: _Loop | None = None
    _trouble: Exception | None = None
    """The last one that the library has reported."""

    @property
    def _prefix(self) -> str:
        return self.settings.prefix or f"camgraph.{self.context.graph}"

    def connect(self) -> None:
        until_s = time.monotonic() + WAIT_S
        port = self.dial(until_s, greeted=self._greeted, inspect=_Inspection())
        self._loop = self._loop or _Loop()
        self._try(self._connect(port), until_s)

    def _greeted(self, line: bytes) -> tuple[bytes, ssl.SSLContext | None]:
        """The server's first line, as a server without TLS says it, and the context for its TLS. Raises LineCut."""
        info = json.loads(line.removeprefix(b"INFO"))
        if not isinstance(info, dict):
            raise LineCut(_NO_NATS)
        is_needed, is_offered = info.pop("tls_required", False), info.pop("tls_available", False)
        if self.settings.is_secure and not is_needed and not is_offered:
            raise LineCut("it speaks no TLS: nothing was sent to it")
        has_tls = self.settings.is_secure or is_needed
        context = client_tls(self.settings.tls, self.context.base_folder) if has_tls else None
        return b"INFO %s\r\n" % json.dumps(info).encode(), context

    async def _connect(self, port: int) -> None:
        from nats.aio.client import Client  # noqa: PLC0415 - an extra

        self._client, self._trouble = Client(), None
        await self._client.connect(
            f"nats://{HERE}:{port}",
            user=self.settings.username,
            password=self.settings.password,
            connect_timeout=WAIT_S,
            allow_reconnect=False,
            max_reconnect_attempts=1,
            reconnect_time_wait=0,
            error_cb=self._on_error,
        )
        self._stream = self._client.jetstream(timeout=WAIT_S)
        if self.settings.stream:
            await self._create(self.settings.stream)

    async def _create(self, name: str) -> None:
        from nats.js.errors import NotFoundError  # noqa: PLC0415

        try:
            await self._stream.stream_info(name)
        except NotFoundError:
            await self._stream.add_stream(name=name, subjects=[f"{self._prefix}.>"])

    def send(self, events: Sequence[EventView]) -> None:
        self._refuse_too_large(events)
        publications = [_Publication(view, self._subject(view), _head(view)) for view in events]
        self._trouble = None
        self._try(self._publish(publications), time.monotonic() + WAIT_S + 1)

    def _refuse_too_large(self, events: Sequence[EventView]) -> None:
        """Raises Refused: the server would close the connection for one of these, each time.

        Raises Unavailable if it takes none at all.
        """
        most = self._client.max_payload
        if not isinstance(most, int) or most < _LEAST_PAYLOAD:
            raise self.away("it takes no messages of any use: `max_payload`")
        sizes = {view.event.id: len(view.event.body) + _size_of_head(view) for view in events}
        if large := {name: size for name, size in sizes.items() if size > most}:
            raise Refused(
                {name: f"it has {size:,} bytes, and the server takes {most:,}" for name, size in large.items()}
            )

    async def _publish(self, publications: Sequence[_Publication]) -> None:
        """All at once, in order; raises the error of the first that is not confirmed."""
        answers = [
            await self._stream.publish_async(subject, view.event.body, wait_stall=WAIT_S, headers=head)
            for view, subject, head in publications
        ]
        awaited = publications[0].view
        try:
            async with asyncio.timeout(WAIT_S):
                for (view, _, _), answer in zip(publications, answers, strict=True):
                    awaited = view
                    await answer
                    self.sent_already(view)
        except TimeoutError:
            # The library hands the refusal of a stream to `error_cb` alone, and the answer never comes.
            if _stream_error(self._trouble) == _TOO_LARGE_FOR_STREAM:
                raise Refused(
                    {awaited.event.id: "the stream does not take it: it is too large for its `max_msg_size`"}
                ) from None
            if self._trouble is not None and _stream_error(self._trouble):
                raise self.away(_why(self._trouble)) from None
            raise

    def _subject(self, view: EventView) -> str:
        return ".".join([self._prefix, *(_token(name) for name in (view.camera, view.action or view.kind))])

    def disconnect(self) -> None:
        if self._loop:
            loop, self._loop = self._loop, None
            client, self._client = self._client, None
            try:
                if client:
                    loop.run(client.close(), 1.0)
            finally:
                loop.stop()
        super().disconnect()

    def _try(self, work: Coroutine[Any, Any, None], until_s: float) -> None:
        from nats.errors import AuthorizationError, Error, NoRespondersError, NoServersError  # noqa: PLC0415
        from nats.js.errors import NoStreamResponseError  # noqa: PLC0415

        assert self._loop
        with self.call(until_s):
            try:
                self._loop.run(work, until_s - time.monotonic())
            except (NoStreamResponseError, NoRespondersError):
                raise self.away(f"no stream takes {self._prefix}.>: create one there, or name it as `stream`") from None
            except AuthorizationError:
                raise self.away("it does not accept this `username` and `password`") from None
            except (Error, OSError) as error:
                trouble = self._trouble if isinstance(error, NoServersError) else self._broken_off
                raise self.away(_why(trouble or error)) from None

    @property
    def _broken_off(self) -> Exception | None:
        """Why the library has closed the connection because of what the server said, if it has."""
        from nats.errors import ProtocolError  # noqa: PLC0415 - an extra

        error = self._client.last_error if self._client else None
        return error if isinstance(error, ProtocolError) else None

    async def _on_error(self, error: Exception) -> None:
        self._trouble = error


class _Publication(NamedTuple):
    view: EventView
    subject: str
    head: dict[str, str]


class _Inspection:
    """Looks for blanks in what the server says: the library's expressions take time with the square of their number."""

    def __init__(self) -> None:
        self._last = b""

    def __call__(self, some: bytes) -> None:
        """Raises LineCut."""
        if _BLANKS.search(self._last + some):
            raise LineCut(_NO_NATS)
        self._last = (self._last + some)[-_MOST_OP:]


def _stream_error(error: Exception | None) -> int:
    """JetStream's number of this error, 0 if it is none of JetStream."""
    code = getattr(error, "err_code", None)
    return code if isinstance(code, int) else 0


def _why(error: Exception) -> Exception | str:
    from nats.errors import ProtocolError  # noqa: PLC0415 - an extra
    from nats.js.errors import ServiceUnavailableError  # noqa: PLC0415 - an extra

    if code := _stream_error(error):
        if code == _NOT_STORED and "maximum" not in str(getattr(error, "description", "")):
            return "it cannot store messages: is its disk full?"
        return _REFUSALS.get(code, f"JetStream refuses it with the error {code}: its documentation has a list of them")
    for kind, words in {
        ServiceUnavailableError: "it has no JetStream, which keeps events: start it with `nats-server -js`",
        ProtocolError: _NO_NATS,
    }.items():
        if isinstance(error, kind):
            return words
    text = str(getattr(error, "description", "") or error)
    if "uthorization" in text:
        return "it does not accept this `username` and `password`"
    return error if isinstance(error, OSError) else f"no connection: {type(error).__name__}"


def _size_of_head(view: EventView) -> int:
    lines = ["NATS/1.0", *(f"{name}: {value}" for name, value in _head(view).items()), "", ""]
    return len("\r\n".join(lines).encode())


def _head(view: EventView) -> dict[str, str]:
    return {"Nats-Msg-Id": view.event.own_id, "content-type": "application/cloudevents+json"}


def _token(name: str) -> str:
    """`.`, `*` and `>` mean something in subjects."""
    return level(name).replace(".", "_")


async def _end_what_waits() -> None:
    """What the library leaves when its `close` was given up: Python would complain of each task that never ended."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


class _Loop:
    """An event loop in a thread of its own, for a library that knows nothing else."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._work, name="nats", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            self._loop.run_forever()
            self._loop.run_until_complete(_end_what_waits())
        finally:
            self._loop.close()

    def run(self, work: Coroutine[Any, Any, T], within_s: float) -> T:
        """Raises TimeoutError."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(within_s)
        except TimeoutError:
            future.cancel()
            raise

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WAIT_S)
