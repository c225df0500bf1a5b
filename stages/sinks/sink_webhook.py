"""Posts events to a web server: your own program, a chat, a push service.

    duty:  {use: sink_webhook, from: actions, with: {url: "https://alerts.example.org/camgraph",
            signing_secrets: "${secret:duty}", only: {rule: fall}}}
    slack: {use: sink_webhook, from: actions, with: {url: "${secret:slack_url}",
            body: {text: "{action} on {camera} at {time}"}}}

A request carries a CloudEvent, or whatever `body` or `form` makes of the event, with the headers of Standard Webhooks.
An event is delivered once the server has answered with a status from 200 to 299.

| the server | then |
|---|---|
| answers 408, 425, 429 or 5xx, not at all, not in time | the event waits and is sent again, after 1, 2, 4, 8, 15, 30,
then every 60 s, or after the time that `Retry-After` asks for, up to an hour |
| answers 500 or another 5xx but 502, 503 and 504, to this one event for a day (`give_up_after`) | the event becomes a
dead letter, so that those behind it are delivered |
| answers 3xx, 401, 403, 404, 405, 407 | the same: every event would get this answer until somebody mends it |
| answers 410 | nothing more is sent in this run; events wait, and status shows why |
| answers another 4xx | it does not want this event, which becomes a dead letter |
"""

from __future__ import annotations

import base64
import hashlib
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from camgraph.pipeline.errors import Unavailable
from camgraph.pipeline.stage import Context, FrameSize, SettingProblems, Upstream
from camgraph.pipeline.system.redaction import HIDDEN, spellings
from camgraph.stages.sinks.delivery.durations import Duration, seconds
from camgraph.stages.sinks.delivery.event_sink import DeliverySettings, EventSink, Refused
from camgraph.stages.sinks.delivery.event_view import EventView
from camgraph.stages.sinks.delivery.footage_files import (
    FootageFiles,
    FootageSettings,
    footage_beside,
    picture_named,
)
from camgraph.stages.sinks.delivery.selection import Selection, new_incidents_and_cameras
from camgraph.stages.sinks.delivery.tls import TlsSettings, client_tls, tls_problems
from camgraph.stages.sinks.delivery.web.answers import Gone, judge
from camgraph.stages.sinks.delivery.web.chats import (
    MOST_PICTURE,
    WITH_PICTURES,
    Chat,
    ChatRequest,
    chat_request,
    wrong_target,
)
from camgraph.stages.sinks.delivery.web.cloudevents_http import Headers, Mode, batched, binary, header_value, structured
from camgraph.stages.sinks.delivery.web.lean_events import lean
from camgraph.stages.sinks.delivery.web.standard_webhooks import secret_bytes, signed_headers
from camgraph.stages.sinks.delivery.web.template_body import TemplateBody, TemplateForm, filled_body, filled_form
from camgraph.stages.sinks.delivery.web.web_addresses import WebAddress, web_address, why_not_public
from camgraph.stages.sinks.delivery.web.web_client import Answer, Exchange, WebClient

_TURN_S = 1.0
"""How long one call waits for answers; the process goes on listening between two calls."""
_GONE = "gone"
_ABOUT_THE_SERVER = (502, 503, 504)
"""Answers of a proxy, or of a server that is overloaded: no event is at fault."""
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OURS = re.compile(r"(?i)host|content-length|transfer-encoding|connection|te|upgrade|expect|webhook-.*|ce-.*")
_LEAST_SECRET = 4
"""Shorter values are not hidden in answers: they occur everywhere."""
_LEAST_TOKEN = 8
"""Of the parts of a URL, so long ones may be tokens."""


def _is_url(url: str) -> str:
    web_address(url)
    return url


def _is_secret(secret: str) -> str:
    secret_bytes(secret)
    return secret


def _is_header_text(text: str) -> str:
    if not text.isascii() or not text.isprintable():
        raise ValueError("expected printable ASCII letters")
    return text


