"""Mails to a real SMTP server."""

from __future__ import annotations

import asyncio
import email
import json
import os
import smtplib
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import structlog
import trustme
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from camgraph_test_stages.brokers import free_port
from camgraph_test_stages.delivering import delivering, hand_in, letters, refusal
from camgraph_test_stages.incident_views import incident
from camgraph_test_stages.waiting import until
from pydantic import ValidationError

from camgraph.pipeline.dead_letters import DeadLetters
from camgraph.pipeline.errors import EnvironmentProblem, Unavailable
from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.messages import End, EndReason, Event
from camgraph.pipeline.outbox.outbox_folder import outbox_folder
from camgraph.pipeline.plan import EVERY_CAMERA
from camgraph.pipeline.supervision.supervisor import Supervisor
from camgraph.pipeline.system.paths import STATE_DIR
from camgraph.pipeline.testing import feed, reports_of, run_graph, stamp
from camgraph.stages.sinks import sink_email
from camgraph.stages.sinks.delivery.event_sink import Refused
from camgraph.stages.sinks.delivery.mail import postponed
from camgraph.stages.sinks.delivery.mail.mail_answers import answer_of, is_for_good
from camgraph.stages.sinks.delivery.mail.mail_server import Conversation
from camgraph.stages.sinks.delivery.mail.postponed import Postponed, PostponedMail
from camgraph.stages.sinks.sink_email import SinkEmail, SinkEmailSettings

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


@contextmanager
def sink_to(port: int, folder: Path, **more: Any) -> Iterator[SinkEmail]:
    with delivering(SinkEmail, {**SETTINGS, "port": port, **more}, folder) as stage:
        yield stage


def start(number: int = 1, **data: Any) -> Event:
    return incident(f"i{number}", "start", at_s=number, camera="room-3", **data).event


EVIDENCE = {"conditions": [{"text": "lying for 3s", "holds": True}]}


def test_a_mail_shows_and_tells_what_happened(tmp_path: Path) -> None:
    picture = np.full((60, 80, 3), 120, np.uint8)
    (tmp_path / "footage").mkdir()
    cv2.imwrite(str(tmp_path / "footage" / "a.jpg"), picture)
    box = Mailbox()
    with serving(box) as port, sink_to(port, tmp_path) as stage:
        hand_in(stage, [start(snapshot="footage/a.jpg", clip="footage/a.mp4", evidence=EVIDENCE)])
    [mail] = box.mails
    assert mail["Subject"] == "Fall on room-3, 12:00:01 UTC"
    assert mail["From"] == "Ward 3 <ward3@example.org>"
    assert box.recipients == [["night@example.org", "chief@example.org"]]
    assert mail["Auto-Submitted"] == "auto-generated"
    plain = mail.get_body(("plain",))
    rich = mail.get_body(("html",))
    assert plain is not None
    assert rich is not None
    text = plain.get_content().replace("\r\n", "\n")
    head = "Fall on room-3\n2026-11-23, 12:00:01 UTC\nSeverity: warning\n"
    assert text == f"{head}Why: Lying for 3s: yes\nThe picture is attached.\n"
    [image] = [part for part in mail.walk() if part.get_content_type() == "image/jpeg"]
    assert f'src="cid:{image["Content-ID"].strip("<>")}"' in rich.get_content()
    shown = cv2.imdecode(np.frombuffer(image.get_content(), np.uint8), cv2.IMREAD_COLOR)
    assert shown.shape == picture.shape


def test_by_default_an_incident_is_one_mail(tmp_path: Path) -> None:
    box = Mailbox()
    views = [incident("a", "start"), incident("a", "update"), incident("a", "end"), incident("b", "single")]
    with serving(box) as port, sink_to(port, tmp_path) as stage:
        hand_in(stage, [view.event for view in views])
        assert reports_of(stage).counts == {("written", "cam"): 2, ("filtered", "cam"): 2}
    assert len(box.mails) == 2
    assert box.mails[0]["Message-ID"] != box.mails[1]["Message-ID"]


def test_the_mail_waits_for_the_picture(tmp_path: Path) -> None:
    box = Mailbox()
    with serving(box) as port, sink_to(port, tmp_path, picture_within="60s") as stage:
        with pytest.raises(Unavailable, match="being made") as waits:
            feed(stage, [start(snapshot="a.jpg")])
        assert waits.value.patient
        (tmp_path / "a.jpg").write_bytes(b"\xff\xd8 a picture")
        hand_in(stage, [start(snapshot="a.jpg")])
    assert [part.get_content_type() for part in box.mails[0].walk()].count("image/jpeg") == 1


