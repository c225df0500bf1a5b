"""Pages of measured figures: a tool writes one part of a page, between its marks. The text around them stays.

<!-- written by camgraph.tools.lab.proofs.soak: begin -->
(replaced at each run with `--report`)
<!-- written by camgraph.tools.lab.proofs.soak: end -->
"""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from statistics import median
from typing import Any

import click

_LAB = "camgraph.tools.lab"
_DOUBT = 0.05


def put_between_marks(page: str, text: str, tool: str) -> str:
    """The page with `text` between the marks of that tool. Raises ClickException."""
    before, _, after = _parted(page, tool)
    begin, end = marks_of(tool)
    return f"{before}{begin}\n{text.strip()}\n{end}{after}"


def between_marks(page: str, tool: str) -> str:
    """The part of the page between the marks of that tool. Raises ClickException."""
    return _parted(page, tool)[1].strip()


def _parted(page: str, tool: str) -> tuple[str, str, str]:
    marks = marks_of(tool)
    before, begin, rest = page.partition(marks[0])
    part, end, after = rest.partition(marks[1])
    if not (begin and end):
        raise click.ClickException(f"the page has no place for the report: expected the lines {' and '.join(marks)}")
    return before, part, after


def marks_of(tool: str) -> tuple[str, str]:
    """The lines of a page between which the tool writes its part."""
    begin, end = (f"<!-- written by {_LAB}.{tool}: {which} -->" for which in ("begin", "end"))
    return begin, end


def written_by(tool: str, options: Mapping[str, Any]) -> str:
    """Which command, and when. ``options``: its own, defaults included."""
    return f"Written by `{command_line(tool, options)}` on {datetime.now(UTC):%Y-%m-%d}."


def command_line(tool: str, options: Mapping[str, Any]) -> str:
    """The command with its options, so that the run can be repeated; those without a value are left out.

    Within a running command, options have the names that it declares: ``place`` may be `--in`.
    """
    context = click.get_current_context(silent=True)
    declared = {one.name: one for one in context.command.params} if context else {}
    words = [word for name, value in options.items() for word in _words(name, value, declared.get(name))]
    return " ".join([f"python -m {_LAB}.{tool}", *words])


def _words(name: str, value: Any, declared: click.Parameter | None) -> list[str]:
    """``ways=("a", "b c")`` is given as ``--way a --way "b c"``, and ``size=(320, 192)`` as ``--size 320 192``."""
    if value is None or value == () or value is False:
        return []
    values = value if isinstance(value, tuple) else (value,)
    if isinstance(declared, click.Argument):
        return [*map(_quoted, values)]
    option, repeated = "--" + name.replace("_", "-"), isinstance(value, tuple) and name.endswith("s")
    if declared:
        option, repeated = max(declared.opts, key=len), isinstance(value, tuple) and declared.multiple
    elif repeated:
        option = option.removesuffix("s")
    if value is True:
        return [option]
    return [word for one in values for word in (option, _quoted(one))] if repeated else [option, *map(_quoted, values)]


def _quoted(value: Any) -> str:
    """The word as you would type it; an absolute path is cut to its name, because the page is read elsewhere."""
    text = f"{value:g}" if isinstance(value, float) else str(value)
    if text.startswith("/"):
        text = f"DIR/{Path(text).name}"
    return f'"{text}"' if set(text) & set(" [],") else text


def machine_line() -> str:
    """Cores, processor and Python: without them no figure says anything."""
    names = [
        line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "name" in line
    ]
    cores = len(os.sched_getaffinity(0))
    return f"{cores} cores of {names[0] if names else platform.machine()}, Python {platform.python_version()}"


def table_row(*cells: object) -> str:
    """A line of a table in Markdown."""
    return f"| {' | '.join(map(str, cells))} |"


def table_head(*cells: object) -> list[str]:
    """The first two lines of a table in Markdown."""
    return [table_row(*cells), "|" + "---|" * len(cells)]


def percentile(values: Sequence[float], part: float) -> float:
    """The value below which ``part`` (0 to 1) of the values lie; nan where there are none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else float("nan")


def p50_p99(values: Sequence[float]) -> str:
    """As it stands in a table; "-" if there is none."""
    return f"{percentile(values, 0.5):.0f}, {percentile(values, 0.99):.0f}" if values else "-"


def median_and_worst(seconds: Sequence[float]) -> str:
    """As it stands in a table; "-" if there is none."""
    return f"{percentile(seconds, 0.5):.2f} s, {max(seconds):.2f} s" if seconds else "-"


def median_and_range(values: Sequence[float], digits: int = 2) -> str:
    """As it stands in a table: ``1.23 (1.10 to 1.40)``."""
    return f"{median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def counted(counts: Mapping[str, int], nothing: str = "none") -> str:
    """``a 3, b 1``, by name."""
    return ", ".join(f"{name} {n}" for name, n in sorted(counts.items())) or nothing


def at_most(count: int, hours: float) -> float:
    """How many an hour there are at most, with 95 %, if `count` came in so many hours: for none, 3 / hours."""
    low, high = 0.0, 10.0 + 3.0 * count
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _so_few(count, middle) > _DOUBT else (low, middle)
    return high / hours


def _so_few(count: int, expected: float) -> float:
    """The probability of at most `count`, if so many are expected (Poisson)."""
    return sum(accumulate(range(1, count + 1), lambda term, k: term * expected / k, initial=math.exp(-expected)))
