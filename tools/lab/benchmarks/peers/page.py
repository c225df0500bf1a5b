"""Figures as tables for the page, and as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from camgraph.tools.lab.benchmarks.peers.contestants import BARE
from camgraph.tools.lab.benchmarks.peers.figures import Mark, Row, disagreeing
from camgraph.tools.measuring.plots import COLOURS, draw, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HEAD = (
    "| cameras | who | throughput / bare loop | lowest, highest | frames/s | CPU ms a frame | cores kept busy "
    "| memory, MB | decoded to result p50, p95 (ms) | people a clip | frames lost |"
)


def tables(rows: Sequence[Row], marks: Sequence[Mark], marks_cameras: int, left_out: Mapping[str, str]) -> str:
    """The tables below the description of the run. ``marks``: none if models run on a GPU."""
    with_gpu = any(row.gpu is not None for row in rows)
    head = f"{_HEAD} share of time the GPU is busy |" if with_gpu else _HEAD
    lines = [head, "|" + "---|" * (head.count("|") - 1), *(_line(row, with_gpu=with_gpu) for row in rows), ""]
    lines += [f"- {sentence}" for sentence in disagreeing(rows)]
    lines += [f"- {name} did not take part: {why}" for name, why in left_out.items()]
    if marks:
        lines += ["", f"Marks, with {marks_cameras} cameras; ours is the faster placing:", ""]
        lines += ["| mark | wanted | measured | |", "|---|---|---|---|"]
    lines += [
        f"| {one.what} | {one.sign} {one.wanted:g} | {_or_dash(one.got, '.3f')} | {one.verdict} |" for one in marks
    ]
    return "\n".join(lines).replace("\n\n\n", "\n\n")


def _line(row: Row, *, with_gpu: bool) -> str:
    spread = "-" if row.lowest is None else f"{row.lowest:.3f}, {row.highest:.3f}"
    ages = "-" if row.p50_ms is None else f"{row.p50_ms:.0f}, {row.p95_ms:.0f}"
    people = "-" if row.name == BARE else " to ".join(str(n) for n in sorted(set(row.people)))
    used = f"{_or_dash(row.cpu_ms, '.1f')} | {_or_dash(row.busy, '.2f')} | {_or_dash(row.peak_mb, '.0f')}"
    gpu = f" {_or_dash(row.gpu, '.2f')} |" if with_gpu else ""
    return (
        f"| {row.cameras} | {row.name} | {_or_dash(row.ratio, '.3f')} | {spread} | {row.fps:.1f} "
        f"| {used} | {ages} | {people} | {row.lost} |{gpu}"
    )


def _or_dash(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def plot(rows: Sequence[Row], path: Path) -> None:
    """Throughput over that of the bare loop, and memory, against the number of cameras.

    Raises EnvironmentProblem without matplotlib.
    """
    draw(path, (9.0, 3.6), lambda figure: _draw(rows, figure))


def _draw(rows: Sequence[Row], figure: Figure) -> None:
    speed, memory = figure.subplots(1, 2)
    for number, name in enumerate(dict.fromkeys(row.name for row in rows if row.name != BARE)):
        own = [row for row in rows if row.name == name and row.ratio is not None]
        look = {"marker": "o", "label": name, "color": COLOURS[number % len(COLOURS)]}
        speed.plot([row.cameras for row in own], [row.ratio for row in own], **look)
        memory.plot([row.cameras for row in own], [row.peak_mb for row in own], **look)
    for axes, title in ((speed, "throughput / bare loop"), (memory, "memory of all processes, MB")):
        plain(axes, title, "cameras")
        _by_cameras(axes, sorted({row.cameras for row in rows}))
    memory.legend(fontsize=7)


def _by_cameras(axes: Axes, counts: Sequence[int]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
