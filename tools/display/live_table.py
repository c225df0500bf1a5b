"""Shows a running graph: a live table on a terminal, plain lines elsewhere. Data is handed in; nothing is asked for.

with open_display(Console()) as display:
    while ...:
        display.show(run.status())        as often as wanted
console.print(render_summary(summary_of(run.status(), plan)))
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Protocol

from rich.console import Console
from rich.live import Live

from camgraph.pipeline.monitoring.event_format import EventStatus
from camgraph.pipeline.monitoring.run_status import RunStatus
from camgraph.tools.display.status_view import event_text, headline, progress_words, render, render_summary, troubles

__all__ = [
    "Display",
    "LiveTable",
    "PlainLines",
    "new_events",
    "open_display",
    "render",
    "render_summary",
]

REFRESH_S = 0.25
PLAIN_REFRESH_S = 1.0
PLAIN_LINE_S = 5.0
LONGEST_BETWEEN_LINES_S = 60.0


class Display(Protocol):
    """Takes the latest status, and shows it when it is due. `refresh_s`: how often it wants one."""

    refresh_s: float

    def show(self, status: RunStatus) -> None: ...


@contextmanager
def open_display(console: Console, now_s: Callable[[], float] = time.monotonic) -> Iterator[Display]:
    """The display that suits `console`. The live table disappears at the end, for the summary to take its place."""
    if not console.is_terminal or console.is_dumb_terminal:
        yield PlainLines(console, now_s)
        return
    # Rich would obey escape sequences in the output of other programs meanwhile.
    live = Live(console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False)
    live.start()
    try:
        yield LiveTable(live, now_s)
    finally:
        with suppress(OSError):  # the terminal may be gone
            live.stop()


class LiveTable:
    """A table in place, four times a second at most; no thread of its own."""

    refresh_s = REFRESH_S

    def __init__(self, live: Live, now_s: Callable[[], float]) -> None:
        self._live = live
        self._now_s = now_s
        self._due_s = now_s()

    def show(self, status: RunStatus) -> None:
        """Redraw, when a quarter of a second has passed."""
        if self._now_s() >= self._due_s:
            self._due_s = self._now_s() + REFRESH_S
            self._live.update(render(status), refresh=True)


class PlainLines:
    """A line every five seconds, later every minute, and one for each event that begins. No control characters.

    A day's output must stay small: a run in the background goes on for months.
    """

    refresh_s = PLAIN_REFRESH_S

    def __init__(self, console: Console, now_s: Callable[[], float]) -> None:
        self._console = console
        self._now_s = now_s
        self._due_s = now_s()
        self._seen: Sequence[EventStatus] = ()

    def show(self, status: RunStatus) -> None:
        """Write the new lines."""
        for event in new_events(self._seen, status.events):
            if event.phase in ("start", "single"):
                self._write(f"event  {event_text(event)}")
        self._seen = status.events
        if self._now_s() >= self._due_s:
            self._due_s = self._now_s() + line_every_s(status.uptime_s)
            self._write("status " + "  ".join([*headline(status), *progress_words(status), *troubles(status)]))

    def _write(self, line: str) -> None:
        self._console.print(line, soft_wrap=True)


def line_every_s(uptime_s: float) -> float:
    """How long to wait for the next line: 5 s in the first minute, 60 s from the twelfth on."""
    return min(LONGEST_BETWEEN_LINES_S, max(PLAIN_LINE_S, uptime_s / 12))


def new_events(before: Sequence[EventStatus], now: Sequence[EventStatus]) -> Sequence[EventStatus]:
    """Those of `now` that were not in `before`; both are the last few of one growing list."""
    for common in range(min(len(before), len(now)), 0, -1):
        if tuple(before[-common:]) == tuple(now[:common]):
            return now[common:]
    return now
