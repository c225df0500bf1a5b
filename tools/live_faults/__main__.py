"""`python -m tools.live_faults`: every fault of the farm against a whole graph; writes docs/live_faults.md."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import click

from tools.live_faults.proof import FaultProof, prove
from tools.live_faults.report import report
from tools.live_faults.trial import Result


@click.command()
@click.option("--rounds", default=1, show_default=True, type=click.IntRange(1), help="How often each fault is tried.")
@click.option("--cameras", default=8, show_default=True, type=click.IntRange(4, 64), help="Of the farm.")
@click.option("--at-once", default=3, show_default=True, type=click.IntRange(1), help="Cameras that are ill at a time.")
@click.option("--processes", default="separate", show_default=True, type=click.Choice(["separate", "compact"]))
@click.option("--report", "target", type=click.Path(path_type=Path), help="Write the report here, when all was proven.")
def main(rounds: int, cameras: int, at_once: int, processes: str, target: Path | None) -> None:
    """Try every fault on cameras of a running graph, and measure what is told, and what the others notice."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # whoever ends this ends the run as well
    proof: FaultProof = prove(cameras, rounds, at_once, processes, _say)
    text = "" if proof.broke else report(proof)
    click.echo(text)
    if proof.problems:
        raise click.ClickException("\n".join(proof.problems))
    if target:
        target.write_text(text)


def _say(result: Result) -> None:
    times = [
        f"{what} after {s:.1f} s" for what, s in (("told", result.told_s), ("back", result.back_s)) if s is not None
    ]
    click.echo(f"{result.camera}: {result.case}: {', '.join(times)} {'; '.join(result.problems)}".rstrip())


if __name__ == "__main__":
    main()
