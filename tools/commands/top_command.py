"""The command `top`: the live table of a running graph, from any terminal, sorted and filtered by keys."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import click
from rich.console import Group
from rich.live import Live
from rich.text import Text

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.pipeline.foreign_text import shown
from camgraph.pipeline.monitoring.run_status import CameraStatus, RunStatus
from camgraph.pipeline.supervision.control_client import ask, find_run
from camgraph.tools.commands.run_options import name_option, of_owner, owner_option
from camgraph.tools.display.console import console_of_output
from camgraph.tools.display.live_table import render
from camgraph.tools.display.status_view import ORDINARY

_EVERY_S = 1.0
_KEYS = "q quit   p pause   s sort   r reverse   / filter   Esc all"
_ORDERS: Mapping[str, Callable[[tuple[str, CameraStatus]], object]] = {
    "as in the graph": lambda _: 0,
    "name": lambda item: item[0],
    "trouble": lambda item: item[1].state in ORDINARY,
    "frames a second": lambda item: item[1].fps,
    "age": lambda item: -(item[1].age_ms or 0.0),
    "drops": lambda item: -item[1].drops,
    "incidents": lambda item: -item[1].events,
}
_ESCAPE, _ENTER, _BACKSPACE = "\x1b", "\r\n", "\x7f\b"


@click.command("top")
@name_option
@owner_option
def top_command(name: str | None, owner: int | None) -> None:
    """Watch a running graph live: cameras, stages, sinks and events.

    Keys: `s` sorts the cameras, by trouble, frames a second, age, drops or incidents; `r` reverses; `/` shows only
    cameras whose names have these letters; `p` pauses the display, and not the run; `q` quits.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UserError(
            "top needs a terminal: `camgraph status` prints the table once, also into a pipe", error_id="option-value"
        )
    _Top(find_run(name, owner=owner), owner).run()


@dataclass(slots=True)
class View:
    """What is shown of a status, and how keys change that."""

    order: str = "as in the graph"
    is_reversed: bool = False
    wanted: str = ""
    is_typing: bool = False
    is_paused: bool = False
    is_over: bool = False

    def press(self, key: str) -> None:
        """Any key that means nothing changes nothing."""
        if self.is_typing:
            self._type(key)
        elif key == "q":
            self.is_over = True
        elif key in "p ":
            self.is_paused = not self.is_paused
        elif key == "s":
            orders = list(_ORDERS)
            self.order = orders[(orders.index(self.order) + 1) % len(orders)]
        elif key == "r":
            self.is_reversed = not self.is_reversed
        elif key == "/":
            self.is_typing, self.wanted = True, ""
        elif key == _ESCAPE:
            self.wanted = ""

    def _type(self, key: str) -> None:
        if key in _ENTER:
            self.is_typing = False
        elif key == _ESCAPE:
            self.is_typing, self.wanted = False, ""
        elif key in _BACKSPACE:
            self.wanted = self.wanted[:-1]
        elif key.isprintable():
            self.wanted += key

    def arranged(self, status: RunStatus) -> RunStatus:
        """The cameras that are wanted, in the order that is wanted."""
        kept = [item for item in status.cameras.items() if self.wanted.casefold() in item[0].casefold()]
        kept.sort(key=_ORDERS[self.order])  # type: ignore[arg-type]  # values of one order can be compared
        return replace(status, cameras=dict(reversed(kept) if self.is_reversed else kept))

    @property
    def line(self) -> str:
        """What is shown, and the keys."""
        if self.is_typing:
            return f"show cameras with: {self.wanted}_"
        parts = ["PAUSED"] if self.is_paused else []
        parts += [f"sorted by {self.order}"] if self.order != "as in the graph" else []
        parts += ["reversed"] if self.is_reversed else []
        parts += [f"only with {self.wanted!r}"] if self.wanted else []
        return "   ".join([*parts, _KEYS])


class _Top:
    def __init__(self, run: str, owner: int | None = None) -> None:
        self._run, self._owner = run, owner
        self._view = View()
        self._status = RunStatus(run)
        self._why = ""

    def run(self) -> None:
        """Until somebody quits. Raises UserError when the run is gone."""
        with _keys() as pressed, Live(console=console_of_output(), screen=True, auto_refresh=False) as live:
            due_s = 0.0
            while not self._view.is_over:
                if time.monotonic() >= due_s:
                    self._poll()
                    due_s = time.monotonic() + _EVERY_S
                live.update(self._shown(), refresh=True)
                for key in pressed(max(0.0, due_s - time.monotonic())):
                    self._view.press(key)

    def _poll(self) -> None:
        if self._view.is_paused:
            return
        try:
            self._status, self._why = RunStatus.from_json(ask(self._run, "status", owner=self._owner)), ""
        except EnvironmentProblem as error:
            self._why = str(error)

    def _shown(self) -> Group:
        last = [Text(shown(self._why), "bold red")] if self._why else []
        return Group(
            Text(shown(self._view.line + of_owner(self._owner)), "reverse", no_wrap=True),
            *last,
            render(self._view.arranged(self._status)),
        )


@contextmanager
def _keys() -> Iterator[Callable[[float], str]]:
    """A function that waits so many seconds for keys, and returns those that were pressed."""
    import termios  # noqa: PLC0415 - not on every system
    import tty  # noqa: PLC0415

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)

    def pressed(within_s: float) -> str:
        if not select.select([descriptor], [], [], within_s)[0]:
            return ""
        given = os.read(descriptor, 64)
        if not given:
            return "q"  # the terminal is gone
        # Arrows and the like begin as Escape does: they mean nothing here.
        return "" if given.startswith(b"\x1b[") else given.decode(errors="ignore")

    try:
        tty.setcbreak(descriptor)
        yield pressed
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
