"""A mail about an event: a subject, the words in plain text and in HTML, and the picture of it inline.

multipart/alternative
  text/plain
  multipart/related
    text/html         refers to cid:picture
    image/jpeg        inline
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.header import Header
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP, Policy
from email.utils import format_datetime, parseaddr
from typing import Any
from urllib.parse import quote

from camgraph.pipeline.foreign_text import shown
from camgraph.stages.sinks.delivery.event_view import EventView
from camgraph.stages.sinks.delivery.template import filled, filled_lines, one_line

_CID = "picture@camgraph"
_MOST_SUBJECT = 200
_ONE_LINE = 68
"""Letters of ASCII that fit behind `Subject: `."""
_SEE = "See it here"
_SAFE = re.compile(r"[^A-Za-z0-9.-]")
_STYLE = "font-family:sans-serif;font-size:16px;line-height:1.5;max-width:800px"


@dataclass(frozen=True, slots=True)
class Words:
    """The texts of a mail, and whom it is from and to. Texts are templates."""

    sender: str
    to: Sequence[str]
    subject: str
    text: str
    time_zone: str
    link: str = ""
    """A URL with values of the event in it, in a line of its own; "": none."""


def address(text: str) -> str:
    """`name@host`, or `Name <name@host>`, as mail programs want it. Raises ValueError."""
    name, spec = parseaddr(text)
    if not spec or not text.isprintable():
        raise ValueError(f"expected an address such as ward@example.org, got {shown(text, 80)!r}")
    try:
        return str(Address(name, addr_spec=spec))
    except (ValueError, IndexError):
        raise ValueError(f"expected an address such as ward@example.org, got {shown(text, 80)!r}") from None


def addr_spec(text: str) -> str:
    """The `name@host` in it."""
    return parseaddr(text)[1]


def mail_about(view: EventView, words: Words, picture: bytes | None, remark: str = "") -> EmailMessage:
    """Compose the mail. `remark`: a sentence to add, such as why there is no picture."""
    mail = EmailMessage(policy=SMTP)
    title = _first_large(one_line(filled(words.subject, view, words.time_zone)))[:_MOST_SUBJECT]
    mail["Subject"] = _Subject(title)
    mail["From"] = words.sender
    mail["To"] = ", ".join(words.to)
    mail["Date"] = format_datetime(datetime.now(UTC))
    host = _SAFE.sub("-", addr_spec(words.sender).rpartition("@")[2])
    mail["Message-ID"] = f"<{_SAFE.sub('-', view.event.own_id)}@{host}>"
    if view.incident:
        mail["References"] = f"<incident-{_SAFE.sub('-', view.incident)}@{host}>"
    mail["Auto-Submitted"] = "auto-generated"
    text = "\n".join(filter(None, [_first_large(filled_lines(words.text, view, words.time_zone)), remark]))
    link = _link(words, view)
    mail.set_content(f"{text}\n" + (f"{_SEE}: {link}\n" if link else ""))
    mail.add_alternative(_as_html(title, text, link, with_picture=picture is not None), subtype="html")
    if picture is not None:
        parts = mail.get_payload()
        assert isinstance(parts, list)
        related = parts[1]
        assert isinstance(related, EmailMessage)
        name = f"{_SAFE.sub('-', view.camera)}.jpg"
        related.add_related(picture, "image", "jpeg", cid=f"<{_CID}>", filename=name, disposition="inline")
    return mail


class _Subject(str):
    """A subject that folds itself: `email` loses, adds or moves spaces where it folds one, as Python 3.11 does.

    Its `name` makes it a header to `email.policy`, which then calls its `fold`.
    """

    __slots__ = ()
    name = "Subject"

    def fold(self, *, policy: Policy[Any]) -> str:
        fits = self.isascii() and len(self) <= _ONE_LINE and "=?" not in self  # which begins an encoded word
        text = str(self) if fits else Header(self, "utf-8", header_name=self.name).encode(linesep=policy.linesep)
        return f"{self.name}: {text}{policy.linesep}"


def _first_large(text: str) -> str:
    return text[:1].upper() + text[1:]


def _link(words: Words, view: EventView) -> str:
    """Where the event can be seen; "" if the link is about incidents, and the event is not."""
    is_about_it = view.kind in ("incident", "footage") or "{incident}" not in words.link
    return filled(words.link, view, words.time_zone, lambda value: quote(value, safe="")) if is_about_it else ""


def _as_html(title: str, text: str, link: str, *, with_picture: bool) -> str:
    """The same words, escaped, as many lines."""
    first, *others = text.splitlines() or [""]
    lines = "<br>\n".join([f"<b>{html.escape(first)}</b>", *map(html.escape, others)])
    picture = (
        f'<p><img src="cid:{_CID}" alt="{html.escape(title)}" style="max-width:100%"></p>\n' if with_picture else ""
    )
    see = f'<p><a href="{html.escape(link)}">{_SEE}</a></p>\n' if link else ""
    return f'<html><body style="{_STYLE}">\n{picture}<p>{lines}</p>\n{see}</body></html>\n'