def test_without_the_picture_the_mail_says_so(tmp_path: Path) -> None:
    box = Mailbox()
    with serving(box) as port, sink_to(port, tmp_path) as stage:
        hand_in(stage, [start(snapshot="never.jpg")])
        (tmp_path / "large.jpg").write_bytes(b"\xff\xd8" * 3_000_000)
        hand_in(stage, [start(2, snapshot="large.jpg")])
    texts = [str(mail.get_body(("plain",)).get_content()) for mail in box.mails]  # type: ignore[union-attr]
    assert "not ready in time" in texts[0]
    assert "too large" in texts[1]


@pytest.mark.parametrize("name", ["../private.jpg", "linked.jpg", "{folder}/private.jpg", ".env"])
def test_no_file_elsewhere_is_ever_mailed(tmp_path: Path, name: str) -> None:
    (tmp_path / "private.jpg").write_bytes(b"\xff\xd8 private")
    folder = tmp_path / "graph"
    folder.mkdir()
    (folder / "linked.jpg").symlink_to(tmp_path / "private.jpg")
    (folder / ".env").write_text("MAIL=private")
    box = Mailbox()
    with serving(box) as port, sink_to(port, folder) as stage:
        hand_in(stage, [start(snapshot=name.format(folder=tmp_path))])
    [mail] = box.mails
    assert [part.get_content_type() for part in mail.walk()].count("image/jpeg") == 0
    assert b"private" not in mail.as_bytes().replace(b"private.jpg", b"")
    assert "There is no picture." in text_of(mail)


def text_of(mail: EmailMessage) -> str:
    plain = mail.get_body(("plain",))
    assert plain is not None
    return str(plain.get_content()).replace("\r\n", "\n")


def test_a_link_leads_to_the_incident(tmp_path: Path) -> None:
    box = Mailbox()
    link = {"link": "https://cameras.example.org/{camera}/{incident}?a=1&b=2"}
    with serving(box) as port, sink_to(port, tmp_path, **link, time_zone="Europe/Berlin") as stage:
        hand_in(stage, [incident("i1", "start", camera="room 3/<b>").event, camera_event("lost", "start")])
    url = "https://cameras.example.org/room%203%2F%3Cb%3E/i1?a=1&b=2"
    assert text_of(box.mails[0]).endswith(f"See it here: {url}\n")
    assert f'href="{url.replace("&", "&amp;")}"' in box.mails[0].get_body(("html",)).get_content()  # type: ignore[union-attr]
    assert "https://" not in box.mails[1].as_string()


def camera_event(name: str, phase: str, **data: Any) -> Event:
    facts = {"incident": "c1", "phase": phase, "camera": "room-3", **data}
    body = {"id": f"c-{name}", "type": f"camgraph.camera.{name}", "time": "2026-07-01T12:00:00.000Z", "data": facts}
    return Event(stamp(0, "room-3"), f"c-{name}", "c1", phase, json.dumps(body).encode())


def test_by_default_lost_cameras_are_mailed_too(tmp_path: Path) -> None:
    box = Mailbox()
    lost = camera_event("lost", "start", state="stalled", why="no frame for 5 s")
    back = camera_event("back", "end", state="live", why="", lost_s=200.4)
    with serving(box) as port, sink_to(port, tmp_path, time_zone="Europe/Berlin") as stage:
        hand_in(stage, [lost, back])
    first, second = box.mails
    assert first["Subject"] == "Camera room-3 is lost, 14:00:00 CEST"
    assert text_of(first) == (
        "Camera room-3 is lost\n2026-07-01, 14:00:00 CEST\n"
        "Until it is back, nothing that happens there is noticed.\nWhy: no frame for 5 s\n"
    )
    assert text_of(second) == "Camera room-3 is back\n2026-07-01, 14:00:00 CEST\nIt was away for 3 min 20 s.\n"


@pytest.mark.parametrize(
    "hostile", ["x\r\nBcc: all@example.org", "x\nSubject: other", "\x1b[2J<script>alert(1)</script>"]
)
def test_text_of_an_event_stays_text(tmp_path: Path, hostile: str) -> None:
    box = Mailbox()
    with serving(box) as port, sink_to(port, tmp_path) as stage:
        hand_in(stage, [incident("i", "start", camera=hostile, action=hostile).event])
    [mail] = box.mails
    assert mail["Bcc"] is None
    assert len(mail.get_all("Subject", [])) == 1
    assert "\n" not in mail["Subject"]
    assert "<script>" not in mail.get_body(("html",)).get_content()  # type: ignore[union-attr]