def _are_headers(headers: dict[str, str]) -> dict[str, str]:
    for name in headers:
        if not _NAME.fullmatch(name):
            raise ValueError(f"no header can be called {name[:40]!r}")
        if _OURS.fullmatch(name):
            raise ValueError(f"{name}: this header is set by camgraph")
    return headers


def _as_list(value: object) -> object:
    return value if isinstance(value, list) else [value]


HeaderText = Annotated[str, Field(min_length=1, max_length=8000), AfterValidator(_is_header_text)]
Secrets = Annotated[
    list[Annotated[str, AfterValidator(_is_secret)]], BeforeValidator(_as_list), Field(min_length=1, max_length=10)
]


class SinkWebhookSettings(DeliverySettings, FootageSettings):
    """The server, what it gets, and how it knows us."""

    url: Annotated[str, AfterValidator(_is_url)] = Field(
        description="https://HOST[:PORT]/PATH. Its path and query are never shown, because many services put a token "
        "there: write `${secret:NAME}` for such a URL"
    )
    mode: Mode = Field(
        "structured",
        description="structured: a CloudEvent as JSON. binary: its `data` as JSON, the rest in headers. batched: a "
        "list of CloudEvents, as many as `batch: {max}` of the stage says",
    )
    body: TemplateBody | None = Field(
        None,
        description="Instead of a CloudEvent: a text, or keys of a JSON object, with {action}, {camera}, {time} and so "
        "on in its texts",
    )
    form: TemplateForm | None = Field(
        None, description="Instead of a CloudEvent: the fields of a form, as gateways for short messages want it"
    )
    chat: Chat | None = Field(
        None,
        description="Instead of a CloudEvent: an alert as this service shows it, with the picture of the incident "
        "(slack and teams take none). `only` is then by default the beginnings of incidents, and cameras that are lost "
        "and back",
    )
    picture_within: Duration = Field("10s", description="With `chat`: how long to wait for the picture")
    headers: Annotated[dict[str, HeaderText], AfterValidator(_are_headers)] = Field(
        {}, description="Further headers, such as `X-Api-Key: ${secret:NAME}`"
    )
    signing_secrets: Secrets | None = Field(
        None,
        description="Sign each request (Standard Webhooks): `whsec_...`, or several while a secret is replaced by "
        "another. Write `${secret:NAME}`",
    )
    bearer_token: HeaderText | None = Field(None, description="For `Authorization: Bearer ...`; write `${secret:NAME}`")
    username: str | None = Field(None, min_length=1, description="For basic authentication, with `password`")
    password: str | None = Field(None, min_length=1, description="Write `${secret:NAME}`")
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
    most_bytes: int = Field(
        20_000,
        ge=1000,
        le=1 << 24,
        description="An event with a longer body is sent without keypoints, then without people and evidence, and "
        "names them in `data.left_out`",
    )

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        own = [name for name in ("body", "form", "chat") if getattr(self, name) is not None]
        if len(own) > 1:
            raise ValueError(f"{' and '.join(f'`{name}`' for name in own)}: a request has only one of them")
        if self.mode != "structured" and own:
            raise ValueError(f"`mode: {self.mode}` is about CloudEvents: leave it out, or `{own[0]}`")
        if self.chat and (why := wrong_target(self.chat, self.url)):
            raise ValueError(f"`url`: {why}")
        if (self.username is None) != (self.password is None):
            raise ValueError("`username` and `password` go together")
        ways = [self.bearer_token, self.username, *(name for name in self.headers if name.lower() == "authorization")]
        if len([way for way in ways if way]) > 1:
            raise ValueError("`bearer_token`, `username` and a header Authorization: only one of them")
        return self


