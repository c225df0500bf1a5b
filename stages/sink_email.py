"""Sends a mail about each incident, with its picture.

    nurse: {use: sink_email, from: actions, with: {server: mail.example.org, user: ward, password: "${secret:mail}",
            sender: "Ward 3 <ward3@example.org>", to: night@example.org, only: {rule: fall, phase: [start, single]}}}

By default there is a mail when an incident begins and none when it ends. The picture is that of `sink_footage`, which
the event names: the mail waits some seconds for it, and is sent without it if it does not come. A mail counts as
delivered once the server has taken it (250); camgraph cannot see what becomes of it then.

| the server | then |
|---|---|
| cannot be reached, answers 4xx, refuses the password or the sender | the event waits and is tried again |
| refuses the mail or all of its addresses for good (5xx) | the event becomes a dead letter |
| refuses some of the addresses | the others get it; the log and the counter `recipients_refused` tell |
"""

from __future__ import annotations

import smtplib
import socket
import ssl
import time
from collections.abc import Sequence
from contextlib import suppress
from email.message import EmailMessage
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from pipeline.errors import Unavailable
from pipeline.foreign_text import shown
from pipeline.stage import Context, SettingProblems
from stages.delivery.durations import Duration, seconds
from stages.delivery.errand import Errand
from stages.delivery.event_sink import DeliverySettings, EventSink, Refused
from stages.delivery.event_view import EventView
from stages.delivery.mail_message import Words, addr_spec, address, mail_about
from stages.delivery.selection import Filter, Filters
from stages.delivery.template import TemplateText
from stages.delivery.tls import TlsSettings, client_tls, tls_failure, tls_problems

_TURN_S = 1.0
"""How long one call waits; the process goes on listening between two calls."""
_CALL_S = 20.0
"""For one step of the conversation with the server."""
_PORTS = {"starttls": 587, "tls": 465, "none": 25}
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_ANSWER = 200
_TOO_LARGE = 552
_SUBJECT = "{action} on {camera}, {time}"
_TEXT = """\
{action} on {camera}
{date}, {time}
Severity: {severity}
Place: {zones}
Why: {why}

Picture: {snapshot}
Clip, as soon as it is ready: {clip}
More about it: camgraph incidents show {incident}
"""