def test_a_mail_with_a_lost_answer_is_resent_with_the_same_id(tmp_path: Path) -> None:
    box = Mailbox()
    box.dies = 2
    with serving(box) as port, sink_to(port, tmp_path) as stage:
        assert "closed the connection" in refusal(stage, [start()])
        hand_in(stage, [start(), start(2)])
    first, second = {mail["Message-ID"] for mail in box.mails[:3]}, {mail["Message-ID"] for mail in box.mails[3:]}
    assert len(box.mails) == 4
    assert len(first) == len(second) == 1
    assert first != second


def test_a_sender_that_is_refused_may_be_mended(tmp_path: Path) -> None:
    box = Mailbox()
    with serving(box) as port, sink_to(port, tmp_path) as stage:
        box.sender_answer = "550 you are not ward3"
        assert "refuses the sender ward3@example.org: 550 you are not ward3" in refusal(stage, [start()])
        box.sender_answer = "552 too large"
        hand_in(stage, [start()])
        box.sender_answer = "250 OK"
        hand_in(stage, [start(2)])
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
        with delivering(SinkEmail, {**settings, "port": port}, tmp_path) as stage:
            why = refusal(stage, [start()])
            assert "STARTTLS" in why
            assert PASSWORD not in why
    assert (asked, box.mails) == ([], [])


def test_answers_of_the_server(tmp_path: Path) -> None:
    box = Mailbox()
    with serving(box) as port, sink_to(port, tmp_path) as stage:
        box.answer = "451 try again later"
        assert "451 try again later" in refusal(stage, [start(1)])
        box.answer = "554 spam"
        hand_in(stage, [start(2)])
        box.answer, box.refused = "250 OK", {"chief@example.org": "550 no such user"}
        hand_in(stage, [start(3)])
        box.refused["night@example.org"] = "550 gone"
        hand_in(stage, [start(4)])
        counts = reports_of(stage).counts
        letters = [(letter.id, letter.why) for letter in stage.context.dead_letters]
    assert box.recipients == [["night@example.org"]]
    assert counts["recipients_refused", "room-3"] == 1
    assert counts["dropped.refused", "room-3"] == 2
    assert [why.partition(": ")[2][:12] for _, why in letters] == ["554 spam", "it refuses a"]


@contextmanager
def scripted(**answers: str) -> Iterator[tuple[int, list[str]]]:
    """A server with these answers to commands, by their verb: `GREETING`, `EHLO`, ..., `END` of the mail, `QUIT`.

    Yields its port and the verbs that it got.
    """
    usual = {"GREETING": "220 hello", "EHLO": "250-hello\r\n250 STARTTLS", "DATA": "354 go on", "QUIT": "221 bye"}
    verbs: list[str] = []

    class Session(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self._send("GREETING")
            in_mail = False
            for line in self.rfile:
                if in_mail and line != b".\r\n":
                    continue
                verb = "END" if in_mail else line.split()[0].decode().upper()
                verbs.append(verb)
                in_mail = self._send(verb).startswith("354")

        def _send(self, verb: str) -> str:
            answer = answers.get(verb, usual.get(verb, "250 OK"))
            self.wfile.write(f"{answer}\r\n".encode())
            return answer

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Session) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server.server_address[1], verbs
        finally:
            server.shutdown()
            thread.join()


