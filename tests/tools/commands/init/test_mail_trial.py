"""A mail account is tried at the question: its password, and a certificate that nobody vouches for."""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import trustme
from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Sink
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from camgraph_test_stages.brokers import free_port

from camgraph.tools.commands.init.dialog import Dialog
from camgraph.tools.commands.init.mail_trial import tried_mail
from camgraph.tools.commands.init.texts import CERTIFICATE, mail_settings
from camgraph.tools.commands.init.wishes import Mail

PASSWORD = "quiet-corridor-58"


def _knows(server: SMTP, session: Session, envelope: Envelope, mechanism: str, given: LoginPassword) -> AuthResult:
    return AuthResult(success=given.password == PASSWORD.encode(), handled=False)


@contextmanager
def mail_server(certificate: trustme.LeafCert, **more: object) -> Iterator[int]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    port = free_port()
    options = {"require_starttls": True, "auth_required": True, "authenticator": _knows} | more
    controller = Controller(Sink(), hostname="127.0.0.1", port=port, tls_context=context, **options)
    controller.start()
    try:
        yield port
    finally:
        controller.stop()


class Typist(Dialog):
    """Answers yes or no in this order, and keeps what was said."""

    def __init__(self, *answers: bool) -> None:
        super().__init__(asks=True)
        self._answers = list(answers)
        self.said = ""

    def show(self, text: str = "", indent: str = "", hanging: str | None = None) -> None:
        self.said += f"{text}\n"

    def confirm(self, question: str, *, default: bool) -> bool:
        self.said += f"{question}\n"
        return self._answers.pop(0)


def account(port: int, password: str = PASSWORD, server: str = "127.0.0.1") -> Mail:
    return Mail("night@example.org", "ward@example.org", server, port, "ward", password)


def fingerprint(certificate: trustme.LeafCert) -> str:
    der = ssl.PEM_cert_to_DER_cert(certificate.cert_chain_pems[0].bytes().decode())
    return hashlib.sha256(der).digest().hex(":").upper()


@pytest.fixture(scope="module")
def certificate() -> trustme.LeafCert:
    """Of an authority that no machine knows, for another name than the server is called by."""
    return trustme.CA().issue_cert("mail.example.org")


def test_a_certificate_is_shown_and_trusted(certificate: trustme.LeafCert) -> None:
    somebody = Typist(True)
    with mail_server(certificate) as port:
        kept, is_kept = tried_mail(somebody, account(port))
    assert is_kept
    assert f"Its fingerprint (SHA-256): {fingerprint(certificate)}" in somebody.said
    assert "vouches for its certificate for mail.example.org, valid until" in somebody.said
    assert "The server accepts the password." in somebody.said
    assert kept.certificate == certificate.cert_chain_pems[0].bytes().decode()
    assert mail_settings(kept)["tls"] == {"ca": CERTIFICATE, "server_name": "mail.example.org"}


def test_a_certificate_that_is_not_trusted_gets_no_password(certificate: trustme.LeafCert) -> None:
    tried: list[str] = []

    def hears(server: SMTP, session: Session, envelope: Envelope, mechanism: str, given: LoginPassword) -> AuthResult:
        tried.append(mechanism)
        return AuthResult(success=True)

    somebody = Typist(False, True)
    with mail_server(certificate, authenticator=hears) as port:
        kept, is_kept = tried_mail(somebody, account(port))
    assert (kept, is_kept) == (account(port), True), "it is kept as it was, since the user said so"
    assert "The mail server cannot be used: its certificate is of an authority that is not trusted" in somebody.said
    assert tried == []


def test_a_wrong_password_is_told_at_once(certificate: trustme.LeafCert) -> None:
    somebody = Typist(True, False)
    with mail_server(certificate) as port:
        again, is_kept = tried_mail(somebody, account(port, "wrong-one"))
    assert (is_kept, bool(again.certificate)) == (False, True), "its certificate is not asked about again"
    assert "The mail server cannot be used: 127.0.0.1" in somebody.said
    assert "535" in somebody.said
    assert "wrong-one" not in somebody.said


def test_tls_from_the_first_byte(certificate: trustme.LeafCert, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on port 465, which a test may not have."""
    somebody = Typist(True)
    port = free_port()
    monkeypatch.setattr("camgraph.tools.commands.init.texts._PORT_OF_TLS", port)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    controller = Controller(
        Sink(), hostname="127.0.0.1", port=port, ssl_context=context, authenticator=_knows, auth_require_tls=False
    )
    controller.start()
    try:
        assert tried_mail(somebody, account(port))[1], somebody.said
    finally:
        controller.stop()
    assert "The server accepts the password." in somebody.said


def test_nobody_is_there() -> None:
    somebody = Typist(False)
    assert not tried_mail(somebody, account(free_port()))[1]
    assert "The mail server cannot be used: 127.0.0.1" in somebody.said
    assert "Connection refused" in somebody.said
