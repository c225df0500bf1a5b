"""Every fault of the simulator against a whole graph (docs/live_faults.md).

python -m camgraph.tools.lab.proofs.live_faults
"""

from __future__ import annotations

import signal
import sys
from typing import Any

import click

from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.lab.proofs.live_faults.proof import BASE_S, prove
from camgraph.tools.lab.proofs.live_faults.report import report
from camgraph.tools.lab.proofs.live_faults.trial import Result

_ROUND_S, _AROUND_S = 240.0, 60.0
"""About what the faults of a round take one after the other, and what comes before and after all rounds."""


@figure_command("proofs.live_faults")
@click.option("--rounds", default=1, show_default=True, type=click.IntRange(1), help="How often each fault is tried.")
@click.option("--cameras", default=8, show_default=True, type=click.IntRange(4, 64), help="Of the simulator.")
@click.option("--at-once", default=3, show_default=True, type=click.IntRange(1), help="Cameras that are ill at a time.")
@click.option("--processes", default="separate", show_default=True, type=click.Choice(["separate", "compact"]))
def main(figure: Figure, **options: Any) -> None:
    """Try every fault on cameras of a running graph, and measure its reports, and the effects on the others.

    The page is always written; the exit status is 1 if not all is proven.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ending this ends the run as well
    cameras, rounds, at_once = options["cameras"], options["rounds"], options["at_once"]
    figure.takes(_AROUND_S + BASE_S + rounds * _ROUND_S / at_once, f"{rounds} rounds of all faults, {at_once} at once")
    proof = prove(cameras, rounds, at_once, options["processes"], _show)
    figure.publish(f"{figure.head()} {report(proof)}", [*proof.problems, *proof.not_judged])


def _show(result: Result) -> None:
    times = [
        f"{what} after {s:.1f} s" for what, s in (("told", result.reported_s), ("back", result.back_s)) if s is not None
    ]
    click.echo(f"{result.camera}: {result.case}: {', '.join(times)} {'; '.join(result.problems)}".rstrip())


if __name__ == "__main__":
    main()