def test_a_mail_waits_for_a_server_whose_answer_cannot_be_read(tmp_path: Path) -> None:
    strange = {"EHLO": "250-hello\r\n250 AUTH CRAM-MD5", "AUTH": "334 abc"}
    login = {"user": "ward", "password": PASSWORD}
    settings = SinkEmailSettings.model_validate({**SETTINGS, "server": "localhost", "port": 1, "security": "starttls"})
    with scripted(**strange) as (port, _):
        plain = settings.model_copy(update={**login, "port": port, "security": "none"})
        talk = Conversation(plain.mail_server(tmp_path), 60.0)
        with pytest.raises(smtplib.SMTPResponseException) as raised:
            talk.send(EmailMessage(), NIGHT, [NIGHT])
    assert not is_for_good(raised.value)
    assert answer_of(raised.value) == "421 (its answer is not understood: Error)"


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ({"GREETING": "554 no service here"}, "it takes no connection: 554 no service here"),
        ({"GREETING": "421 busy"}, "it takes no connection: 421 busy"),
        ({"GREETING": "220-on and on\r\n" * 100_000 + "220 and no end"}, "its answer is longer than any"),
        ({"EHLO": "550 who are you", "HELO": "550 who are you"}, "550 who are you"),
        ({"STARTTLS": "501 not now"}, "501 not now"),
        ({"STARTTLS": "454 no TLS"}, "454 no TLS"),
        ({"MAIL": "530 5.7.0 log in first"}, "refuses the sender ward3@example.org: 530 5.7.0 log in first"),
        ({"RCPT": "554 5.7.1 Relay access denied"}, "it does not deliver for us: mend `user`, `sender` or `server`"),
        ({"RCPT": "550 relay not permitted"}, "it does not deliver for us"),
        ({"RCPT": "553 that domain isn't in my list of allowed rcpthosts"}, "it does not deliver for us"),
        ({"RCPT": "550 5.1.8 Sender address rejected: Domain not found"}, "it does not deliver for us"),
        ({"RCPT": "450 4.2.0 greylisted"}, "it refuses all addresses"),
        ({"DATA": "530 5.7.57 not authenticated"}, "530 5.7.57"),
        ({"DATA": "503 no recipients"}, "503 no recipients"),
        ({"END": "554 5.2.252 SendAsDenied"}, "SendAsDenied"),
        ({"END": "550 5.7.26 this mail has no SPF and DKIM"}, "5.7.26"),
        ({"END": "535 5.7.8 bad credentials"}, "5.7.8"),
    ],
)
def test_a_refusal_that_is_not_about_this_mail_can_be_mended(
    tmp_path: Path, answers: dict[str, str], told: str
) -> None:
    security = "starttls" if "STARTTLS" in answers else "none"
    with scripted(**answers) as (port, _), sink_to(port, tmp_path, security=security) as stage:
        assert told in refusal(stage, [start()])
        assert letters(stage) == {}


@pytest.mark.parametrize(
    "answers",
    [
        {"RCPT": "550 5.1.1 no such user"},
        {"RCPT": "552 5.2.2 mailbox full"},
        {"END": "554 5.7.1 this looks like spam"},
        {"END": "550 no"},
        {"MAIL": "552 5.3.4 too large"},
        {"END": "552 too large"},
    ],
)
def test_a_refused_mail_is_final_and_the_next_is_tried(tmp_path: Path, answers: dict[str, str]) -> None:
    with scripted(**answers) as (port, verbs), sink_to(port, tmp_path) as stage:
        hand_in(stage, [start(1), start(2)])
        assert list(letters(stage)) == [start(1).id, start(2).id]
    assert verbs.count("MAIL") == 2


