"""A measured run as people read it: in a table, and as a picture."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from camgraph.stages.vision.foreign_text import shown
from camgraph.tools.measuring.plots import COLOURS, draw, plain
from camgraph.tools.models.bench.grid import cost_per_1000
from camgraph.tools.models.bench.machine import lines as machine_lines
from camgraph.tools.models.bench.record import Measured, Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def lines(record: Record, price_per_hour: float | None = None) -> Iterator[str]:
    """The whole run; with a price, the cost of 1,000 frames. A saved run may hold anybody's words."""
    return map(shown, _lines(record, price_per_hour))


def _lines(record: Record, price_per_hour: float | None) -> Iterator[str]:
    yield from (f"- {line}" for line in machine_lines(record.machine))
    width, height = record.size
    yield f"- {record.model}, pictures of {width} x {height} ({record.pictures}), {record.precision}; {record.at}"
    if record.interrupted:
        yield "- interrupted: these are the measurements until then"
    yield from (f"- left out: {one.what}: {one.why}" for one in record.left_out)
    yield ""
    if not record.measured:
        yield "nothing was measured"
        return
    yield from _table(record, price_per_hour)
    yield ""
    yield f"Most frames a second: {_as_settings(record.best)}"
    yield ""
    yield (
        "*w x t x i*: processes, each with so many runs at once, each run with so many threads. Frames a second are "
        "the median of the rounds, with the lowest and the highest; *of the best*: the median of the rounds' ratios."
    )


def _table(record: Record, price_per_hour: float | None) -> Iterator[str]:
    cost = price_per_hour is not None
    yield (
        "| provider | batch | w x t x i | frames/s | lowest, highest | of the best | ms a run (p50, p99) "
        f"| peak MB | opens in s |{' cost of 1,000 frames |' if cost else ''}"
    )
    yield "|---|---|---|---|---|---|---|---|---|" + ("---|" if cost else "")
    best = record.best
    for one in record.measured:
        peak = "-" if one.peak_mb is None else f"{one.peak_mb:.0f}"
        row = (
            f"| {one.provider} | {one.batch} | {one.workers} x {one.threads} x {one.intra_op} | {one.median:.1f} "
            f"| {min(one.frames_per_s):.1f}, {max(one.frames_per_s):.1f} | {ratio(one, best):.2f} "
            f"| {one.run_p50_ms:.1f}, {one.run_p99_ms:.1f} | {peak} | {one.open_s:.1f} |"
        )
        yield row + (f" {cost_per_1000(one.median, price_per_hour):.5f} |" if price_per_hour is not None else "")


def _as_settings(one: Measured) -> str:
    """As it stands in a graph."""
    return (
        f"`use: infer, workers: {one.workers}, threads: {one.threads}, batch: {{max: {one.batch}}}, "
        f"with: {{providers: [{one.provider}], intra_op_threads: {one.intra_op}}}`"
    )


def ratio(one: Measured, best: Measured) -> float:
    """Ratios of frames a second, taken within each round: other load of the machine hit both."""
    pairs = zip(one.frames_per_s, best.frames_per_s, strict=False)
    return median(mine / theirs for mine, theirs in pairs)


def plot(record: Record, path: Path) -> None:
    """A bar for each configuration, with the spread of its rounds.

    Raises EnvironmentProblem without matplotlib. There must be something measured.
    """
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
