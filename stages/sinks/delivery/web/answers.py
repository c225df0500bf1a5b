"""What the status of an HTTP answer means for the event that was posted."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from email.utils import parsedate_to_datetime

from camgraph.pipeline.errors import Unavailable
from camgraph.pipeline.foreign_text import shown
from camgraph.stages.sinks.delivery.event_sink import Later
from camgraph.stages.sinks.delivery.web.web_addresses import web_address
from camgraph.stages.sinks.delivery.web.web_client import Answer

LONGEST_PAUSE_S = 3600.0
"""A receiver that asks for more gets this: alerts that come a day late are of no use."""
_TEXT = 200
_TOO_EARLY = {408: "it took too long", 425: "it is too early for it", 429: "it gets too many requests"}
_NOT_ABOUT_THE_EVENT = {
    401: "it does not accept these credentials: mend them there, or in the graph",
    403: "it allows these credentials nothing: mend that there, or name others in the graph",
    404: "it knows nothing at this path: mend `url`, or the server",
    405: "it takes no POST at this path: mend `url`, or the server",
    407: "a proxy wants credentials",
}


class Gone(Unavailable):
    """The receiver has said that it wants no more events."""


def judge(answer: Answer, now_s: float, hidden: Callable[[str], str] = str) -> str:
    """Why the server will never take this event; "" if it has taken it. `hidden`: takes our secrets out of its text.

    Raises Gone; Later or Unavailable if the event is to be sent again; the texts do not name the server.
    """
    status = answer.status
    if 200 <= status < 300:
        return ""
    answered = f"{status}{_text_of(answer, hidden)}"
    if status == 410:
        raise Gone(f"it wants no more events (it answers {answered})")
    if status in _NOT_ABOUT_THE_EVENT:
        raise Unavailable(f"{_NOT_ABOUT_THE_EVENT[status]} (it answers {answered})")
    if 400 <= status < 500 and status not in _TOO_EARLY:
        return f"it does not take this event: it answers {answered}"
    raise _again(answer, answered, now_s)


def _again(answer: Answer, answered: str, now_s: float) -> Unavailable:
    if 300 <= answer.status < 400:
        return Unavailable(
            f"it answers {answer.status} and sends us{_where_to(answer.location)}: write the right `url`, since "
            "redirects are not followed"
        )
    words = _TOO_EARLY.get(answer.status, "it fails" if answer.status >= 500 else "its answer has no meaning here")
    pause_s = pause_of(answer.retry_after, now_s)
    return (
        Later(f"{words} (it answers {answered})", pause_s)
        if pause_s
        else Unavailable(f"{words} (it answers {answered})")
    )


def _where_to(location: str) -> str:
    """The server that a redirect names. Its path may hold a token."""
    with suppress(ValueError):
        return f" to {web_address(location)}"
    return " elsewhere"


def pause_of(retry_after: str, now_s: float) -> float:
    """The seconds that a header `Retry-After` asks for, as a number or as a date; 0 if it makes no sense."""
    text = retry_after.strip()
    pause_s = 0.0
    if text.isascii() and text.isdigit():
        pause_s = float(text[:9])
    elif text:
        with suppress(ValueError, TypeError, OverflowError):
            pause_s = parsedate_to_datetime(text).timestamp() - now_s
    return min(max(pause_s, 0.0), LONGEST_PAUSE_S)


def _text_of(answer: Answer, hidden: Callable[[str], str]) -> str:
    text = shown(" ".join(hidden(answer.text).split()), _TEXT)
    return f": {text}" if text else ""
