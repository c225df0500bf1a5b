from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.pipeline.errors import Unavailable
from camgraph.stages.sinks.delivery.event_sink import Later
from camgraph.stages.sinks.delivery.web.answers import LONGEST_PAUSE_S, Gone, judge, pause_of
from camgraph.stages.sinks.delivery.web.web_client import Answer

NOW_S = 1_800_000_000.0


def fate(status: int, retry_after: str = "", location: str = "", text: str = "") -> str:
    """`taken`, `refused: why`, `gone: why`, `waits: why`, or `waits N s: why`."""
    try:
        why = judge(Answer(status, retry_after, location, text), NOW_S)
    except Gone as error:
        return f"gone: {error}"
    except Later as error:
        return f"waits {error.pause_s:g} s: {error}"
    except Unavailable as error:
        return f"waits: {error}"
    return f"refused: {why}" if why else "taken"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ((200,), "taken"),
        ((204,), "taken"),
        ((302, "", "https://other.test/token"), "waits: it answers 302 and sends us to https://other.test: write the"),
        ((307, "", "/elsewhere"), "waits: it answers 307 and sends us elsewhere: write the right `url`"),
        ((400, "", "", "no\n text"), "refused: it does not take this event: it answers 400: no text"),
        ((401,), "waits: it does not accept these credentials"),
        ((403,), "waits: it allows these credentials nothing"),
        ((404,), "waits: it knows nothing at this path"),
        ((405,), "waits: it takes no POST at this path"),
        ((408,), "waits: it took too long"),
        ((409,), "refused: it does not take this event: it answers 409"),
        ((410,), "gone: it wants no more events"),
        ((413,), "refused: "),
        ((422,), "refused: "),
        ((425,), "waits: it is too early"),
        ((429, "30"), "waits 30 s: it gets too many requests (it answers 429)"),
        ((429,), "waits: it gets too many requests (it answers 429)"),
        ((500, "", "", "x" * 1000), f"waits: it fails (it answers 500: {'x' * 200}...)"),
        ((503, "5"), "waits 5 s: it fails"),
        ((103,), "waits: its answer has no meaning here"),
        ((700,), "waits: it fails"),
    ],
)
def test_what_a_status_means(answer, expected) -> None:
    assert fate(*answer).startswith(expected)


@pytest.mark.parametrize(
    ("text", "pause_s"),
    [
        ("", 0),
        ("7", 7),
        (" 7 ", 7),
        ("-7", 0),
        ("7.5", 0),
        ("soon", 0),
        ("9" * 5000, LONGEST_PAUSE_S),
        ("٣", 0),
        (format_datetime(datetime.fromtimestamp(NOW_S + 90, UTC), usegmt=True), 90),
        (format_datetime(datetime.fromtimestamp(NOW_S - 90, UTC), usegmt=True), 0),
        ("Wed, 99 Foo 2026 00:00:00 GMT", 0),
    ],
)
def test_the_pause_that_a_server_asks_for(text, pause_s) -> None:
    assert pause_of(text, NOW_S) == pause_s


@given(st.text(max_size=60))
def test_any_text_gives_a_pause_of_at_most_an_hour(text) -> None:
    assert 0 <= pause_of(text, NOW_S) <= LONGEST_PAUSE_S