CHIEF, NIGHT = "chief@example.org", "night@example.org"


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is refused for now is tried again at once."""
    monkeypatch.setattr(postponed, "PAUSES_S", (0.05,))


@pytest.mark.parametrize("answer", ["450 busy", "451 4.7.1 greylisted", "452 4.2.2 mailbox full"])
@pytest.mark.usefixtures("soon")
def test_who_is_refused_for_now_gets_the_mail_later(tmp_path: Path, answer: str) -> None:
    box = Mailbox()
    box.refused = {CHIEF: answer}
    with serving(box) as port, sink_to(port, tmp_path) as stage:
        assert hand_in(stage, [start(1), start(2)]) == []
        assert box.recipients == [[NIGHT], [NIGHT]]
        box.refused = {}
        until(lambda: len(box.mails) == 4)
        assert box.recipients[2:] == [[CHIEF], [CHIEF]]
        assert {mail["Message-ID"] for mail in box.mails[:2]} == {mail["Message-ID"] for mail in box.mails[2:]}
        until(lambda: not list(tmp_path.rglob("*.postponed")))
        assert reports_of(stage).counts == {("written", "room-3"): 2}
        assert letters(stage) == {}
        until(lambda: not stage.context.dead_letters.path.parent.exists())  # a folder with more in it is never removed


@pytest.mark.usefixtures("soon")
def test_dead_letter_names_who_never_got_the_mail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink_email, "_AT_MOST", "1s")
    box = Mailbox()
    box.refused = {CHIEF: "452 4.2.2 mailbox full"}
    with serving(box) as port, sink_to(port, tmp_path) as stage:
        hand_in(stage, [start()])
        until(lambda: letters(stage))
        [why] = letters(stage).values()
        assert "not taken within 1s for chief@example.org (452 4.2.2 mailbox full); the others got the mail" in why
        counts = {("written", "room-3"): 1, ("recipients_refused", "room-3"): 1}
        until(lambda: reports_of(stage).counts == counts)
    assert box.recipients == [[NIGHT]]


@pytest.mark.usefixtures("soon")
def test_postponed_mail_outlives_a_restart_and_an_outage(tmp_path: Path) -> None:
    box, port = Mailbox(), free_port()
    box.refused = {CHIEF: "451 greylisted"}
    with serving(box, port), sink_to(port, tmp_path) as stage:
        hand_in(stage, [start()])
    with sink_to(port, tmp_path) as stage:
        until(lambda: any(rest.tries > 2 for rest, _ in stage._later._mails.values()))
        box.refused = {}
        with serving(box, port):
            until(lambda: box.recipients == [[NIGHT], [CHIEF]])


def test_mails_that_cannot_be_kept_are_given_up_by_name(tmp_path: Path) -> None:
    """A stopped run leaves them in a file; without that file nobody would hear of them again."""
    box = Mailbox()
    box.refused = {CHIEF: "452 mailbox full"}
    with serving(box) as port, sink_to(port, tmp_path) as stage:
        hand_in(stage, [start()])
        [file] = tmp_path.rglob("*.postponed")
        file.unlink()
        file.mkdir()
    [why] = letters(stage).values()
    assert "not taken before the end of the run for chief@example.org (452 mailbox full)" in why


@pytest.mark.usefixtures("soon")
def test_a_later_refusal_for_good_is_final(tmp_path: Path) -> None:
    box = Mailbox()
    box.refused = {CHIEF: "451 greylisted"}
    with serving(box) as port, sink_to(port, tmp_path) as stage:
        hand_in(stage, [start()])
        box.refused = {CHIEF: "550 no such user"}
        until(lambda: letters(stage))
        [why] = letters(stage).values()
        assert "not taken later for chief@example.org (550 no such user)" in why
        until(lambda: not list(tmp_path.rglob("*.postponed")))


def test_a_damaged_line_of_the_file_costs_that_mail_alone(tmp_path: Path) -> None:
    box, port = Mailbox(), free_port()
    box.refused = {CHIEF: "451 greylisted"}
    with serving(box, port), sink_to(port, tmp_path) as stage:
        hand_in(stage, [start(1), start(2)])
    [file] = tmp_path.rglob("*.postponed")
    file.write_text("no letter\n" + file.read_text().splitlines(keepends=True)[1])
    box.refused = {}
    with serving(box, port), sink_to(port, tmp_path):
        until(lambda: box.recipients == [[NIGHT], [NIGHT], [CHIEF]])


def test_nobody_is_forgotten_at_the_end_if_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    box = Mailbox()
    box.refused = {CHIEF: "451 greylisted"}
    with serving(box) as port, sink_to(port, tmp_path) as stage:
        hand_in(stage, [start(1), start(2)])
        with monkeypatch.context() as full:

            def add(*_: object, **__: object) -> None:
                raise EnvironmentProblem("the disk is full")

            full.setattr(DeadLetters, "add", add)
            with pytest.raises(EnvironmentProblem):
                until(lambda: is_finished(stage), every_s=0.01)
        until(lambda: is_finished(stage), every_s=0.01)
        assert set(letters(stage)) == {start(1).id, start(2).id}


def test_end_of_a_run_names_who_has_not_got_the_mail(tmp_path: Path) -> None:
    box = Mailbox()
    box.refused = {CHIEF: "451 greylisted"}
    with serving(box) as port, sink_to(port, tmp_path) as stage:
        hand_in(stage, [start()])
        assert letters(stage) == {}
        until(lambda: is_finished(stage), every_s=0.01)
        assert "chief@example.org (451 greylisted)" in letters(stage)[start().id]
        assert not list(tmp_path.rglob("*.postponed"))


def is_finished(stage: SinkEmail, reason: EndReason = "end") -> bool:
    try:
        stage.finish(EVERY_CAMERA, End(stamp(9), reason))
    except Unavailable:
        return False
    return True


def test_end_of_a_run_tries_once_more(tmp_path: Path) -> None:
    box = Mailbox()
    box.refused = {CHIEF: "451 greylisted"}
    with serving(box) as port, sink_to(port, tmp_path) as stage:
        hand_in(stage, [start(1), start(2)])
        box.refused = {}
        until(lambda: is_finished(stage), every_s=0.01)
        assert box.recipients == [[NIGHT], [NIGHT], [CHIEF], [CHIEF]]
        assert letters(stage) == {}
        assert not list(tmp_path.rglob("*.postponed"))


@pytest.mark.usefixtures("soon")
def test_mail_on_its_way_at_the_end_is_not_given_up(tmp_path: Path) -> None:
    holds, goes_on = threading.Event(), threading.Event()

    class Slow(Mailbox):
        async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
            if envelope.rcpt_tos == [CHIEF]:
                holds.set()
                await asyncio.to_thread(goes_on.wait, 60)
            return await super().handle_DATA(server, session, envelope)

    box = Slow()
    box.refused = {CHIEF: "451 greylisted"}
    with serving(box) as port, sink_to(port, tmp_path, limit="60s") as stage:
        hand_in(stage, [start()])
        box.refused = {}
        until(holds.is_set)
        assert not is_finished(stage)
        assert letters(stage) == {}
        goes_on.set()
        until(lambda: is_finished(stage), every_s=0.01)
        assert (letters(stage), box.recipients) == ({}, [[NIGHT], [CHIEF]])


def test_last_tries_end_with_their_time(tmp_path: Path) -> None:
    box = Mailbox()
    box.refused = {CHIEF: "451 greylisted"}
    with serving(box) as port, sink_to(port, tmp_path) as stage:
        hand_in(stage, [start(1), start(2)])
        assert until(lambda: stage._later.try_last(0.0) or None)
        until(lambda: is_finished(stage), every_s=0.01)
        assert set(letters(stage)) == {start(1).id, start(2).id}


@pytest.mark.parametrize("reason", ["stopped", "error"])
def test_stopped_run_leaves_postponed_mails_to_the_next(tmp_path: Path, reason: EndReason) -> None:
    box, port = Mailbox(), free_port()
    box.refused = {CHIEF: "451 greylisted"}
    with serving(box, port), structlog.testing.capture_logs() as lines:
        with sink_to(port, tmp_path) as stage:
            hand_in(stage, [start()])
            assert is_finished(stage, reason)
            assert letters(stage) == {}
        [file] = tmp_path.rglob("*.postponed")
        [left] = [line for line in lines if line["event"] == "postponed_mails_left"]
        assert (left["mails"], left["kept_in"]) == (1, str(file))
        box.refused = {}
        with sink_to(port, tmp_path):
            until(lambda: box.recipients == [[NIGHT], [CHIEF]])
        assert [line["mails"] for line in lines if line["event"] == "postponed_mails_found"] == [1]


def test_mail_on_its_way_is_not_given_up_for_newer_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postponed, "MOST", 1)
    tried, goes_on = threading.Event(), threading.Event()

    def try_again(rest: PostponedMail) -> None:
        tried.set()
        goes_on.wait(60)

    later = Postponed(tmp_path / "a.postponed", try_again, structlog.get_logger())
    later._mails = {start(1).id: (PostponedMail(start(1), {CHIEF: "451"}, 0), 0.0)}
    later.add(PostponedMail(start(1), {CHIEF: "451"}, 0))
    with later._changed:
        later._mails[start(1).id] = later._mails[start(1).id][0], 0.0
        later._changed.notify_all()
    until(tried.is_set)
    given_up = later.add(PostponedMail(start(2), {CHIEF: "451"}, 0))
    assert given_up is not None
    assert given_up.event.id == start(2).id
    goes_on.set()
    later.close()
    assert not (tmp_path / "a.postponed").exists()


@pytest.mark.parametrize(("stops", "dead", "kept"), [(True, 0, 1), (False, 1, 0)])
def test_how_a_run_ends_decides_over_postponed_mails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, stops: bool, dead: int, kept: int
) -> None:
    monkeypatch.setenv(STATE_DIR, str(tmp_path / "state"))
    box = Mailbox()
    box.refused = {CHIEF: "451 greylisted"}
    frames = "frames: 100000, pace_ms: 20" if stops else "frames: 3"
    path = tmp_path / "graph.yaml"
    stopped: list[bool] = []

    def look(supervisor: Supervisor) -> None:
        if stops and box.mails and not stopped:  # a second stop would leave the sink no time for its end
            stopped.append(True)
            supervisor.stop()

    with serving(box) as port:
        path.write_text(f"""
