"""The first graph of docs/sinks.md: somebody falls in room 3 at night, and the nurse gets a mail that shows it."""

from __future__ import annotations

import email
import re
import ssl
from collections.abc import Iterator
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
from camgraph_test_stages.brokers import free_port
from camgraph_test_stages.clips import write_grey_clip

PAGE = Path(__file__).parents[3] / "docs" / "sinks.md"
PASSWORD = "quiet-corridor-58"
CAMERAS = """\
  room-3: {{url: {clip}, start_at: "2026-11-22T22:00:00Z"}}
  hall: {{url: {clip}, start_at: "2026-11-22T11:00:00Z"}}
"""


class MailServer:
    """Takes mails of clients that log in, with STARTTLS."""

    def __init__(self, authority: trustme.CA) -> None:
        self.mails: list[EmailMessage] = []
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("mail.example.org").configure_cert(context)
        self.port = free_port()
        self._controller = Controller(
            self,
            hostname="127.0.0.1",
            port=self.port,
            tls_context=context,
            require_starttls=True,
            auth_required=True,
            authenticator=_knows,
        )

    def start(self) -> None:
        self._controller.start()

    def stop(self) -> None:
        self._controller.stop()

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        mail = email.message_from_bytes(envelope.content or b"", policy=default)
        assert isinstance(mail, EmailMessage)
        self.mails.append(mail)
        return "250 OK"


def _knows(server: SMTP, session: Session, envelope: Envelope, mechanism: str, given: LoginPassword) -> AuthResult:
    return AuthResult(success=given.password == PASSWORD.encode(), handled=False)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MailServer]:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    made = MailServer(authority)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    """Two seconds of one grey picture."""
    return write_grey_clip(tmp_path / "clip.mp4", [120] * 20)


def graph_of_the_page(clip: Path, model: Path, port: int) -> str:
    """With files for cameras, people whom a model sees in any picture, and a mail server on this machine."""
    [text] = re.findall(r"^```yaml\n# night\.yaml\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    text = re.sub(r"^  room-3: .*\n", CAMERAS.format(clip=clip), text, flags=re.MULTILINE)
    server = f"127.0.0.1\n      port: {port}\n      tls: {{ca: ca.pem, server_name: mail.example.org}}"
    for old, new in {
        "asset:movenet-multipose.onnx": str(model),
        "{use: fall,": "{id: fall, when: age >= 0.5s, once: true, merge: 10s,",
        "server: mail.example.org": f"server: {server}",
    }.items():
        assert old in text
        text = text.replace(old, new)
    return text


def test_the_nurse_gets_one_mail_with_the_picture(
    tmp_path: Path, clip: Path, two_people: Path, server: MailServer, python: Any
) -> None:
    (tmp_path / "night.yaml").write_text(graph_of_the_page(clip, two_people, server.port))
    environment = {"XDG_STATE_HOME": str(tmp_path / "state"), "mail": PASSWORD}
    told = ""
    for command in (["check", "night.yaml"], ["sinks", "test", "night.yaml"], ["run", "night.yaml"]):
        done = python(tmp_path, "-m", "camgraph.tools.cli", *command, **environment)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        told += done.stdout + done.stderr
    trial, *falls = server.mails
    assert trial["Subject"].startswith("Test on room-3")
    assert [mail["Subject"] for mail in falls] == ["Fall on room-3, 23:00:00 CET"], "the hall has daylight"
    pictures = [part.get_content() for mail in falls for part in mail.walk() if part.get_content_type() == "image/jpeg"]
    assert len(pictures) == len(falls)
    assert cv2.imdecode(np.frombuffer(pictures[0], np.uint8), cv2.IMREAD_COLOR).shape == (64, 96, 3)
    kept = [path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert PASSWORD not in told
    assert not any(PASSWORD.encode() in content for content in kept)
