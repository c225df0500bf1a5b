"""The subject of a mail, as the other side reads it."""

from __future__ import annotations

from email import message_from_bytes
from email.header import decode_header, make_header
from email.policy import default

import pytest
from camgraph_test_stages.incident_views import incident
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.sinks.delivery.mail.mail_message import Words, mail_about

BLANKS_AND_SIGNS = " ,.-:;()[]<>@\"'=?_~"
LETTERS = st.one_of(
    st.sampled_from(BLANKS_AND_SIGNS), st.sampled_from("aäß入दा👩"), st.characters(exclude_categories=["Cs"])
)
TITLES = st.lists(st.text(LETTERS, min_size=1, max_size=60), min_size=1, max_size=8).map(" ".join)


def subjects(title: str) -> tuple[str, str, str, int]:
    """The subject that is meant, as two parsers read it, and the length of the longest line without its end."""
    words = Words("ward@example.org", ["night@example.org"], "{zones}", "{camera}", "UTC")
    mail = mail_about(incident("a", "start", zones=[title]), words, None)
    head, _, _ = mail.as_bytes().partition(b"\r\n\r\n")
    new, old = message_from_bytes(head, policy=default), message_from_bytes(head)
    decoded = str(make_header(decode_header(old["Subject"])))
    return str(mail["Subject"]), str(new["Subject"]), decoded, max(map(len, head.splitlines()))


@given(TITLES)
def test_any_subject_arrives_as_it_is(title: str) -> None:
    meant, new, old, longest = subjects(title)
    assert new == old == meant
    assert longest <= 78


@pytest.mark.parametrize(
    "title",
    [
        "Person lying down on Süd – Jemand stürzt und bleibt liegen, oder ist auf dem Weg nach unten nicht mehr zu "
        "sehen, für längere Zeit übrigens., 03:12:40 CET",
        " ".join(["入口 で 人 が 倒れて います"] * 5),
        "Somebody fell in the corridor of the second floor and lies there, or is no longer to be seen: north, south",
        "A sign =?utf-8?q?of?= others",
        "X" * 150,
    ],
)
def test_long_subjects(title: str) -> None:
    meant, new, old, longest = subjects(title)
    assert new == old == meant == title
    assert longest <= 78


def test_a_short_subject_in_ascii_can_be_read_as_it_is_sent() -> None:
    words = Words("ward@example.org", ["night@example.org"], "{camera}: fall", "{camera}", "UTC")
    mail = mail_about(incident("a", "start"), words, None)
    assert b"Subject: Cam: fall\r\n" in mail.as_bytes()