version: 1
name: mails{os.getpid()}
cameras: {{room-3: {{{frames}}}}}
stages:
  numbers: {{use: count_source, each: cameras}}
  emit: {{use: emit, from: numbers, with: {{every: 100000}}}}
  nurse:
    use: sink_email
    from: emit
    with: {{server: 127.0.0.1, port: {port}, security: none, sender: a@example.org, to: [{NIGHT}, {CHIEF}], only: null}}
""")
        plan = load_plan(path)
        outcome, _ = run_graph(plan, look)
    assert (outcome.status, box.recipients) == (0, [[NIGHT]])
    folder = outbox_folder(plan)
    assert folder is not None
    assert len(list(DeadLetters(folder, "nurse"))) == dead
    assert len(list(folder.rglob("*.postponed"))) == kept


@pytest.mark.usefixtures("soon")
def test_server_that_hangs_up_gets_addresses_in_parts(tmp_path: Path) -> None:
    asked: list[str] = []

    class Few(Mailbox):
        async def handle_RCPT(  # noqa: N802
            self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
        ) -> str:
            asked.append(address)
            if envelope.rcpt_tos:
                assert server.transport is not None
                return "421 4.7.0 too many addresses"
            envelope.rcpt_tos.append(address)
            return "250 OK"

    box = Few()
    to = [NIGHT, CHIEF, "third@example.org"]
    with serving(box) as port, sink_to(port, tmp_path, to=to) as stage:
        assert hand_in(stage, [start()]) == []
        until(lambda: sorted(box.recipients) == sorted([[one] for one in to]))
        assert letters(stage) == {}


def test_trial_names_the_address_that_was_refused(tmp_path: Path) -> None:
    box = Mailbox()
    with serving(box) as port, sink_to(port, tmp_path) as stage:
        for answer in ("451 greylisted", "550 no such user"):
            box.refused = {CHIEF: answer}
            with pytest.raises(Refused, match=rf"not taken for chief@example.org \({answer}\)"):
                until(lambda: is_tried_out(stage, start()), every_s=0.01)
        assert not list(tmp_path.rglob("*.postponed"))
        box.refused = {}
        until(lambda: is_tried_out(stage, start(2)), every_s=0.01)


def is_tried_out(stage: SinkEmail, event: Event) -> bool:
    try:
        stage.try_out(event)
    except Unavailable:
        return False
    return True


def test_a_mail_that_is_too_large_goes_without_its_picture(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(b"\xff\xd8" * 30_000)
    box = Mailbox()
    with serving(box, data_size_limit=20_000) as port, sink_to(port, tmp_path) as stage:
        hand_in(stage, [start(snapshot="a.jpg")])
        assert letters(stage) == {}
    [mail] = box.mails
    assert "The picture is too large for a mail." in text_of(mail)


@pytest.mark.parametrize("answer", ["500 what", "421 too slow", "250 bye"])
def test_an_accepted_mail_is_delivered_whatever_quit_returns(tmp_path: Path, answer: str) -> None:
    with scripted(QUIT=answer) as (port, verbs), sink_to(port, tmp_path) as stage:
        assert hand_in(stage, [start()]) == []
        assert reports_of(stage).counts == {("written", "room-3"): 1}
    assert verbs.count("END") == 1


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
        with delivering(SinkEmail, {**settings, "port": port}, tmp_path) as stage:
            hand_in(stage, [start()])
        assert len(box.mails) == 1
        with delivering(SinkEmail, {**settings, "port": port, "password": "wrong-password"}, tmp_path) as stage:
            why = refusal(stage, [start(2)])
            assert "refuses the user or the password" in why
            assert "wrong-password" not in why
        with delivering(SinkEmail, {**settings, "port": port, "tls": None}, tmp_path) as stage:
            assert "`ca` of `tls`" in refusal(stage, [start(3)])


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
        ({"server": "mail..example"}, "no host can have this name"),
        ({"user": "ward", "password": "Grün"}, "only ASCII"),
        ({"link": "cameras.example.org/{incident}"}, "begins with https://"),
        ({"link": "https://a/{x}"}, "there is no"),
    ],
)
def test_mistakes(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        SinkEmailSettings.model_validate({**SETTINGS, **wrong})
