"""The base of sinks that post to a web server: a request for each event, or for a batch.

A sink for a service of yours, here Gotify, is as short as its request:

    import json

    from pydantic import Field

    from camgraph.stages.sinks.delivery.web.web_sink import Request, WebSettings, WebSink


    class SinkGotifySettings(WebSettings):
        '''The server, and the token of an application there.'''

        app_token: str = Field(description="Write `${secret:NAME}`")


    class SinkGotify(WebSink[SinkGotifySettings]):
        '''An event -> a message on the phones that follow the application.'''

        settings_type = SinkGotifySettings

        def request(self, view):
            body = {"title": f"{view.action} on {view.camera}", "message": view.about or view.action}
            headers = {"Content-Type": "application/json", "X-Gotify-Key": self.settings.app_token}
            return Request((view,), view.event.own_id, headers, json.dumps(body).encode())

        def secrets(self):
            return [*super().secrets(), self.settings.app_token]

A request that is not answered yet does not hold the process: the sink is busy (`patient`) and goes on waiting in the
next call. Answers mean what `answers.judge` says. What a server answers reaches logs and dead letters without the
`secrets`.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, NamedTuple, TypeVar

from pydantic import AfterValidator, Field

from camgraph.pipeline.errors import Unavailable
from camgraph.pipeline.stage import Context, FrameSize, SettingProblems
from camgraph.pipeline.system.redaction import HIDDEN, spellings
from camgraph.stages.sinks.delivery.durations import Duration, seconds
from camgraph.stages.sinks.delivery.event_sink import DeliverySettings, EventSink, Refused
from camgraph.stages.sinks.delivery.event_view import EventView
from camgraph.stages.sinks.delivery.tls import TlsSettings, client_tls, tls_problems
from camgraph.stages.sinks.delivery.web.answers import Gone, judge
from camgraph.stages.sinks.delivery.web.cloudevents_http import Headers
from camgraph.stages.sinks.delivery.web.web_addresses import web_address, why_not_public
from camgraph.stages.sinks.delivery.web.web_client import Answer, Exchange, WebClient

_TURN_S = 1.0
"""How long one call waits for answers; the process goes on listening between two calls."""
_GONE = "gone"
_ABOUT_THE_SERVER = (502, 503, 504)
"""Answers of a proxy, or of a server that is overloaded: no event is at fault."""
_LEAST_SECRET = 4
"""Shorter values are not hidden in answers: they occur everywhere."""
_LEAST_TOKEN = 8
"""Of the parts of a URL, so long ones may be tokens."""


def _is_url(url: str) -> str:
    web_address(url)
    return url


class WebSettings(DeliverySettings):
    """The server, and how long to wait for it."""

    url: Annotated[str, AfterValidator(_is_url)] = Field(
        description="https://HOST[:PORT]/PATH. Its path and query are never shown, because many services put a token "
        "there: write `${secret:NAME}` for such a URL"
    )
    tls: TlsSettings | None = Field(None, description="Whom to trust, and our own certificate")
    allow_private: bool = Field(
        False, description="Also connect to addresses of this machine and of private networks, such as 10.0.0.7"
    )
    limit: Duration = Field("15s", description="For one request in all: finding the host, connecting, the answer")
    give_up_after: Duration = Field(
        "1d",
        description="An event that the server has answered with 500 for so long becomes a dead letter. Answers that "
        "are about the whole server (502, 503, 504) do not count",
    )


W = TypeVar("W", bound=WebSettings)


class Request(NamedTuple):
    """A POST of these events. `id`: the same each time they are sent; `target`: not the path and query of `url`."""

    views: tuple[EventView, ...]
    id: str
    headers: Headers
    body: bytes
    target: str = ""

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the events."""
        return tuple(view.event.id for view in self.views)


class _Running(NamedTuple):
    """A request without an answer yet."""

    ids: tuple[str, ...]
    exchange: Exchange


