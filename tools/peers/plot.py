"""The figures as a picture, where matplotlib is installed (`pip install camgraph[plots]`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipeline.errors import EnvironmentProblem
from tools.peers.contestants import BARE
from tools.peers.figures import Row


def draw(rows: Sequence[Row], target: Path) -> None:
    """Throughput over that of the bare loop, and memory, against the number of cameras. Raises EnvironmentProblem."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra
    except ImportError:
        raise EnvironmentProblem("a plot needs matplotlib: pip install 'camgraph[plots]'") from None
    figure = Figure(figsize=(10, 4), layout="constrained")
    speed, memory = figure.subplots(1, 2)
    for name in dict.fromkeys(row.name for row in rows if row.name != BARE):
        own = [row for row in rows if row.name == name and row.ratio is not None]
        cameras = [row.cameras for row in own]
        speed.plot(cameras, [row.ratio for row in own], marker="o", label=name)
        memory.plot(cameras, [row.peak_mb for row in own], marker="o", label=name)
    counts = sorted({row.cameras for row in rows})
    for axes, title in ((speed, "throughput / bare loop"), (memory, "memory of all processes (MB)")):
        axes.set(xlabel="cameras", title=title, ylim=(0, None), xscale="log", xticks=counts, xticklabels=counts)
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    speed.legend(fontsize="small")
    figure.savefig(target, dpi=110)
