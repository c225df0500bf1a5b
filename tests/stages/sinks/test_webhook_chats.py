"""What chats and push services get of an incident, over real HTTP."""

from __future__ import annotations

import json
from email import message_from_bytes
from email.header import decode_header, make_header
from pathlib import Path
from typing import Any, get_args

import pytest
from camgraph_test_stages.delivering import delivering, hand_in
from camgraph_test_stages.incident_views import incident
from camgraph_test_stages.web_receiver import Request, WebReceiver, web_receiver
from pydantic import ValidationError

from camgraph.pipeline.errors import Unavailable
from camgraph.stages.sinks.delivery.web.chats import Chat
from camgraph.stages.sinks.sink_webhook import SinkWebhook, SinkWebhookSettings

PICTURE = b"\xff\xd8 a picture \r\n--x"
PATHS = {"telegram": "/bot123:abc/sendMessage?chat_id=-1001", "ntfy": "/ward"}
EVIDENCE = {"conditions": [{"text": "lying for 3s", "holds": True}]}
TITLE = "Fall on Zimmer <3> & Küche, 12:00:01 UTC"


def settings(receiver: WebReceiver, chat: str, **more: Any) -> dict[str, Any]:
    url = f"http://127.0.0.1:{receiver.port}{PATHS.get(chat, '/hook')}"
    return {"url": url, "allow_private": True, "chat": chat, **more}


def parts(request: Request) -> dict[str, bytes]:
    """Of a form: name of the field -> its content."""
    kind = request.headers["content-type"].encode()
    form = message_from_bytes(b"Content-Type: " + kind + b"\r\n\r\n" + request.body)
    fields = [part for part in form.walk() if not part.is_multipart()]
    return {str(one.get_param("name", header="content-disposition")): one.get_payload(decode=True) for one in fields}  # type: ignore[misc]


def alert(folder: Path, chat: str, *, with_picture: bool) -> Request:
    """The only request about a whole incident."""
    if with_picture:
        (folder / "a.jpg").write_bytes(PICTURE)
    facts: dict[str, Any] = {"camera": "Zimmer <3> & Küche", "evidence": EVIDENCE}
    facts |= {"snapshot": "a.jpg"} if with_picture else {}
    phases = [incident("a", phase, at_s=1, **facts).event for phase in ("start", "update", "end")]
    with web_receiver() as receiver, delivering(SinkWebhook, settings(receiver, chat), folder) as sink:
        assert hand_in(sink, phases) == []
        [request] = receiver.requests
    return request


@pytest.mark.parametrize("with_picture", [True, False])
@pytest.mark.parametrize("chat", get_args(Chat))
def test_incident_is_one_alert_in_the_form_of_the_service(tmp_path: Path, chat: str, with_picture: bool) -> None:
    request = alert(tmp_path, chat, with_picture=with_picture)
    shown = TITLES[chat](request, with_picture)
    assert shown.splitlines()[0] == TITLE
    assert "Why: Lying for 3s: yes" in shown


def telegram(request: Request, with_picture: bool) -> str:
    method, text = ("sendPhoto", "caption") if with_picture else ("sendMessage", "text")
    assert request.path == f"/bot123:abc/{method}?chat_id=-1001"
    fields = parts(request)
    assert fields.get("photo") == (PICTURE if with_picture else None)
    return fields[text].decode()


def discord(request: Request, with_picture: bool) -> str:
    fields = parts(request) if with_picture else {"payload_json": request.body}
    message = json.loads(fields["payload_json"])
    [embed] = message["embeds"]
    assert fields.get("files[0]") == (PICTURE if with_picture else None)
    assert embed.get("image") == ({"url": "attachment://picture.jpg"} if with_picture else None)
    assert message["allowed_mentions"] == {"parse": []}
    return f"{embed['title']}\n{embed['description']}"


def ntfy(request: Request, with_picture: bool) -> str:
    assert request.path == "/ward"
    assert request.headers["priority"] == "4"
    title = str(make_header(decode_header(request.headers["title"])))
    if not with_picture:
        return f"{title}\n{request.body.decode()}"
    assert request.body == PICTURE
    assert request.headers["filename"] == "picture.jpg"
    message = str(make_header(decode_header(request.headers["message"])))
    return f"{title}\n{message}".replace("\\n", "\n")


def slack(request: Request, _: bool) -> str:
    text = str(json.loads(request.body)["text"])
    assert text.startswith("*Fall on Zimmer &lt;3&gt; &amp; Küche")
    plain = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return plain.replace("*", "", 2)


def teams(request: Request, _: bool) -> str:
    [attachment] = json.loads(request.body)["attachments"]
    return "\n".join(block["text"] for block in attachment["content"]["body"])


TITLES = {"telegram": telegram, "discord": discord, "ntfy": ntfy, "slack": slack, "teams": teams}


def test_alert_waits_for_the_picture_and_goes_without_it(tmp_path: Path) -> None:
    begin = incident("a", "start", snapshot="a.jpg").event
    with web_receiver() as receiver:
        with delivering(SinkWebhook, settings(receiver, "telegram", picture_within="60s"), tmp_path) as sink:
            with pytest.raises(Unavailable, match="being made") as waits:
                sink.process([begin])
            assert waits.value.patient
            (tmp_path / "a.jpg").write_bytes(PICTURE)
            hand_in(sink, [begin])
        other = incident("b", "start", snapshot="never.jpg").event
        with delivering(SinkWebhook, settings(receiver, "telegram", picture_within="1s"), tmp_path) as sink:
            hand_in(sink, [other])
        assert [request.path.partition("?")[0][-9:] for request in receiver.requests] == ["sendPhoto", "ndMessage"]


def test_further_phases_come_if_they_are_asked_for(tmp_path: Path) -> None:
    phases = [incident("a", phase).event for phase in ("start", "end")]
    with web_receiver() as receiver:
        with delivering(SinkWebhook, settings(receiver, "slack", only={"phase": ["start", "end"]}), tmp_path) as sink:
            hand_in(sink, phases)
        assert len(receiver.requests) == 2


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"chat": "slack", "body": "x"}, "`body` and `chat`: a request has only one of them"),
        ({"chat": "slack", "mode": "batched"}, "leave it out, or `chat`"),
        ({"chat": "telegram"}, "for Telegram expected"),
        ({"chat": "telegram", "url": "https://api.telegram.org/bot1:a/sendMessage"}, "chat_id=NUMBER"),
        ({"chat": "ntfy", "url": "https://ntfy.example.org/"}, "https://HOST/TOPIC"),
    ],
)
def test_mistakes(more: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        SinkWebhookSettings.model_validate({"url": "https://a.example.org/x", **more})
