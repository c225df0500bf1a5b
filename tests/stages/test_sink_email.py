"""Mails to a real SMTP server."""

from __future__ import annotations

import email
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import trustme
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from camgraph_test_stages.incident_views import incident
from pydantic import ValidationError

from pipeline.errors import Unavailable
from pipeline.messages import Event
from pipeline.testing import feed, opened, reports_of
from stages.sink_email import SinkEmail, SinkEmailSettings

PASSWORD = "open-sesame-7731"
SETTINGS: dict[str, Any] = {
    "server": "127.0.0.1",
    "security": "none",
    "sender": "Ward 3 <ward3@example.org>",
    "to": ["night@example.org", "Chief <chief@example.org>"],
    "picture_within": "1s",
}


class Mailbox:
    """What a server has taken, and what it answers."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.recipients: list[list[str]] = []
        self.refused: dict[str, str] = {}
        self.answer = "250 OK"
        self.sender_answer = "250 OK"
        self.dies = 0
        """So many times the connection breaks once a mail has come, before the answer."""

    async def handle_MAIL(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        envelope.mail_from = address
        return self.sender_answer

    async def handle_RCPT(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address in self.refused:
            return self.refused[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        if self.answer.startswith("250"):
            mail = email.message_from_bytes(envelope.content or b"", policy=default)
            assert isinstance(mail, EmailMessage)
            self.mails.append(mail)
            self.recipients.append(list(envelope.rcpt_tos))
        if self.dies:
            self.dies -= 1
            assert server.transport is not None
            server.transport.abort()
        return self.answer


@contextmanager
def serving(mailbox: Mailbox, port: int = 0, **options: Any) -> Iterator[int]:
    port = port or free_port()
    controller = Controller(mailbox, hostname="127.0.0.1", port=port, **options)
    controller.start()
    try:
        yield port
    finally:
        controller.stop()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def push(stage: SinkEmail, events: list[Event], *, within_s: float = 60.0) -> None:
    """Hand in the same events until they are taken, as the runtime does."""
    until_s = time.monotonic() + within_s
    while True:
        try:
            feed(stage, events, batch=len(events))
        except Unavailable:
            if time.monotonic() > until_s:
                raise
            threading.Event().wait(0.02)
        else:
            return


def start(number: int = 1, **data: Any) -> Event:
    return incident(f"i{number}", "start", at_s=number, camera="room-3", **data).event


EVIDENCE = {"conditions": [{"text": "lying for 3s", "holds": True}]}


def test_a_mail_shows_and_tells_what_happened(tmp_path: Path) -> None:
    picture = np.full((60, 80, 3), 120, np.uint8)
    (tmp_path / "footage").mkdir()
    cv2.imwrite(str(tmp_path / "footage" / "a.jpg"), picture)
    box = Mailbox()
    with serving(box) as port, opened(SinkEmail, {**SETTINGS, "port": port}, folder=tmp_path) as stage:
        push(stage, [start(snapshot="footage/a.jpg", clip="footage/a.mp4", evidence=EVIDENCE)])
    [mail] = box.mails
    assert mail["Subject"] == "Fall on room-3, 12:00:01"
    assert mail["From"] == "Ward 3 <ward3@example.org>"
    assert box.recipients == [["night@example.org", "chief@example.org"]]
    assert mail["Auto-Submitted"] == "auto-generated"
    plain = mail.get_body(("plain",))
    rich = mail.get_body(("html",))
    assert plain is not None
    assert rich is not None
    text = plain.get_content().replace("\r\n", "\n")
    assert "Fall on room-3\n2026-11-23, 12:00:01\n" in text
    assert "Why: lying for 3s: true" in text
    assert "Place:" not in text, "a line without values is left out"
    assert "camgraph incidents show i1" in text
    [image] = [part for part in mail.walk() if part.get_content_type() == "image/jpeg"]
    assert f'src="cid:{image["Content-ID"].strip("<>")}"' in rich.get_content()
    shown = cv2.imdecode(np.frombuffer(image.get_content(), np.uint8), cv2.IMREAD_COLOR)
    assert shown.shape == picture.shape


def test_by_default_an_incident_is_one_mail(tmp_path: Path) -> None:
    box = Mailbox()
    views = [incident("a", "start"), incident("a", "update"), incident("a", "end"), incident("b", "single")]
    with serving(box) as port, opened(SinkEmail, {**SETTINGS, "port": port}, folder=tmp_path) as stage:
        push(stage, [view.event for view in views])
        assert reports_of(stage).counts == {("written", "cam"): 2, ("filtered", "cam"): 2}
    assert len(box.mails) == 2
    assert box.mails[0]["Message-ID"] != box.mails[1]["Message-ID"]


def test_the_mail_waits_for_the_picture(tmp_path: Path) -> None:
    box = Mailbox()
    settings = {**SETTINGS, "picture_within": "60s"}
    with serving(box) as port, opened(SinkEmail, {**settings, "port": port}, folder=tmp_path) as stage:
        with pytest.raises(Unavailable, match="being made") as waits:
            feed(stage, [start(snapshot="a.jpg")])
        assert waits.value.patient
        (tmp_path / "a.jpg").write_bytes(b"\xff\xd8 a picture")
        push(stage, [start(snapshot="a.jpg")])
    assert [part.get_content_type() for part in box.mails[0].walk()].count("image/jpeg") == 1


def test_without_the_picture_the_mail_says_so(tmp_path: Path) -> None:
    box = Mailbox()
    with serving(box) as port, opened(SinkEmail, {**SETTINGS, "port": port}, folder=tmp_path) as stage:
        push(stage, [start(snapshot="never.jpg")])
        (tmp_path / "large.jpg").write_bytes(b"x" * 6_000_000)
        push(stage, [start(2, snapshot="large.jpg")])
    texts = [str(mail.get_body(("plain",)).get_content()) for mail in box.mails]  # type: ignore[union-attr]
    assert "not ready in time" in texts[0]
    assert "too large" in texts[1]


@pytest.mark.parametrize(
    "hostile", ["x\r\nBcc: all@example.org", "x\nSubject: other", "\x1b[2J<script>alert(1)</script>"]
)
def test_text_of_an_event_stays_text(tmp_path: Path, hostile: str) -> None:
    box = Mailbox()
    with serving(box) as port, opened(SinkEmail, {**SETTINGS, "port": port}, folder=tmp_path) as stage:
        push(stage, [incident("i", "start", camera=hostile, action=hostile).event])
    [mail] = box.mails
    assert mail["Bcc"] is None
    assert len(mail.get_all("Subject", [])) == 1
    assert "\n" not in mail["Subject"]
    assert "<script>" not in mail.get_body(("html",)).get_content()  # type: ignore[union-attr]


def test_a_server_that_restarts_gets_each_event_once(tmp_path: Path) -> None:
    box, port = Mailbox(), free_port()
    with opened(SinkEmail, {**SETTINGS, "port": port}, folder=tmp_path) as stage:
        stage._attempts._pauses_s = (0.05,)  # the pauses themselves are tested elsewhere
        with serving(box, port):
            push(stage, [start(1), start(2)])
        with pytest.raises(Unavailable, match="Connection refused"):
            push_until_trouble(stage, start(3))
        with serving(box, port):
            push(stage, [start(3), start(4)])
    assert [mail["Subject"][-2:] for mail in box.mails] == ["01", "02", "03", "04"]


def test_a_mail_whose_answer_is_lost_comes_again_under_the_same_id(tmp_path: Path) -> None:
    box = Mailbox()
    box.dies = 2
    with serving(box) as port, opened(SinkEmail, {**SETTINGS, "port": port}, folder=tmp_path) as stage:
        stage._attempts._pauses_s = (0.05,)
        with pytest.raises(Unavailable, match="closed the connection"):
            push_until_trouble(stage, start())
        push(stage, [start(), start(2)])
    first, second = {mail["Message-ID"] for mail in box.mails[:3]}, {mail["Message-ID"] for mail in box.mails[3:]}
    assert len(box.mails) == 4
    assert len(first) == len(second) == 1
    assert first != second


def test_a_sender_that_is_refused_may_be_mended(tmp_path: Path) -> None:
    box = Mailbox()
    with serving(box) as port, opened(SinkEmail, {**SETTINGS, "port": port}, folder=tmp_path) as stage:
        stage._attempts._pauses_s = (0.05,)
        box.sender_answer = "550 you are not ward3"
        with pytest.raises(Unavailable, match=r"refuses the sender ward3@example.org: 550 you are not ward3"):
            push_until_trouble(stage, start())
        box.sender_answer = "552 too large"
        push(stage, [start()])
        box.sender_answer = "250 OK"
        push(stage, [start(2)])
        assert [letter.id for letter in stage.context.dead_letters] == [start().own_id]
    assert len(box.mails) == 1


def test_no_password_goes_to_a_server_without_encryption(tmp_path: Path) -> None:
    box, asked = Mailbox(), list[LoginPassword]()

    def takes_any(
        server: SMTP, session: Session, envelope: Envelope, mechanism: str, given: LoginPassword
    ) -> AuthResult:
        asked.append(given)
        return AuthResult(success=True)

    settings = {**SETTINGS, "security": "starttls", "user": "ward", "password": PASSWORD}
    with serving(box, authenticator=takes_any, auth_require_tls=False) as port:
        with opened(SinkEmail, {**settings, "port": port}, folder=tmp_path) as stage:
            with pytest.raises(Unavailable, match="STARTTLS") as error:
                push_until_trouble(stage, start())
    assert (asked, box.mails) == ([], [])
    assert PASSWORD not in str(error.value)


def test_answers_of_the_server(tmp_path: Path) -> None:
    box = Mailbox()
    with serving(box) as port, opened(SinkEmail, {**SETTINGS, "port": port}, folder=tmp_path) as stage:
        stage._attempts._pauses_s = (0.05,)
        box.answer = "451 try again later"
        with pytest.raises(Unavailable, match="451 try again later"):
            push_until_trouble(stage, start(1))
        box.answer = "554 spam"
        push(stage, [start(2)])
        box.answer, box.refused = "250 OK", {"chief@example.org": "550 no such user"}
        push(stage, [start(3)])
        box.refused["night@example.org"] = "550 gone"
        push(stage, [start(4)])
        counts = reports_of(stage).counts
        letters = [(letter.id, letter.why) for letter in stage.context.dead_letters]
    assert box.recipients == [["night@example.org"]]
    assert counts["recipients_refused", "room-3"] == 1
    assert counts["dropped.refused", "room-3"] == 2
    assert [why.partition(": ")[2][:12] for _, why in letters] == ["554 spam", "it refuses a"]


def push_until_trouble(stage: SinkEmail, event: Event) -> None:
    """Raises Unavailable once the sink is not just busy."""
    for _ in range(1000):
        try:
            feed(stage, [event])
        except Unavailable as error:
            if not error.patient:
                raise
            threading.Event().wait(0.02)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def knows(server: SMTP, session: Session, envelope: Envelope, mechanism: str, given: LoginPassword) -> AuthResult:
    return AuthResult(success=given.password == PASSWORD.encode(), handled=False)  # the server answers


@pytest.mark.parametrize("security", ["starttls", "tls"])
@pytest.mark.filterwarnings("ignore:Requiring AUTH:UserWarning")  # the server does not see TLS from the first byte
def test_encrypted_and_logged_in(tmp_path: Path, authority: trustme.CA, security: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    more: dict[str, Any] = {"authenticator": knows, "auth_required": True}
    more |= {"tls_context": context, "require_starttls": True} if security == "starttls" else {"ssl_context": context}
    if security == "tls":
        more["auth_require_tls"] = False
    settings = {
        **SETTINGS,
        "security": security,
        "user": "ward",
        "password": PASSWORD,
        "tls": {"ca": "ca.pem", "server_name": "localhost"},
    }
    box = Mailbox()
    with serving(box, **more) as port:
        with opened(SinkEmail, {**settings, "port": port}, folder=tmp_path) as stage:
            push(stage, [start()])
        assert len(box.mails) == 1
        with opened(SinkEmail, {**settings, "port": port, "password": "wrong-password"}, folder=tmp_path) as stage:
            with pytest.raises(Unavailable, match="refuses the user or the password") as refused:
                push_until_trouble(stage, start(2))
        assert "wrong-password" not in str(refused.value)
        with opened(SinkEmail, {**settings, "port": port, "tls": None}, folder=tmp_path) as stage:
            with pytest.raises(Unavailable, match="`ca` of `tls`"):
                push_until_trouble(stage, start(3))


def test_a_server_that_is_silent_is_given_up(tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        settings = {**SETTINGS, "port": silent.getsockname()[1], "limit": "1s"}
        with opened(SinkEmail, settings, folder=tmp_path) as stage:
            with pytest.raises(Unavailable, match="not taken within 1s"):
                push_until_trouble(stage, start())


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"to": []}, "at least 1 item"),
        ({"to": "nobody"}, "such as ward@example.org"),
        ({"sender": "a@b\r\nBcc: c@d"}, "such as ward@example.org"),
        ({"user": "ward"}, "go together"),
        ({"user": "ward", "password": "x", "server": "mail.example.org"}, "without encryption"),
        ({"subject": "{camra}"}, "did you mean `camera`"),
        ({"server": "smtp://mail"}, "pattern"),
    ],
)
def test_mistakes(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        SinkEmailSettings.model_validate({**SETTINGS, **wrong})
