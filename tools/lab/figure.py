"""The frame of a figure or proof: a command that says how long it takes, measures, and writes its part of a page.

    @figure_command("benchmarks.traces")
    @click.option("--rounds", default=5)
    def main(figure: Figure, rounds: int) -> None:
        figure.takes(60.0 * rounds, f"{rounds} pairs of runs")
        ...
        figure.publish(f"{figure.head()}\\n\\n{table}", faults)

The command prints its part and, with `--report PAGE`, puts the part between the marks of the page. A proof writes its
page whatever came out; with faults, the exit status is 1.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import update_wrapper
from pathlib import Path
from typing import Any

import click

from camgraph.tools.lab.report_page import between_marks, machine_line, put_between_marks, written_by
from camgraph.tools.measuring.processor_time import CpuTime, cpu_time, others_line

_SHOWN_FAULTS = 20


class Figure:
    """One run of a figure's command. ``name``: its module below `tools.lab`; ``marks``: of its part of the page."""

    def __init__(self, name: str, marks: str, page: Path | None, options: dict[str, Any]) -> None:
        self.times: list[CpuTime] = [cpu_time()]
        """Looks at the machine's processor time: one at the start, and more by `look`."""
        self._name = name
        self._marks = marks
        self.page = page
        self._options = options

    def takes(self, seconds: float, what: str) -> None:
        """Say at the start how long the measurements take."""
        click.echo(f"about {seconds / 60:.0f} min: {what}" if seconds >= 90 else f"about {seconds:.0f} s: {what}")

    def look(self) -> None:
        """Note the machine's processor time between two measurements."""
        self.times.append(cpu_time())

    def others(self) -> str:
        """A sentence on the cores that other programs took from the start until now."""
        self.look()
        return others_line(self.times)

    def written(self, but: Collection[str] = ()) -> str:
        """The command with its options, and the date. ``but``: options that do not belong on the page."""
        return written_by(self._name, {name: value for name, value in self._options.items() if name not in but})

    def head(self, but: Collection[str] = ()) -> str:
        """The command, the date and the machine."""
        return f"{self.written(but)} {machine_line()}."

    def standing(self) -> str:
        """The part that stands in the page now; empty without a page."""
        return between_marks(self.page.read_text(), self._marks) if self.page else ""

    def publish(self, text: str, faults: Collection[str] = ()) -> None:
        """Print the part and put it into the page. Raises ClickException, for status 1, if there are faults."""
        click.echo(text)
        if self.page:
            self.page.write_text(put_between_marks(self.page.read_text(), text, self._marks))
        if faults:
            raise click.ClickException("\n".join([*faults][:_SHOWN_FAULTS]))


def figure_command(name: str, **other_marks: str) -> Callable[[Callable[..., None]], click.Command]:
    """Make a command of a function that takes a `Figure` and its own options.

    ``other_marks``: a flag of the command -> the marks that its part of the page has if the flag is given.
    """

    def made(measure: Callable[..., None]) -> click.Command:
        def run(**options: Any) -> None:
            page = options.pop("page")
            marks = next((marks for flag, marks in other_marks.items() if options[flag]), name)
            if page:
                put_between_marks(page.read_text(), "", marks)  # a page without the marks is refused at once
            declared = [one.name for one in command.params if one.name and one.name in options]
            measure(Figure(name, marks, page, {one: options[one] for one in declared}), **options)

        command = click.command()(update_wrapper(run, measure))
        command.params.append(_report_option())
        return command

    return made


def _report_option() -> click.Option:
    file = click.Path(path_type=Path, exists=True, dir_okay=False)
    return click.Option(["--report", "page"], type=file, help="The page to write, between its marks.")