def _as_list(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


Mailbox = Annotated[str, Field(min_length=3, max_length=320), AfterValidator(address)]


def _new_incidents() -> list[Filter]:
    return [Filter.model_validate({"kind": ["incident"], "phase": ["start", "single"]})]


class SinkEmailSettings(DeliverySettings):
    """The server, whom the mail is from and to, and its words."""

    only: Filters | None = Field(
        default_factory=_new_incidents,
        description="Send only events that fit this filter, or one of these; by default the beginnings of incidents",
    )
    server: str = Field(min_length=1, max_length=253, pattern=r"^[^\s/@]+$", description="The host of your mail server")
    port: int | None = Field(None, ge=1, le=65535, description="By default that of `security`: 587, 465 or 25")
    security: Literal["starttls", "tls", "none"] = Field(
        "starttls", description="How the connection is encrypted. none: not at all, and then without a password"
    )
    tls: TlsSettings | None = Field(None, description="Whom to trust, and our own certificate")
    user: str | None = Field(None, min_length=1, description="The name to log in with, together with `password`")
    password: str | None = Field(None, min_length=1, description="Write `${secret:NAME}`")
    sender: Mailbox = Field(description="ward3@example.org, or Ward 3 <ward3@example.org>")
    to: Annotated[list[Mailbox], BeforeValidator(_as_list), Field(min_length=1, max_length=100)] = Field(
        description="One address, or several"
    )
    subject: TemplateText = Field(_SUBJECT, description="With {action}, {camera}, {time} and so on")
    text: TemplateText = Field(_TEXT, description="Likewise. Lines whose values an event does not have are left out")
    picture: bool = Field(
        True, description="Put the picture of the incident into the mail, if `sink_footage` keeps one"
    )
    picture_within: Duration = Field("10s", description="How long to wait for the picture")
    most_mb: float = Field(5.0, gt=0, le=50, description="A larger picture is not sent")
    limit: Duration = Field("60s", description="For one mail in all")

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        if (self.user is None) != (self.password is None):
            raise ValueError("`user` and `password` go together: expected both or none")
        if self.password and self.security == "none" and self.server not in _LOOPBACK:
            raise ValueError("a password is not sent without encryption: choose `security: starttls` or `tls`")
        if self.tls and self.security == "none":
            raise ValueError("`tls` needs `security: starttls` or `tls`")
        return self

    @property
    def place(self) -> str:
        """For people."""
        return f"{self.server}:{self.port or _PORTS[self.security]}"


class SinkEmail(EventSink[SinkEmailSettings]):
    """An event -> a mail."""

    settings_type = SinkEmailSettings

    def __init__(self, settings: SinkEmailSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._words = Words(settings.sender, settings.to, settings.subject, settings.text, settings.time_zone)
        self._seen_s: tuple[str, float] = ("", 0.0)
        """The event whose picture is waited for, and since when."""
        self._mailing: tuple[str, Errand[dict[str, str]], _Conversation] | None = None

    @classmethod
    def check(cls, settings: SinkEmailSettings, base_folder: Path) -> SettingProblems:
        yield from tls_problems(settings.tls, base_folder)

    def send(self, events: Sequence[EventView]) -> None:
        """One mail a call: the others come again at once."""
        view = events[0]
        self._mail(view)
        self.sent_already(view)
        if len(events) > 1:
            raise Unavailable("further mails are to be sent", patient=True)

    def _mail(self, view: EventView) -> None:
        """Return once the server has the mail. Raises Unavailable while it is on the way, and Refused."""
        if self._mailing is None or self._mailing[0] != view.event.id:
            self.disconnect()
            mail = mail_about(view, self._words, *self._picture(view))
            conversation = _Conversation(self.settings, self.context.base_folder)
            errand = Errand(lambda: conversation.send(mail), seconds(self.settings.limit), "mail")
            self._mailing = view.event.id, errand, conversation
        refused = self._answer(view, self._mailing[1])
        for recipient, why in refused.items():
            self.context.count("recipients_refused", view.event.stamp.camera)
            self.context.log.warning("recipient_refused", recipient=recipient, why=why)

    def _answer(self, view: EventView, errand: Errand[dict[str, str]]) -> dict[str, str]:
        place = self.settings.place
        try:
            if not errand.is_over(_TURN_S):
                raise Unavailable(f"{place}: the mail is being sent", patient=True)
            return errand.result()
        except TimeoutError:
            self.disconnect()
            raise Unavailable(f"{place}: the mail was not taken within {self.settings.limit}") from None
        except smtplib.SMTPException as error:
            self.disconnect()
            if _is_for_good(error):
                raise Refused({view.event.id: f"{place}: {_said(error)}"}) from None
            raise Unavailable(f"{place}: {_said(error)}") from None
        except ssl.SSLError as error:
            self.disconnect()
            raise Unavailable(f"{place}: {tls_failure(error)}") from None
        except OSError as error:
            self.disconnect()
            raise Unavailable(f"{place}: {error.strerror or error}") from None

    def _picture(self, view: EventView) -> tuple[bytes | None, str]:
        """The picture, or why there is none. Raises Unavailable while it may still come."""
        name = view.data.get("snapshot")
        if not self.settings.picture or not isinstance(name, str):
            return None, ""
        path = self.context.base_folder / name
        try:
            if path.stat().st_size > self.settings.most_mb * 1e6:
                return None, "The picture is too large for a mail: it is kept as the file above."
            return path.read_bytes(), ""
        except OSError:
            if time.monotonic() < self._since(view) + seconds(self.settings.picture_within):
                raise Unavailable("the picture is being made", patient=True) from None
            return None, "There is no picture: it was not ready in time."

    def _since(self, view: EventView) -> float:
        """When this event came here first, in monotonic seconds."""
        if self._seen_s[0] != view.event.id:
            waited_s = (time.time_ns() - view.event.committed_ns) / 1e9 if view.event.committed_ns else 0.0
            self._seen_s = view.event.id, time.monotonic() - max(0.0, waited_s)
        return self._seen_s[1]

    def disconnect(self) -> None:
        if self._mailing is not None:
            self._mailing[2].abort()
            self._mailing = None


class _Conversation:
    """One connection to the server, for one mail."""

    def __init__(self, settings: SinkEmailSettings, base_folder: Path) -> None:
        self._settings, self._base_folder = settings, base_folder
        self._server: smtplib.SMTP | None = None
        self._is_aborted = False

    def send(self, mail: EmailMessage) -> dict[str, str]:
        """Returns the addresses that the server has refused, with its words; the others get it."""
        settings = self._settings
        with self._connected() as server:
            if settings.user and settings.password:
                _log_in(server, settings.user, settings.password)
            recipients = [addr_spec(one) for one in settings.to]
            refused = server.send_message(mail, addr_spec(settings.sender), recipients)
        return {address: _words_of(code, text) for address, (code, text) in refused.items()}

    def _connected(self) -> smtplib.SMTP:
        """Raises Unavailable, SMTPException and OSError."""
        settings = self._settings
        port = settings.port or _PORTS[settings.security]
        name = settings.tls.server_name if settings.tls and settings.tls.server_name else settings.server
        tls = None if settings.security == "none" else client_tls(settings.tls, self._base_folder)
        made = _Tls if settings.security == "tls" else smtplib.SMTP
        server = self._server = made(timeout=_CALL_S, local_hostname=_own_name())
        if isinstance(server, _Tls):
            assert tls is not None
            server.tls, server.server_name = tls, name
        try:
            server.connect(settings.server, port)
            if settings.security == "starttls":
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

    def abort(self) -> None:
        """Let the thread that talks fail soon."""
        self._is_aborted = True
        sock = getattr(self._server, "sock", None)
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


class _Tls(smtplib.SMTP):
    """Encrypted from the first byte, under a name of our choice."""

    tls: ssl.SSLContext
    server_name: str

    def _get_socket(self, host: str, port: int, timeout: float) -> ssl.SSLSocket:
        plain = socket.create_connection((host, port), timeout)
        try:
            return self.tls.wrap_socket(plain, server_hostname=self.server_name)
        except BaseException:
            plain.close()
            raise


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


def _is_for_good(error: smtplib.SMTPException) -> bool:
    """Whether the server refuses this mail for ever. A wrong password, or a sender it does not know, may be mended."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return all(code >= 500 for code, _ in error.recipients.values())
    if isinstance(error, smtplib.SMTPAuthenticationError | smtplib.SMTPHeloError | smtplib.SMTPConnectError):
        return False
    if isinstance(error, smtplib.SMTPSenderRefused):  # of all mails, unless it is this one's size
        return error.smtp_code == _TOO_LARGE
    return isinstance(error, smtplib.SMTPResponseException) and 500 <= error.smtp_code < 600


def _said(error: smtplib.SMTPException) -> str:
    """The error in words for people."""
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return f"it refuses the user or the password ({_words_of(error.smtp_code, error.smtp_error)})"
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        refused = (f"{one}: {_words_of(code, text)}" for one, (code, text) in error.recipients.items())
        return "it refuses all addresses: " + "; ".join(refused)
    if isinstance(error, smtplib.SMTPSenderRefused):
        return f"it refuses the sender {error.sender}: {_words_of(error.smtp_code, error.smtp_error)}"
    if isinstance(error, smtplib.SMTPNotSupportedError):
        return f"{shown(str(error), _ANSWER)}: choose another `security`, or no password"
    if isinstance(error, smtplib.SMTPResponseException):
        return _words_of(error.smtp_code, error.smtp_error)
    return "it closed the connection" if isinstance(error, smtplib.SMTPServerDisconnected) else type(error).__name__


def _words_of(code: int, text: bytes | str) -> str:
    words = text.decode(errors="replace") if isinstance(text, bytes) else str(text)
    return f"{code} {shown(words, _ANSWER)}"