class WebSink(EventSink[W]):
    """See the module. A sink overrides `request`, or `requests`, and `secrets` if it has any."""

    def __init__(self, settings: W, context: Context) -> None:
        super().__init__(settings, context)
        self.address = web_address(settings.url)
        self._client: WebClient | None = None
        self._running: _Running | None = None
        self._alone: set[str] = set()
        """Ids of a batch that was refused: each is sent by itself, to see which of them it was."""
        self._failing: tuple[tuple[str, ...], float] = ((), 0.0)
        """The events to which the server answers 500, and since when without an outage, in monotonic seconds."""
        self._secrets = _spelt(self.secrets())

    @classmethod
    def check(cls, settings: W, base_folder: Path) -> SettingProblems:
        address = web_address(settings.url)
        why = "" if settings.allow_private else _why_not_public(address.host)
        if why:
            yield ("url",), f"{address.host} is {why}: if you mean that, write `allow_private: true` beside it"
        if settings.tls is not None and address.scheme == "http":
            yield ("tls",), "the URL begins with http://, which has no TLS: write https://, or leave `tls` out"
        yield from tls_problems(settings.tls, base_folder)

    @classmethod
    def remarks(cls, settings: W, base_folder: Path, cameras: Mapping[str, FrameSize | None]) -> Iterable[str]:
        address = web_address(settings.url)
        if address.scheme == "http" and "this machine" not in _why_not_public(address.host):
            yield f"{address} has no encryption: everybody on the way reads these events, and any password"

    # ---- for the sink of a service

    def request(self, view: EventView) -> Request:
        """The request that delivers this event."""
        raise NotImplementedError

    def requests(self, events: Sequence[EventView]) -> Iterator[Request]:
        """The requests that deliver these events, in order; one for each event by default."""
        return map(self.request, events)

    def secrets(self) -> Sequence[str]:
        """What no error, log or dead letter may show, though the server may repeat it: at least the path of the URL."""
        target = self.address.target
        return [target, *(part for part in re.split("[/?&=]", target) if len(part) >= _LEAST_TOKEN)]

    def is_alone(self, view: EventView) -> bool:
        """Whether a batch with this event was refused, so that the event must have a request of its own."""
        return view.event.id in self._alone

    # ---- sending

    def connect(self) -> None:
        tls = self.settings.tls
        self._client = WebClient(
            self.address,
            tls=lambda: client_tls(tls, self.context.base_folder),
            server_name=tls.server_name if tls else None,
            allow_private=self.settings.allow_private,
        )

    def disconnect(self) -> None:
        self._running = None
        if self._client is not None:
            self._client.close()
            self._client = None

    def send(self, events: Sequence[EventView]) -> None:
        self._raise_if_gone()
        until_s = time.monotonic() + _TURN_S
        for request in self.requests(events):
            if time.monotonic() >= until_s:
                raise Unavailable("further events are on their way", patient=True)
            self._note(request, self._answer_to(request, until_s))

    def _answer_to(self, request: Request, until_s: float) -> Answer:
        """Raises Unavailable, `patient` while there is no answer yet: the same call then goes on waiting for it."""
        if self._running is None or self._running.ids != request.ids:
            self._running = _Running(request.ids, self._post(request))
        try:
            answer = self._running.exchange.answer(until_s - time.monotonic())
        except (Unavailable, OSError):
            self._failing = (), 0.0
            raise
        if answer is None:
            raise Unavailable(f"{self.address}: waiting for its answer", patient=True)
        self._running = None
        return answer

    def _post(self, request: Request) -> Exchange:
        if self._running is not None:  # for events that have expired meanwhile
            self.disconnect()
        if self._client is None:
            self.connect()
        assert self._client is not None
        headers = {**request.headers, "User-Agent": "camgraph"}
        return self._client.post(headers, request.body, seconds(self.settings.limit), request.target)

    def _note(self, request: Request, answer: Answer) -> None:
        try:
            why = judge(answer, time.time(), self._hidden)
        except Gone as error:
            self._forget_server(error)
            raise
        except Unavailable as error:
            if not self._fails_for_long(request, answer):
                error.args = (f"{self.address}: {error}",)
                raise
            why = f"for {self.settings.give_up_after}, {error}"
        if why and len(request.views) > 1:
            self._alone.update(request.ids)
            raise Unavailable("each event of the batch by itself", patient=True)
        self._alone.difference_update(request.ids)
        if why:
            raise Refused(dict.fromkeys(request.ids, f"{self.address}: {why}"))
        for view in request.views:
            self.sent_already(view)

    def _fails_for_long(self, request: Request, answer: Answer) -> bool:
        """Whether the server has answered 500 to these events for so long that they hold up the others no more."""
        if answer.status < 500 or answer.status in _ABOUT_THE_SERVER:
            return False
        ids, since_s = self._failing
        if ids != request.ids:
            since_s = time.monotonic()
            self._failing = request.ids, since_s
        return time.monotonic() - since_s > seconds(self.settings.give_up_after)

    def _hidden(self, text: str) -> str:
        """A text of the server without our secrets: it may repeat the request."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return text

    # ---- a server that wants no more

    @property
    def _gone_file(self) -> Path:
        return self.context.state_folder / _GONE

    def _raise_if_gone(self) -> None:
        with suppress(OSError):
            url, _, why = self._gone_file.read_text().partition(" ")
            if url == self._url_hash:
                raise Gone(why)

    def _forget_server(self, error: Gone) -> None:
        """Send nothing to this URL for the rest of the run, also in a process that is started again."""
        error.args = (f"{self.address}: {error}: nothing more is sent there in this run, and events wait",)
        with suppress(OSError):
            self._gone_file.write_text(f"{self._url_hash} {error}")

    @property
    def _url_hash(self) -> str:
        return hashlib.sha256(self.settings.url.encode()).hexdigest()


def _spelt(secrets: Iterable[str]) -> Sequence[str]:
    """Secrets in every spelling, the longest first."""
    spelt = {spelling for secret in secrets if len(secret) >= _LEAST_SECRET for spelling in spellings(secret)}
    return sorted(spelt, key=len, reverse=True)


def _why_not_public(host: str) -> str:
    """For a host that is a number, or the name of this machine; other names are looked up when it connects."""
    if host == "localhost":
        return "an address of this machine"
    with suppress(ValueError):
        return why_not_public(str(ip_address(host)))
    return ""
