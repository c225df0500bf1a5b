"""What traces cost: `python -m camgraph.tools.lab.benchmarks.traces --report docs/traces.md`.

Needs `tests/plugin` and the extra `tracing`. Small messages go through four processes, with and without `tracing` in
the graph, in turns. None of them becomes an event: what is measured is what every frame pays, to carry its steps from
process to process.
"""

from __future__ import annotations

from statistics import median

import click

from camgraph.tools.lab.benchmarks.cost_curves.hops import MANY, cpu_us
from camgraph.tools.lab.figure import Figure, figure_command

_SIZE = 16
_HOPS = 3
_TRACING = "tracing: {endpoint: http://127.0.0.1:9}\n"


def _row(name: str, cameras: int, frames: int, rounds: int) -> str:
    pairs = [
        (cpu_us("separate", _SIZE, frames, cameras), cpu_us("separate", _SIZE, frames, cameras, more=_TRACING))
        for _ in range(rounds)
    ]
    without, traced = (median(values) for values in zip(*pairs, strict=True))
    ratios = sorted(traced / without for without, traced in pairs)
    return (
        f"| {name} | {without:.0f} | {traced:.0f} | {median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}) "
        f"| {(traced - without) / _HOPS:.0f} |"
    )


@figure_command("benchmarks.traces")
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1), help="Pairs of runs.")
@click.option("--frames", default=6000, show_default=True, type=click.IntRange(100), help="Messages of a run.")
def main(figure: Figure, rounds: int, frames: int) -> None:
    """Measure what it costs to carry the steps of each frame."""
    rows = [_row("one camera", 1, frames, rounds), _row(f"{MANY} cameras", MANY, frames, rounds)]
    parts = [
        f"{figure.head()} Processor time of all four processes for a message, in microseconds:",
        "",
        "| | without | with `tracing` | ratio, median of the pairs | more, for each of three hops |",
        "|---|---|---|---|---|",
        *rows,
        "",
    ]
    figure.publish("\n".join(parts))


if __name__ == "__main__":
    main()
