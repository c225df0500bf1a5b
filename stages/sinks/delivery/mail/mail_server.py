"""The conversation with a mail server: one mail over one connection, and what the server answers for each address."""

from __future__ import annotations

import smtplib
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from typing import Any, Literal, NamedTuple

from camgraph.pipeline.errors import CamgraphError
from camgraph.stages.sinks.delivery.bounded_line import HERE, BoundedLine
from camgraph.stages.sinks.delivery.mail.mail_answers import words_of
from camgraph.stages.sinks.delivery.tls import TlsSettings, client_tls

CALL_S = 20.0
"""For one step of the conversation with the server."""
NO_ANSWER = -1
"""As smtplib has it: the server hung up, or could not be reached."""
_READY = 220
_GOODBYE_S = 2.0
"""For the server's answer to our goodbye: it has the mail already."""
_NOT_NOW = 421
_FOR_GOOD = 500

Security = Literal["starttls", "tls", "none"]


@dataclass(frozen=True, slots=True)
class MailServer:
    """Where it is, how the connection is encrypted, and how to log in. `base_folder`: for the files of `tls`."""

    host: str
    port: int
    security: Security
    tls: TlsSettings | None
    base_folder: Path
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    @property
    def server_name(self) -> str:
        """The name that its certificate has to show."""
        return (self.tls and self.tls.server_name) or self.host


class Refusal(NamedTuple):
    """The answer to an address that got no mail."""

    code: int
    text: bytes

    @property
    def words(self) -> str:
        return words_of(self.code, self.text).removeprefix(f"{NO_ANSWER} ")

    @property
    def is_for_now(self) -> bool:
        """Whether the server may take the same later."""
        return self.code < _FOR_GOOD


Refusals = Mapping[str, Refusal]
"""Address -> why the server has not taken it."""


class Conversation:
    """One mail, over a connection of its own, which ends after `within_s`."""

    def __init__(self, place: MailServer, within_s: float) -> None:
        self._place, self._until_s = place, time.monotonic() + within_s
        self._line: BoundedLine | None = None
        self._is_aborted = False

    def send(self, mail: EmailMessage, sender: str, recipients: Sequence[str]) -> Refusals:
        """Returns the addresses that the server has refused; the others get the mail. `sender`: a bare address."""
        refused: dict[str, tuple[int, bytes]] = {}
        left = list(recipients)
        while True:
            try:
                refused |= self._sent(mail, sender, left)
            except smtplib.SMTPRecipientsRefused as error:
                cut_off = next((one for one, (code, _) in error.recipients.items() if code == _NOT_NOW), None)
                taken = left[: left.index(cut_off)] if cut_off else []
                taken = [one for one in taken if one not in error.recipients]
                if cut_off is None or not taken:
                    raise
                # The server hung up within the addresses and nobody has the mail: send first to the addresses that it
                # had accepted.
                refused |= {
                    one: error.recipients.get(one, error.recipients[cut_off]) for one in left if one not in taken
                }
                left = taken
            else:
                return {one: Refusal(*answer) for one, answer in refused.items()}

    def _sent(self, mail: EmailMessage, sender: str, recipients: Sequence[str]) -> dict[str, tuple[int, bytes]]:
        """Over one connection."""
        with self._logged_in() as server:
            return server.send_message(mail, sender, recipients)

    @contextmanager
    def _logged_in(self) -> Iterator[smtplib.SMTP]:
        with closing(self._dialled()) as line:
            try:
                with _not_of_the_mail():
                    server = self._greeted(line)
                try:
                    if self._place.user and self._place.password:
                        with _not_of_the_mail():
                            _log_in(server, self._place.user, self._place.password)
                    yield server
                finally:
                    _quit(server)
            except (smtplib.SMTPServerDisconnected, OSError):
                if line.why_cut:
                    raise line.why_cut from None
                raise

    def _dialled(self) -> BoundedLine:
        """Raises Unavailable and OSError."""
        place = self._place
        tls = client_tls(place.tls, place.base_folder) if place.security == "tls" else None
        line = self._line = BoundedLine(place.host, place.port, self._until_s, tls=tls, server_name=place.server_name)
        if self._is_aborted:
            line.cut()
        return line

    def _greeted(self, line: BoundedLine) -> smtplib.SMTP:
        """Raises Unavailable, SMTPException and OSError."""
        place, server = self._place, smtplib.SMTP(timeout=CALL_S, local_hostname=_own_name())
        try:
            code, words = server.connect(HERE, line.port)
            if code != _READY:
                raise smtplib.SMTPConnectError(code, words)
            if place.security == "starttls":
                server._host = place.server_name  # type: ignore[attr-defined]  # no argument of the library names it
                server.starttls(context=client_tls(place.tls, place.base_folder))
        except BaseException:
            server.close()
            raise
        return server

    def log_in(self) -> None:
        """As before a mail, and send none. Raises SMTPException and OSError."""
        with self._logged_in():
            pass

    def abort(self) -> None:
        """Let the thread that talks fail soon."""
        self._is_aborted = True
        if self._line:
            self._line.cut()


@contextmanager
def _not_of_the_mail() -> Iterator[None]:
    """Within, no exception is a bug that the mail brings to light: the library fails at an answer."""
    try:
        yield
    except (smtplib.SMTPException, OSError, CamgraphError):
        raise
    except Exception as error:
        words = f"(its answer is not understood: {type(error).__name__})"
        raise smtplib.SMTPResponseException(_NOT_NOW, words.encode()) from error


def _log_in(server: smtplib.SMTP, user: str, password: str) -> None:
    """Try one way only: smtplib tries all, and servers lock an address out that fails often. Raises SMTPException."""
    server.ehlo_or_helo_if_needed()
    offered = str(server.esmtp_features.get("auth", "")).upper().split()
    ways: dict[str, Any] = {
        "PLAIN": server.auth_plain,
        "LOGIN": server.auth_login,
        "CRAM-MD5": server.auth_cram_md5,
    }
    way = next((way for way in ways if way in offered), None)
    if way is None:
        raise smtplib.SMTPNotSupportedError(f"it offers no way to log in that is known here ({' '.join(offered)})")
    server.user, server.password = user, password
    server.auth(way, ways[way])


def _own_name() -> str:
    """For the greeting; not looked up, which may take long."""
    name = socket.gethostname()
    return name if name.isascii() and name.isprintable() and " " not in name and name else "localhost"


def _quit(server: smtplib.SMTP) -> None:
    """Whatever the server says to that: it has taken the mail, or said why not."""
    with suppress(smtplib.SMTPException, OSError):
        if server.sock is not None:
            server.sock.settimeout(_GOODBYE_S)
        server.quit()
    server.close()
