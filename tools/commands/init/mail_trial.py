"""Tries the account at a mail server as soon as it is known, and shows a certificate that nobody vouches for."""

from __future__ import annotations

import hashlib
import smtplib
import socket
import ssl
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from camgraph.pipeline.errors import Unavailable
from camgraph.pipeline.foreign_text import shown
from camgraph.tools.commands.init.dialog import Dialog
from camgraph.tools.commands.init.texts import CERTIFICATE, mail_settings
from camgraph.tools.commands.init.wishes import Mail

_UNKNOWN_ISSUER = frozenset({18, 19, 20, 21})
"""The X509_V_ERR_ numbers of OpenSSL for a certificate that is of its own making, or of an unknown authority."""
_WITHIN_S = 10.0


@dataclass(frozen=True, slots=True)
class Certificate:
    """What a server shows. `names`: the hosts that it is for; `until`: the end of its validity."""

    pem: str
    fingerprint: str
    names: tuple[str, ...] = ()
    until: str = ""


def tried_mail(dialog: Dialog, mail: Mail) -> tuple[Mail, bool]:
    """Log in. Returns the account, with a certificate that the user trusts, and whether it is to be kept so."""
    dialog.show(f"Trying {shown(mail.server)} ...")
    why = _failure(mail)
    is_unknown = isinstance(why, ssl.SSLCertVerificationError) and why.verify_code in _UNKNOWN_ISSUER
    if is_unknown and not mail.certificate and (trusted := _trusted(dialog, mail)):
        mail, why = trusted, _failure(trusted)
    if why is None:
        dialog.show("The server accepts the password." if mail.password else "It works.", "  ")
        return mail, True
    dialog.show(f"The mail server cannot be used: {_in_words(why)}.", "  ")
    return mail, dialog.confirm("Keep these answers and correct them later?", default=False)


def _failure(mail: Mail) -> Exception | None:
    """Why no mail could be sent with this account, as far as a login tells."""
    # Sinks take a while to import.
    from camgraph.stages.sinks.sink_email import SinkEmailSettings, try_login  # noqa: PLC0415

    values = mail_settings(mail) | ({"password": mail.password} if mail.password else {})
    with tempfile.TemporaryDirectory(prefix="cgi") as folder:
        (Path(folder) / CERTIFICATE).write_text(mail.certificate)
        try:
            try_login(SinkEmailSettings.model_validate(values), Path(folder))
        except (Unavailable, ssl.SSLCertVerificationError) as error:
            return error
    return None


def _in_words(why: Exception) -> str:
    from camgraph.stages.sinks.delivery.tls import tls_failure  # noqa: PLC0415 - as above

    return tls_failure(why) if isinstance(why, ssl.SSLError) else shown(str(why))


def _trusted(dialog: Dialog, mail: Mail) -> Mail | None:
    """With the server's own certificate, if the user says that it is the right one."""
    try:
        found = certificate_of(mail)
    except (OSError, smtplib.SMTPException):
        return None
    whose = f" for {', '.join(map(shown, found.names))}" if found.names else ""
    until = f", valid until {shown(found.until)}" if found.until else ""
    dialog.show(f"No authority that this machine knows vouches for its certificate{whose}{until}.", "  ")
    dialog.show(f"Its fingerprint (SHA-256): {found.fingerprint}", "  ")
    dialog.show("Compare that with the fingerprint on the server itself: somebody else may answer in its place.", "  ")
    if not dialog.confirm("Do the fingerprints match? Trust this certificate from now on?", default=False):
        return None
    known_as = "" if mail.server in found.names or not found.names else found.names[0]
    return replace(mail, certificate=found.pem, server_name=known_as)


def certificate_of(mail: Mail) -> Certificate:
    """The certificate of a mail server, unchecked; no password is sent. Raises OSError and SMTPException."""
    unchecked = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    unchecked.check_hostname = False
    unchecked.verify_mode = ssl.CERT_NONE
    der, _ = _shown_by(mail, unchecked)
    pem = ssl.DER_cert_to_PEM_cert(der)
    facts: Mapping[str, Any] = {}
    with suppress(OSError, smtplib.SMTPException):  # Python reads only what it trusts; an expired one it does not
        itself = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        itself.check_hostname = False
        itself.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        itself.load_verify_locations(cadata=pem)
        _, facts = _shown_by(mail, itself)
    names = tuple(name for kind, name in facts.get("subjectAltName", ()) if kind in ("DNS", "IP Address"))
    return Certificate(pem, _fingerprint(der), names, str(facts.get("notAfter", "")))


def _fingerprint(der: bytes) -> str:
    digits = hashlib.sha256(der).hexdigest().upper()
    return ":".join(digits[at : at + 2] for at in range(0, len(digits), 2))


def _shown_by(mail: Mail, context: ssl.SSLContext) -> tuple[bytes, Mapping[str, Any]]:
    """The certificate, and what Python reads in it: nothing if the context checks nothing."""
    port = mail.port or 587
    if mail_settings(mail).get("security") == "tls":
        with (
            socket.create_connection((mail.server, port), _WITHIN_S) as plain,
            context.wrap_socket(plain, server_hostname=mail.server) as encrypted,
        ):
            return encrypted.getpeercert(binary_form=True) or b"", encrypted.getpeercert() or {}
    with smtplib.SMTP(mail.server, port, timeout=_WITHIN_S) as server:
        server.starttls(context=context)
        assert isinstance(server.sock, ssl.SSLSocket)
        return server.sock.getpeercert(binary_form=True) or b"", server.sock.getpeercert() or {}