class SinkWebhook(EventSink[SinkWebhookSettings]):
    """An event -> a POST."""

    settings_type = SinkWebhookSettings

    def __init__(self, settings: SinkWebhookSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._address = web_address(settings.url)
        self._client: WebClient | None = None
        self._running: _Running | None = None
        self._alone: set[str] = set()
        """Ids of a batch that was refused: each is sent by itself, to see which of them it was."""
        self._failing: tuple[tuple[str, ...], float] = ((), 0.0)
        """The events to which the server answers 500, and since when without an outage, in monotonic seconds."""
        self._secrets = _secrets_of(settings, self._address)
        self._footage = FootageFiles(settings.footage_folders, context.base_folder)
        if settings.chat and settings.only is None:
            self._selection = Selection(new_incidents_and_cameras(), settings.never, settings.time_zone)

    @classmethod
    def follow(cls, settings: SinkWebhookSettings, base_folder: Path, upstream: Upstream) -> Mapping[str, Any]:
        footage = footage_beside(settings, upstream) if settings.chat else {}
        return {**super().follow(settings, base_folder, upstream), **footage}

    @classmethod
    def check(cls, settings: SinkWebhookSettings, base_folder: Path) -> SettingProblems:
        address = web_address(settings.url)
        why = "" if settings.allow_private else _why_not_public(address.host)
        if why:
            yield ("url",), f"{address.host} is {why}: if you mean that, write `allow_private: true` beside it"
        if settings.tls is not None and address.scheme == "http":
            yield ("tls",), "the URL begins with http://, which has no TLS: write https://, or leave `tls` out"
        yield from tls_problems(settings.tls, base_folder)

    @classmethod
    def remarks(
        cls, settings: SinkWebhookSettings, base_folder: Path, cameras: Mapping[str, FrameSize | None]
    ) -> Iterable[str]:
        address = web_address(settings.url)
        if address.scheme == "http" and "this machine" not in _why_not_public(address.host):
            yield f"{address} has no encryption: everybody on the way reads these events, and any password"

    # ---- sending

    def connect(self) -> None:
        tls = self.settings.tls
        self._client = WebClient(
            self._address,
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
        for request in self._requests(events):
            if time.monotonic() >= until_s:
                raise Unavailable("further events are on their way", patient=True)
            self._note(request, self._answer_to(request, until_s))

    def _answer_to(self, request: _Request, until_s: float) -> Answer:
        """Raises Unavailable, `patient` while there is no answer yet: the same call then goes on waiting for it."""
        if self._running is None or self._running.ids != request.ids:
            self._running = _Running(request.ids, self._post(request))
        try:
            answer = self._running.exchange.answer(until_s - time.monotonic())
        except (Unavailable, OSError):
            self._failing = (), 0.0
            raise
        if answer is None:
            raise Unavailable(f"{self._address}: waiting for its answer", patient=True)
        self._running = None
        return answer

    def _post(self, request: _Request) -> Exchange:
        if self._running is not None:  # for events that have expired meanwhile
            self.disconnect()
        if self._client is None:
            self.connect()
        assert self._client is not None
        headers = {
            **request.headers,
            **signed_headers(self.settings.signing_secrets or (), request.id, int(time.time()), request.body),
            **self.settings.headers,
            **_authorization(self.settings),
            "User-Agent": "camgraph",
        }
        return self._client.post(headers, request.body, seconds(self.settings.limit), request.target)

    def _note(self, request: _Request, answer: Answer) -> None:
        try:
            why = judge(answer, time.time(), self._hidden)
        except Gone as error:
            self._forget_server(error)
            raise
        except Unavailable as error:
            if not self._fails_for_long(request, answer):
                error.args = (f"{self._address}: {error}",)
                raise
            why = f"for {self.settings.give_up_after}, {error}"
        if why and len(request.views) > 1:
            self._alone.update(request.ids)
            raise Unavailable("each event of the batch by itself", patient=True)
        self._alone.difference_update(request.ids)
        if why:
            raise Refused(dict.fromkeys(request.ids, f"{self._address}: {why}"))
        for view in request.views:
            self.sent_already(view)

    def _fails_for_long(self, request: _Request, answer: Answer) -> bool:
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

    # ---- requests

    def _requests(self, events: Sequence[EventView]) -> Iterator[_Request]:
        if self.settings.mode == "batched":
            yield from self._batches(events)
        else:
            for view in events:
                yield _Request((view,), header_value(view.event.own_id), *self._content(view))

    def _content(self, view: EventView) -> tuple[Headers, bytes] | ChatRequest:
        settings = self.settings
        if settings.chat is not None:
            return chat_request(
                settings.chat, view, settings.time_zone, self._picture(view, settings.chat), self._address.target
            )
        if settings.body is not None:
            kind, content = filled_body(settings.body, view, settings.time_zone)
            return {"Content-Type": kind}, content
        if settings.form is not None:
            kind, content = filled_form(settings.form, view, settings.time_zone)
            return {"Content-Type": kind}, content
        body, line = lean(view.body, view.event.body, settings.most_bytes)
        return (binary if settings.mode == "binary" else structured)(body, line)

    def _picture(self, view: EventView, chat: Chat) -> bytes | None:
        """None if the service takes none, or there is none. Raises Unavailable while it may still come."""
        name = picture_named(view) if chat in WITH_PICTURES else ""
        if not name:
            return None
        may_come = self.waited_s(view) < seconds(self.settings.picture_within)
        picture, why = self._footage.picture_or_why(name, MOST_PICTURE, may_come=may_come)
        if picture is None:
            self.context.log.warning("picture_not_sent", camera=view.camera, id=view.event.own_id, why=why)
        return picture

    def _batches(self, events: Sequence[EventView]) -> Iterator[_Request]:
        """As many events in one request as fit into `most_bytes`; one that was refused in a batch by itself."""
        batch: list[tuple[EventView, bytes]] = []
        size = 0
        for view in events:
            _, line = lean(view.body, view.event.body, self.settings.most_bytes)
            size += len(line) + 1
            if batch and (size >= self.settings.most_bytes or view.event.id in self._alone):
                yield _batch(batch)
                batch, size = [], len(line) + 1
            batch.append((view, line))
            if view.event.id in self._alone:
                yield _batch(batch)
                batch, size = [], 0
        if batch:
            yield _batch(batch)

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
        error.args = (f"{self._address}: {error}: nothing more is sent there in this run, and events wait",)
        with suppress(OSError):
            self._gone_file.write_text(f"{self._url_hash} {error}")

    @property
    def _url_hash(self) -> str:
        return hashlib.sha256(self.settings.url.encode()).hexdigest()


class _Request(NamedTuple):
    """`id`: the same each time these events are sent."""

    views: tuple[EventView, ...]
    id: str
    headers: Headers
    body: bytes
    target: str = ""

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(view.event.id for view in self.views)


class _Running(NamedTuple):
    """A request without an answer yet."""

    ids: tuple[str, ...]
    exchange: Exchange


def _batch(events: Sequence[tuple[EventView, bytes]]) -> _Request:
    headers, body = batched([line for _, line in events])
    names = " ".join(view.event.own_id for view, _ in events)
    return _Request(tuple(view for view, _ in events), hashlib.sha256(names.encode()).hexdigest()[:32], headers, body)


def _authorization(settings: SinkWebhookSettings) -> Headers:
    if settings.bearer_token:
        return {"Authorization": f"Bearer {settings.bearer_token}"}
    if settings.username and settings.password:
        pair = f"{settings.username}:{settings.password}".encode()
        return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
    return {}


def _secrets_of(settings: SinkWebhookSettings, address: WebAddress) -> Sequence[str]:
    """All that must not be shown, in every spelling, the longest first."""
    authorization = _authorization(settings).get("Authorization", "").rpartition(" ")[2]
    found = [
        settings.bearer_token or "",
        settings.password or "",
        authorization,
        *(settings.signing_secrets or ()),
        *settings.headers.values(),
        address.target,
        *(part for part in re.split("[/?&=]", address.target) if len(part) >= _LEAST_TOKEN),
    ]
    spelt = {spelling for secret in found if len(secret) >= _LEAST_SECRET for spelling in spellings(secret)}
    return sorted(spelt, key=len, reverse=True)


def _why_not_public(host: str) -> str:
    """For a host that is a number, or the name of this machine; other names are looked up when it connects."""
    if host == "localhost":
        return "an address of this machine"
    with suppress(ValueError):
        return why_not_public(str(ip_address(host)))
    return ""
