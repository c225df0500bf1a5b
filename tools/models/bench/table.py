"""A measured run as people read it."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from stages.vision.foreign_text import shown
from tools.models.bench.grid import cost_per_1000
from tools.models.bench.machine import lines as machine_lines
from tools.models.bench.record import Measured, Record


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
