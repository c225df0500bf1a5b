"""A measured run as a picture: a bar for each configuration, with the spread of its rounds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tools.measuring.plots import COLOURS, draw, plain
from tools.models.bench.record import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot(record: Record, path: Path) -> None:
    """Raises EnvironmentProblem without matplotlib. There must be something measured."""
    draw(path, (9.0, 1.4 + 0.32 * len(record.measured)), lambda figure: _draw(record, figure))


def _draw(record: Record, figure: Figure) -> None:
    measured = record.measured
    providers = list(dict.fromkeys(one.provider for one in measured))
    places = range(len(measured))
    medians = [one.median for one in measured]
    below = [one.median - min(one.frames_per_s) for one in measured]
    above = [max(one.frames_per_s) - one.median for one in measured]
    axes = figure.subplots()
    axes.barh(
        places, medians, xerr=(below, above), height=0.7, error_kw={"elinewidth": 1, "capsize": 2, "ecolor": "#333333"},
        color=[COLOURS[providers.index(one.provider) % len(COLOURS)] for one in measured],
    )  # fmt: skip
    axes.set_yticks(places, [one.name for one in measured])
    axes.invert_yaxis()
    machine = record.machine
    title = f"{record.model}, {record.size[0]} x {record.size[1]}: {machine.cores} cores of {machine.processor}"
    plain(axes, title, "frames a second: median, lowest and highest of the rounds")
    axes.grid(visible=False, axis="y")
    for place, one in zip(places, measured, strict=True):
        axes.text(0, place, f"  {one.median:.1f}", va="center", fontsize=8, color="white")
    figure.supylabel("provider, batch, processes x runs at once x threads of a run", fontsize=8)
