"""An alert as a chat or a push service shows it: a title, a few lines, and the picture where the service takes one.

| service | request | picture |
|---|---|---|
| slack (also Mattermost, Rocket.Chat) | JSON to an incoming webhook | none: such webhooks take no files |
| teams | JSON with an adaptive card, to a webhook of Workflows | none, as above |
| discord | a form with the file and `payload_json`, to a webhook | in the embed |
| telegram | `sendPhoto` with a caption, `sendMessage` without a picture | above the caption |
| ntfy | the file to the address of the topic, with the text in headers | as the attachment |

Source: the documentation of each service, 2026.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qs, urlsplit

from camgraph.stages.sinks.delivery.event_view import EventView
from camgraph.stages.sinks.delivery.template import filled, filled_lines, one_line
from camgraph.stages.sinks.delivery.web.cloudevents_http import Headers, as_json

Chat = Literal["slack", "discord", "telegram", "ntfy", "teams"]
WITH_PICTURES = frozenset({"discord", "telegram", "ntfy"})
MOST_PICTURE = 8 << 20
"""Bytes; the least that one of the services takes."""
_TITLE = "{what}, {time} {time_zone}"
_TEXT = "{notice}\n{about}\nSeverity: {severity}\nPlace: {zones}\nWhy: {why}"
_MOST_TITLE, _MOST_TEXT = 200, 800
"""Letters: a caption of Telegram has at most 1024, with both."""
_FILE = "picture.jpg"
_URGENCY = {"alarm": "5", "warning": "4"}
_COLOURS = {"alarm": 0xD32F2F, "warning": 0xF9A825}
_METHOD = re.compile(r"/send(Message|Photo)(?=\?)")


class ChatRequest(NamedTuple):
    """`target`: the path and query to post to, "" for those of the URL."""

    headers: Headers
    body: bytes
    target: str = ""


class _Alert(NamedTuple):
    title: str
    text: str
    severity: str


def wrong_target(chat: str, url: str) -> str:
    """Why this URL cannot be that of the service; "" if it can."""
    parts = urlsplit(url)
    if chat == "telegram" and not (_METHOD.search(f"{parts.path}?") and parse_qs(parts.query).get("chat_id")):
        return "for Telegram expected a path that ends with /sendMessage, and behind it `?chat_id=NUMBER`"
    if chat == "ntfy" and not parts.path.strip("/"):
        return "for ntfy expected the topic behind the host, as in https://HOST/TOPIC"
    return ""


def chat_request(chat: Chat, view: EventView, time_zone: str, picture: bytes | None, target: str) -> ChatRequest:
    """The request for one event. `picture`: a JPEG, for services `WITH_PICTURES`. `target`: that of the URL."""
    title = one_line(filled(_TITLE, view, time_zone))[:_MOST_TITLE]
    text = filled_lines(_TEXT, view, time_zone).strip()[:_MOST_TEXT]
    alert = _Alert(title[:1].upper() + title[1:], text, view.severity)
    if chat == "telegram":
        return _telegram(alert, picture, target)
    if chat == "ntfy":
        return _ntfy(alert, picture)
    if chat == "discord":
        return _discord(alert, picture)
    return _json(_slack(alert) if chat == "slack" else _teams(alert))


def _telegram(alert: _Alert, picture: bytes | None, target: str) -> ChatRequest:
    """Plain text: without `parse_mode`, no letter of it means anything."""
    text = f"{alert.title}\n{alert.text}".strip()
    if picture is None:
        return ChatRequest(*_form({"text": text}), _METHOD.sub("/sendMessage", target))
    return ChatRequest(*_form({"caption": text}, photo=picture), _METHOD.sub("/sendPhoto", target))


def _ntfy(alert: _Alert, picture: bytes | None) -> ChatRequest:
    headers = {"Title": _encoded(alert.title), "Priority": _URGENCY.get(alert.severity, "3")}
    if picture is None:
        return ChatRequest({**headers, "Content-Type": "text/plain; charset=utf-8"}, alert.text.encode())
    lines = _encoded(alert.text.replace("\n", "\\n"))  # as ntfy writes a line break in a header
    return ChatRequest({**headers, "Message": lines, "Filename": _FILE, "Content-Type": "image/jpeg"}, picture)


def _discord(alert: _Alert, picture: bytes | None) -> ChatRequest:
    embed: dict[str, Any] = {"title": alert.title, "description": alert.text}
    embed |= {"color": _COLOURS[alert.severity]} if alert.severity in _COLOURS else {}
    message = {"embeds": [embed], "allowed_mentions": {"parse": []}}  # nobody is called by a name in the text
    if picture is None:
        return _json(message)
    embed["image"] = {"url": f"attachment://{_FILE}"}
    return ChatRequest(*_form({"payload_json": as_json(message).decode()}, **{"files[0]": picture}))


def _slack(alert: _Alert) -> Mapping[str, Any]:
    """With `&`, `<` and `>` escaped, nothing in it is a link or calls anybody."""
    title, text = (html.escape(one, quote=False) for one in (alert.title, alert.text))
    return {"text": f"*{title}*\n{text}".strip()}


def _teams(alert: _Alert) -> Mapping[str, Any]:
    blocks = [
        {"type": "TextBlock", "text": alert.title, "weight": "bolder", "size": "medium", "wrap": True},
        *({"type": "TextBlock", "text": line, "wrap": True} for line in alert.text.splitlines()),
    ]
    card = {"type": "AdaptiveCard", "version": "1.4", "body": blocks}
    kind = "application/vnd.microsoft.card.adaptive"
    return {"type": "message", "attachments": [{"contentType": kind, "content": card}]}


def _json(message: Mapping[str, Any]) -> ChatRequest:
    return ChatRequest({"Content-Type": "application/json"}, as_json(dict(message)))


def _encoded(text: str) -> str:
    """Fit for a header, also with letters beyond ASCII (RFC 2047)."""
    return text if text.isascii() else f"=?UTF-8?B?{base64.b64encode(text.encode()).decode()}?="


def _form(fields: Mapping[str, str], **files: bytes) -> tuple[Headers, bytes]:
    """multipart/form-data: content type and body."""
    parts = [(f'name="{name}"', text.encode()) for name, text in fields.items()]
    parts += [(f'name="{name}"; filename="{_FILE}"\r\nContent-Type: image/jpeg', data) for name, data in files.items()]
    boundary = hashlib.sha256(b"\0".join(data for _, data in parts)).hexdigest()  # nothing in them can know it
    head = f"--{boundary}\r\nContent-Disposition: form-data; "
    lines = [f"{head}{names}\r\n\r\n".encode() + data + b"\r\n" for names, data in parts]
    return {"Content-Type": f"multipart/form-data; boundary={boundary}"}, b"".join(
        lines
    ) + f"--{boundary}--\r\n".encode()
