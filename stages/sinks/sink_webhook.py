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
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from camgraph.pipeline.stage import Context, Upstream
from camgraph.stages.sinks.delivery.durations import Duration, seconds
from camgraph.stages.sinks.delivery.event_view import EventView
from camgraph.stages.sinks.delivery.footage_files import (
    FootageFiles,
    FootageSettings,
    footage_beside,
    picture_named,
)
from camgraph.stages.sinks.delivery.selection import Selection, new_incidents_and_cameras
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
from camgraph.stages.sinks.delivery.web.web_sink import Request, WebSettings, WebSink

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OURS = re.compile(r"(?i)host|content-length|transfer-encoding|connection|te|upgrade|expect|webhook-.*|ce-.*")


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


class SinkWebhookSettings(WebSettings, FootageSettings):
    """The server, what it gets, and how it knows us."""

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


class SinkWebhook(WebSink[SinkWebhookSettings]):
    """An event -> a POST."""

    settings_type = SinkWebhookSettings

    def __init__(self, settings: SinkWebhookSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._footage = FootageFiles(settings.footage_folders, context.base_folder)
        if settings.chat and settings.only is None:
            self._selection = Selection(new_incidents_and_cameras(), settings.never, settings.time_zone)

    @classmethod
    def follow(cls, settings: SinkWebhookSettings, base_folder: Path, upstream: Upstream) -> Mapping[str, Any]:
        footage = footage_beside(settings, upstream) if settings.chat else {}
        return {**super().follow(settings, base_folder, upstream), **footage}

    def secrets(self) -> Sequence[str]:
        settings = self.settings
        authorization = _authorization(settings).get("Authorization", "").rpartition(" ")[2]
        own = [settings.bearer_token or "", settings.password or "", authorization, *(settings.signing_secrets or ())]
        return [*super().secrets(), *own, *settings.headers.values()]

    # ---- requests

    def requests(self, events: Sequence[EventView]) -> Iterator[Request]:
        plain = self._batches(events) if self.settings.mode == "batched" else map(self.request, events)
        return map(self._with_headers, plain)

    def request(self, view: EventView) -> Request:
        return Request((view,), header_value(view.event.own_id), *self._content(view))

    def _with_headers(self, request: Request) -> Request:
        """With the headers that tell the server who we are; the signature tells when, and is made for each request."""
        settings = self.settings
        signed = signed_headers(settings.signing_secrets or (), request.id, int(time.time()), request.body)
        return request._replace(headers={**request.headers, **signed, **settings.headers, **_authorization(settings)})

    def _content(self, view: EventView) -> tuple[Headers, bytes] | ChatRequest:
        settings = self.settings
        if settings.chat is not None:
            return chat_request(
                settings.chat, view, settings.time_zone, self._picture(view, settings.chat), self.address.target
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

    def _batches(self, events: Sequence[EventView]) -> Iterator[Request]:
        """As many events in one request as fit into `most_bytes`; one that was refused in a batch by itself."""
        batch: list[tuple[EventView, bytes]] = []
        size = 0
        for view in events:
            _, line = lean(view.body, view.event.body, self.settings.most_bytes)
            size += len(line) + 1
            if batch and (size >= self.settings.most_bytes or self.is_alone(view)):
                yield _batch(batch)
                batch, size = [], len(line) + 1
            batch.append((view, line))
            if self.is_alone(view):
                yield _batch(batch)
                batch, size = [], 0
        if batch:
            yield _batch(batch)


def _batch(events: Sequence[tuple[EventView, bytes]]) -> Request:
    headers, body = batched([line for _, line in events])
    names = " ".join(view.event.own_id for view, _ in events)
    return Request(tuple(view for view, _ in events), hashlib.sha256(names.encode()).hexdigest()[:32], headers, body)


def _authorization(settings: SinkWebhookSettings) -> Headers:
    if settings.bearer_token:
        return {"Authorization": f"Bearer {settings.bearer_token}"}
    if settings.username and settings.password:
        pair = f"{settings.username}:{settings.password}".encode()
        return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
    return {}
