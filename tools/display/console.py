"""Tables and live displays, on a console that obeys no text."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import IO, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from camgraph.pipeline.foreign_text import printable
from camgraph.tools.display.screen import bare

_UNLIMITED = 100_000


class SafeConsole(Console):
    """Rich's console: colours and cursor are its own, every text in it is escaped, and none of it is markup."""

    def __init__(self, stream: IO[str], **options: Any) -> None:
        super().__init__(file=bare(stream), markup=False, highlight=False, emoji=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """A reader that closes the stream has seen enough; Rich would end the program."""
        self.quiet = True


def console_of_errors() -> Console:
    """The standard error."""
    return SafeConsole(sys.stderr)


def console_of_output() -> Console:
    """The standard output: as large as the terminal, or without limits for other readers."""
    console = SafeConsole(sys.stdout)
    return console if console.is_terminal else SafeConsole(sys.stdout, width=_UNLIMITED, height=_UNLIMITED)
