"""The conversation with a mail server: one mail over one connection, and what the server answers for each address."""

from __future__ import annotations

import smtplib
import socket
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

from camgraph.pipeline.errors import CamgraphError
from camgraph.pipeline.system import happy_eyeballs
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
_MOST_ANSWER = 1 << 20
"""Bytes of one answer, which may have many lines."""

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
    """One mail, over a connection of its own."""

    def __init__(self, place: MailServer) -> None:
        self._place = place
        self._server: smtplib.SMTP | None = None
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
        with _not_of_the_mail():
            server = self._connected()
        try:
            if self._place.user and self._place.password:
                with _not_of_the_mail():
                    _log_in(server, self._place.user, self._place.password)
            yield server
        finally:
            _quit(server)

    def _connected(self) -> smtplib.SMTP:
        """Raises Unavailable, SMTPException and OSError."""
        place = self._place
        name = place.tls.server_name if place.tls and place.tls.server_name else place.host
        tls = None if place.security == "none" else client_tls(place.tls, place.base_folder)
        made = _Tls if place.security == "tls" else _Server
        server = self._server = made(timeout=CALL_S, local_hostname=_own_name())
        if isinstance(server, _Tls):
            assert tls is not None
            server.tls, server.server_name = tls, name
        try:
            code, words = server.connect(place.host, place.port)
            if code != _READY:
                raise smtplib.SMTPConnectError(code, words)
            if place.security == "starttls":
                assert tls is not None
                server._host = name  # type: ignore[attr-defined]  # whose certificate is checked
                server.starttls(context=tls)
        except BaseException:
            server.close()
            raise
        if self._is_aborted:
            server.close()
            raise ConnectionAbortedError
        return server

    def log_in(self) -> None:
        """As before a mail, and send none. Raises SMTPException and OSError."""
        with self._logged_in():
            pass

    def abort(self) -> None:
        """Let the thread that talks fail soon."""
        self._is_aborted = True
        sock = getattr(self._server, "sock", None)
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


class _Server(smtplib.SMTP):
    """A server whose answers must end some time: the library would keep all lines of one in memory."""

    file: Any

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        """The library would give each address of the host the whole time, one after the other."""
        stream = happy_eyeballs.connect(host, port, time.monotonic() + timeout)
        stream.settimeout(timeout)
        return stream

    def getreply(self) -> tuple[int, bytes]:
        """Raises SMTPException, also for an answer that does not end."""
        if self.file is None and self.sock is not None:
            self.file = _Bounded(self.sock.makefile("rb"))
        bounded = self.file
        if bounded is not None:
            bounded.left = _MOST_ANSWER
        try:
            return super().getreply()
        except smtplib.SMTPServerDisconnected:
            if bounded is not None and bounded.left < 0:
                raise smtplib.SMTPResponseException(_NOT_NOW, b"(its answer has no end)") from None
            raise


class _Bounded:
    """The lines of one answer."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.left = 0

    def readline(self, most: int) -> bytes:
        """Raises OSError if there are too many."""
        line = self._file.readline(most)
        self.left -= len(line)
        if self.left < 0:
            raise OSError("its answer has no end")
        return line

    def close(self) -> None:
        self._file.close()


class _Tls(_Server):
    """Encrypted from the first byte, under a name of our choice."""

    tls: ssl.SSLContext
    server_name: str

    def _get_socket(self, host: str, port: int, timeout: float) -> ssl.SSLSocket:
        plain = super()._get_socket(host, port, timeout)
        try:
            return self.tls.wrap_socket(plain, server_hostname=self.server_name)
        except BaseException:
            plain.close()
            raise


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
