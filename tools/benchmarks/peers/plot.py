"""The figures as a picture: throughput over that of the bare loop, and memory, against the number of cameras."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tools.benchmarks.peers.contestants import BARE
from tools.benchmarks.peers.figures import Row
from tools.measuring.plots import COLOURS, draw, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot(rows: Sequence[Row], path: Path) -> None:
    """Raises EnvironmentProblem without matplotlib."""
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
