"""Sends a mail about each incident, with its picture, and about each camera that is lost.

    nurse: {use: sink_email, from: events, with: {server: mail.example.org, user: ward, password: "${secret:mail}",
            sender: "Ward 3 <ward3@example.org>", to: night@example.org}}

By default there is a mail when an incident begins and none when it ends; and one when a camera is lost, and when it is
back, if the sink reads from `events`. The picture is that of `sink_footage`, which the event names: the mail waits some
seconds for it, and is sent without it if it does not come. A mail counts as delivered once the server has taken it
(250); camgraph cannot see what becomes of it then.

| the server | then |
|---|---|
| refuses this very mail (5xx), or all of its addresses because they do not exist | the event becomes a dead letter |
| refuses the mail for its size | it gets the mail without the picture |
| refuses some of the addresses for good | the others get it; the log and the counter `recipients_refused` tell |
| refuses some of the addresses for now (4xx: greylisting, a full mailbox) | the others get it. These alone
get it later, after 1, 2, 5, 10, 30, then every 60 min, for a day (`expires`); then a dead letter names them. If the run
is stopped, the next run of its name goes on with that |
| does anything else: cannot be reached, answers 4xx, refuses the connection, the password, the sender, or to deliver
for us | the event waits and is tried again, and status says why |
"""

from __future__ import annotations

import re
import smtplib
import ssl
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from camgraph.pipeline.errors import EnvironmentProblem, Unavailable
from camgraph.pipeline.messages import End, Event, Message
from camgraph.pipeline.stage import Context, Counts, SettingProblems, Upstream
from camgraph.stages.sinks.delivery.bounded_line import why_away
from camgraph.stages.sinks.delivery.durations import Duration, seconds
from camgraph.stages.sinks.delivery.event_sink import DeliverySettings, EventSink, Refused
from camgraph.stages.sinks.delivery.event_view import EventView, view_of
from camgraph.stages.sinks.delivery.footage_files import (
    NOT_IN_TIME,
    TOO_LARGE,
    FootageFiles,
    FootageSettings,
    footage_beside,
    picture_named,
)
from camgraph.stages.sinks.delivery.mail.errand import Errand
from camgraph.stages.sinks.delivery.mail.mail_answers import answer_of, is_about_size, is_for_good
from camgraph.stages.sinks.delivery.mail.mail_message import Words, addr_spec, address, mail_about
from camgraph.stages.sinks.delivery.mail.mail_server import (
    CALL_S,
    NO_ANSWER,
    Conversation,
    MailServer,
    Refusal,
    Refusals,
    Security,
)
from camgraph.stages.sinks.delivery.mail.postponed import MOST, Postponed, PostponedMail
from camgraph.stages.sinks.delivery.selection import Filters, new_incidents_and_cameras
from camgraph.stages.sinks.delivery.template import TemplateText
from camgraph.stages.sinks.delivery.tls import TlsSettings, tls_problems

_TURN_S = 1.0
"""How long one call waits; the process goes on listening between two calls."""
_PORTS = {"starttls": 587, "tls": 465, "none": 25}
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_AT_MOST = "1d"
"""How long refused addresses are retried if `expires` is not set."""
_TOO_LARGE = "The picture is too large for a mail."
_SUBJECT = "{what}, {time} {time_zone}"
_TEXT = """\
{what}
{date}, {time} {time_zone}
{notice}
{about}
Severity: {severity}
Place: {zones}
Why: {why}
"""


def _as_list(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _is_web(link: str) -> str:
    if not re.match(r"https?://[^\s/{]", link) or re.search(r"\s", link):
        raise ValueError("expected a link that begins with https:// or http:// and a host, without spaces")
    return link


def _is_host(name: str) -> str:
    name = name.removeprefix("[").removesuffix("]")  # of an IPv6 address
    try:
        name.encode("idna")
    except UnicodeError:
        raise ValueError("no host can have this name") from None
    return name


Mailbox = Annotated[str, Field(min_length=3, max_length=320), AfterValidator(address)]


class SinkEmailSettings(DeliverySettings, FootageSettings):
    """The server, whom the mail is from and to, and its words."""

    only: Filters | None = Field(
        default_factory=new_incidents_and_cameras,
        description="Send only events that fit this filter, or one of these; by default the beginnings of incidents, "
        "and cameras that are lost and back",
    )
    server: Annotated[str, AfterValidator(_is_host)] = Field(
        min_length=1, max_length=253, pattern=r"^[^\s/@]+$", description="The host of your mail server"
    )
    port: int | None = Field(None, ge=1, le=65535, description="By default that of `security`: 587, 465 or 25")
    security: Security = Field(
        "starttls", description="How the connection is encrypted. none: not at all, and then without a password"
    )
    tls: TlsSettings | None = Field(None, description="Whom to trust, and our own certificate")
    user: str | None = Field(None, min_length=1, description="The name to log in with, together with `password`")
    password: str | None = Field(None, min_length=1, description="Write `${secret:NAME}`")
    sender: Mailbox = Field(description="ward3@example.org, or Ward 3 <ward3@example.org>")
    to: Annotated[list[Mailbox], BeforeValidator(_as_list), Field(min_length=1, max_length=100)] = Field(
        description="One address, or several"
    )
    subject: TemplateText = Field(_SUBJECT, description="With {what}, {camera}, {time} and so on")
    text: TemplateText = Field(_TEXT, description="Likewise. Lines whose values an event does not have are left out")
    link: Annotated[TemplateText, AfterValidator(_is_web)] | None = Field(
        None, description="Where an incident can be seen, such as `https://cameras.example.org/{incident}`"
    )
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
        if not (self.user or "").isascii() or not (self.password or "").isascii():
            raise ValueError("`user` and `password`: only ASCII letters can be sent to a mail server")
        if self.password and self.security == "none" and self.server not in _LOOPBACK:
            raise ValueError("a password is not sent without encryption: choose `security: starttls` or `tls`")
        if self.tls and self.security == "none":
            raise ValueError("`tls` needs `security: starttls` or `tls`")
        return self

    @property
    def place(self) -> str:
        """For people."""
        return f"{self.server}:{self._port}"

    @property
    def _port(self) -> int:
        return self.port or _PORTS[self.security]

    def mail_server(self, base_folder: Path) -> MailServer:
        """The server and the way in."""
        return MailServer(self.server, self._port, self.security, self.tls, base_folder, self.user, self.password)


class SinkEmail(EventSink[SinkEmailSettings]):
    """An event -> a mail."""

    settings_type = SinkEmailSettings
    counts: ClassVar[Counts] = {
        **EventSink.counts,
        "recipients_refused": "Addresses that a mail server has refused; the others got the mail.",
    }

    def __init__(self, settings: SinkEmailSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._words = Words(
            settings.sender, settings.to, settings.subject, settings.text, settings.time_zone, settings.link or ""
        )
        self._footage = FootageFiles(settings.footage_folders, context.base_folder)
        self._sender = addr_spec(settings.sender)
        self._bare = ""
        """The id of the event whose mail was refused for its size: it is sent without the picture."""
        self._mailing: tuple[str, Errand[Refusals], Conversation] | None = None
        self._later = Postponed(
            context.dead_letters.path.with_suffix(f".{context.worker}.postponed"), self._try_again, context.log
        )
        self._talking_later: Conversation | None = None
        self._is_trial = False

    @classmethod
    def check(cls, settings: SinkEmailSettings, base_folder: Path) -> SettingProblems:
        yield from tls_problems(settings.tls, base_folder)

    @classmethod
    def follow(cls, settings: SinkEmailSettings, base_folder: Path, upstream: Upstream) -> Mapping[str, Any]:
        return {**super().follow(settings, base_folder, upstream), **footage_beside(settings, upstream)}

    def open(self) -> None:
        super().open()
        self._later.load()

    def try_out(self, event: Event) -> None:
        """See `EventSink`. Raises Refused if the server does not take the mail for each of the addresses."""
        self._is_trial = True
        super().try_out(event)

    def send(self, events: Sequence[EventView]) -> None:
        """One mail a call: the others come again at once."""
        view = events[0]
        self._mail(view)
        self.sent_already(view)
        if len(events) > 1:
            raise Unavailable("further mails are to be sent", patient=True)

    def finish(self, camera: str, end: End) -> Iterable[Message]:
        """Try once more to reach the recipients who still lack a mail, then write dead letters that name them.

        A run that was stopped leaves them to the next run of its name.
        """
        if end.reason == "end":
            if not self._later.try_last(seconds(self.settings.limit)):
                raise Unavailable("mails are tried for the last time", patient=True)
            self._later.give_up(lambda rest: self._give_up(rest, "before the end of the run"))
        return super().finish(camera, end)

    def close(self) -> None:
        super().close()
        if self._talking_later:
            self._talking_later.abort()
        for rest in self._later.close():
            self._give_up_now(rest, "before the end of the run")

    def _mail(self, view: EventView) -> None:
        """Return once the server has the mail. Raises Unavailable while it is on the way, and Refused."""
        if self._mailing is None or self._mailing[0] != view.event.id:
            self.disconnect()
            mail = mail_about(view, self._words, *self._picture(view))
            limit_s = seconds(self.settings.limit)
            conversation = Conversation(self.settings.mail_server(self.context.base_folder), limit_s)
            everybody = [addr_spec(one) for one in self.settings.to]
            errand = Errand(lambda: conversation.send(mail, self._sender, everybody), limit_s, "mail")
            self._mailing = view.event.id, errand, conversation
        refusals = self._answer(view, self._mailing[1])
        if refusals and self._is_trial:
            self.disconnect()
            raise Refused({view.event.id: f"{self.settings.place}: the mail was not taken for {_named(refusals)}"})
        self._note_refused(view, {one: refusal.words for one, refusal in refusals.items() if not refusal.is_for_now})
        if later := {one: refusal.words for one, refusal in refusals.items() if refusal.is_for_now}:
            self.context.log.info("recipients_later", id=view.event.own_id, recipients=later)
            if given_up := self._later.add(PostponedMail(view.event, later, time.time_ns())):
                self._give_up_now(given_up, f"among more than {MOST} mails")

    def _note_refused(self, view: EventView, refused: Mapping[str, str]) -> None:
        for recipient, why in refused.items():
            self.context.count("recipients_refused", view.event.stamp.camera)
            self.context.log.warning("recipient_refused", recipient=recipient, why=why)

    # ---- those who get it later

    def _try_again(self, rest: PostponedMail) -> PostponedMail | None:
        """Send the mail to those who have not got it. Returns what is left to do. Runs in a thread of its own."""
        refusals = self._refused_again(view_of(rest.event), rest.why)
        final = {one: refusal.words for one, refusal in refusals.items() if not refusal.is_for_now}
        left = replace(rest, why={one: refusal.words for one, refusal in refusals.items() if refusal.is_for_now})
        limit = self.settings.expires or _AT_MOST
        is_late = time.time_ns() - rest.since_ns > seconds(limit) * 1e9
        if final and not self._give_up_now(replace(rest, why=final), "later"):
            left = replace(left, why={**left.why, **final})
        if left.why and is_late and self._give_up_now(left, f"within {limit}"):
            return None
        return left if left.why else None

    def _refused_again(self, view: EventView, recipients: Mapping[str, str]) -> Refusals:
        """Address of who still has not got it -> the answer of the server, or why there is none."""
        place, limit_s = self.settings.mail_server(self.context.base_folder), seconds(self.settings.limit)
        conversation = self._talking_later = Conversation(place, limit_s)
        try:
            mail = mail_about(view, self._words, *self._picture(view))
            errand = Errand(lambda: conversation.send(mail, self._sender, list(recipients)), limit_s, "mail")
            while not errand.is_over(_TURN_S):
                pass
            return errand.result()
        except smtplib.SMTPRecipientsRefused as error:
            return {one: Refusal(*error.recipients.get(one, (NO_ANSWER, b"not asked"))) for one in recipients}
        except smtplib.SMTPException as error:
            why = answer_of(error)
        except (OSError, Unavailable) as error:
            why = str(error) or type(error).__name__
        finally:
            conversation.abort()
        return dict.fromkeys(recipients, Refusal(NO_ANSWER, why.encode()))

    def _give_up_now(self, rest: PostponedMail, when: str) -> bool:
        """Whether the dead letter could be written; if not, that is logged."""
        try:
            self._give_up(rest, when)
        except EnvironmentProblem as error:
            self.context.log.warning("recipients_later", id=rest.event.own_id, why=str(error))
            return False
        return True

    def _give_up(self, rest: PostponedMail, when: str) -> None:
        """Raises EnvironmentProblem if the dead letter cannot be written."""
        named = ", ".join(f"{one} ({why})" for one, why in rest.why.items())
        why = f"{self.settings.place}: not taken {when} for {named}; the others got the mail"
        self.context.dead_letters.add(rest.event, why, attempts=rest.tries)
        self.context.log.error(
            "event_not_delivered",
            camera=rest.event.stamp.camera,
            id=rest.event.own_id,
            incident=rest.event.incident,
            why=why,
        )
        self._note_refused(view_of(rest.event), rest.why)

    # ---- one mail

    def _answer(self, view: EventView, errand: Errand[Refusals]) -> Refusals:
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
            if is_about_size(error) and picture_named(view) and self._bare != view.event.id:
                self._bare = view.event.id
                raise Unavailable("the mail without the picture", patient=True) from None
            if is_for_good(error):
                raise Refused({view.event.id: f"{place}: {answer_of(error)}"}) from None
            raise Unavailable(f"{place}: {answer_of(error)}") from None
        except OSError as error:
            self.disconnect()
            raise Unavailable(f"{place}: {why_away(error)}") from None

    def _picture(self, view: EventView) -> tuple[bytes | None, str]:
        """The picture, and a sentence about it. Raises Unavailable while it may still come."""
        name = picture_named(view)
        if not self.settings.picture or not name:
            return None, ""
        if self._bare == view.event.id:
            return None, _TOO_LARGE
        may_come = self.waited_s(view) < seconds(self.settings.picture_within)
        picture, why = self._footage.picture_or_why(name, self.settings.most_mb * 1e6, may_come=may_come)
        if picture is not None:
            return picture, "The picture is attached."
        if why == TOO_LARGE:
            return None, _TOO_LARGE
        if why == NOT_IN_TIME:
            return None, f"There is no picture: {why}."
        self.context.log.warning("picture_not_sent", camera=view.camera, id=view.event.own_id, why=why)
        return None, "There is no picture."

    def disconnect(self) -> None:
        if self._mailing is not None:
            self._mailing[2].abort()
            self._mailing = None


def _named(refusals: Refusals) -> str:
    return ", ".join(f"{one} ({refusal.words})" for one, refusal in refusals.items())


def try_login(settings: SinkEmailSettings, base_folder: Path, within_s: float = CALL_S) -> None:
    """Connect and log in as for a mail, and send none.

    Raises SSLCertVerificationError if the certificate is not trusted, and Unavailable, with the reason, for all else.
    """
    place, conversation = settings.place, Conversation(settings.mail_server(base_folder), within_s)
    errand = Errand(conversation.log_in, within_s, "mail")
    try:
        while not errand.is_over(_TURN_S):
            pass
        errand.result()
    except TimeoutError:
        raise Unavailable(f"{place}: no answer within {within_s:g} s") from None
    except smtplib.SMTPException as error:
        raise Unavailable(f"{place}: {answer_of(error)}") from None
    except ssl.SSLCertVerificationError:
        raise
    except OSError as error:
        raise Unavailable(f"{place}: {why_away(error)}") from None
    finally:
        conversation.abort()
