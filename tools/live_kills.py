"""Kills and freezes processes under live cameras: `python -m tools.live_kills --report docs/live_kills.md`."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import click

from tools.trials.delivery import Delivered
from tools.trials.harm import HarmedRun, Round, Series, causes, harmed_run
from tools.trials.processes import SUPERVISOR
from tools.trials.subject import KINDS

BACK_S = 3.0
GONE_S = 2.0
RATE = 0.95
_MEMORY = "lost what it remembered"


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds until a process is back, until a dead supervisor's run is gone; the others' share of their rate."""

    back_s: float = BACK_S
    gone_s: float = GONE_S
    rate: float = RATE


@dataclass(slots=True)
class KillProof:
    """All that was done, and how it ended."""

    killed: list[Series] = field(default_factory=list)
    frozen: list[Series] = field(default_factory=list)
    supervisor_frozen: list[Round] = field(default_factory=list)
    supervisor_killed: list[Round] = field(default_factory=list)
    deaths: int = 0
    exit_status: int = -1
    problems: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    delivered: Delivered = field(default_factory=Delivered)
    load: float = 0.0


def prove(found: HarmedRun, *, rounds: int, frozen: int, round_s: float, kinds: Sequence[str] = KINDS) -> KillProof:
    """Harm each kind of process so often."""
    proof = KillProof()
    found.measure_base(max(2.0, 5 * round_s))
    for kind in kinds:
        proof.killed.append(found.series(kind, rounds, found.kill, round_s=round_s))
        click.echo(_killed_row(proof.killed[-1]))
    for kind in kinds if frozen else ():
        proof.frozen.append(found.series(kind, frozen, found.freeze, round_s=round_s))
        click.echo(_frozen_row(proof.frozen[-1]))
    proof.supervisor_frozen = [found.freeze_supervisor() for _ in range(frozen)]
    proof.deaths = sum(causes(found.run).values())
    proof.supervisor_killed = [found.kill_supervisor() for _ in range(rounds)]
    proof.exit_status, proof.delivered, proof.left = found.end()
    proof.problems, proof.load = found.run.problems(), os.getloadavg()[1]
    return proof


def faults_of(proof: KillProof, limits: Limits) -> list[str]:
    """All that is not as it should be, each in a sentence."""
    every = [*proof.killed, *proof.frozen]
    found = [fault for series in every for one in series.rounds for fault in one.faults]
    found += [fault for one in (*proof.supervisor_frozen, *proof.supervisor_killed) for fault in one.faults]
    found += [late for series in every if (late := _late(series, limits.back_s))]
    found += [
        f"{camera} had {rate:.1%} of its rate while {series.kind} was harmed, expected {limits.rate:.0%}"
        for series in every
        for camera, rate in series.rates.items()
        if rate < limits.rate
    ]
    found += [
        f"{one.noticed_s:.1f} s after the supervisor's death not all was gone, expected {limits.gone_s:g}"
        for one in proof.supervisor_killed
        if one.noticed_s > limits.gone_s
    ]
    harmed = sum(len(series.rounds) for series in every)
    if proof.deaths != harmed:
        found.append(f"{harmed} processes were harmed, and {proof.deaths} died")
    if not proof.delivered.good:
        found.append(f"events: {proof.delivered}")
    found += [f"left over: {what}" for what in proof.left]
    return found + [f"the run says: {problem}" for problem in proof.problems if _MEMORY not in problem]


def _late(series: Series, back_s: float) -> str:
    late = [one.back_s for one in series.rounds if one.back_s > back_s]
    told = f"{series.kind}: {len(late)} of {len(series.rounds)} were back after more than {back_s:g} s, the last after"
    return f"{told} {max(late):.1f} s" if late else ""


def report(proof: KillProof, faults: Sequence[str], cameras: int) -> str:
    """The page."""
    machine = f"{len(os.sched_getaffinity(0))} cores, {platform.machine()}, Python {platform.python_version()}"
    said = [f"- {fault}" for fault in faults] or ["- All was as it should be."]
    lines = [
        "# Kills under live cameras",
        "",
        f"Written by `python -m tools.live_kills` on {datetime.now(UTC):%Y-%m-%d}: {machine}, load average "
        f"{proof.load:.1f} (others were using the machine as well). {cameras} cameras of 10 fps.",
        "",
        "A process is *back* when its successor has brought something through: frames of a live camera, items of a "
        "stage. *Rate*: the lowest of any camera, of its rate before anything was harmed; while captures are harmed, "
        "of the others' frames that were processed, else of the frames that were captured (a stage that all share is "
        "missed by all). After each round: all cameras live, no zombie, as "
        "many socket files as before, no segment without "
        "an owner in /dev/shm, and of a capture a new epoch in its events.",
        "",
        *said,
        f"- Events: {proof.delivered}.",
        f"- Exit status {proof.exit_status}; left over: {', '.join(proof.left) or 'nothing'}.",
        "",
        "## SIGKILL",
        "",
        "| process | rounds | back after, median and worst | rate |",
        "|---|---|---|---|",
        *map(_killed_row, proof.killed),
        "",
        *_supervisor_killed(proof.supervisor_killed),
        "",
        "## SIGSTOP",
        "",
        "| process | rounds | noticed after, worst | back after, median and worst | rate |",
        "|---|---|---|---|---|",
        *map(_frozen_row, proof.frozen),
        "",
        f"The supervisor itself was frozen for longer than `hang_s` {len(proof.supervisor_frozen)} times: events were "
        "delivered meanwhile, and afterwards nobody was blamed or started again.",
        "",
    ]
    return "\n".join(lines)


def _killed_row(series: Series) -> str:
    return f"| {series.kind} | {len(series.rounds)} | {_times(one.back_s for one in series.rounds)} | {_rate(series)} |"


def _frozen_row(series: Series) -> str:
    noticed = max(one.noticed_s for one in series.rounds)
    times = _times(one.back_s for one in series.rounds)
    return f"| {series.kind} | {len(series.rounds)} | {noticed:.2f} s | {times} | {_rate(series)} |"


def _supervisor_killed(rounds: Sequence[Round]) -> list[str]:
    if not rounds:
        return []
    return [
        f"The {SUPERVISOR}, {len(rounds)} rounds: nothing was left (processes, sockets, shared memory) after "
        f"{_times(one.noticed_s for one in rounds)}; the next run, begun at once, had all cameras live after "
        f"{_times(one.back_s for one in rounds)} (median and worst)."
    ]


def _times(seconds: Iterable[float]) -> str:
    ordered = sorted(seconds)
    return f"{ordered[len(ordered) // 2]:.2f} s, {ordered[-1]:.2f} s"


def _rate(series: Series) -> str:
    return f"{min(series.rates.values()):.1%}"


@click.command()
@click.option("--rounds", default=20, show_default=True, help="Kills of each kind of process.")
@click.option("--frozen", default=3, show_default=True, help="How often each is frozen.")
@click.option("--cameras", default=8, show_default=True, help="How many.")
@click.option("--round-s", default=4.0, show_default=True, help="A round takes as long, or longer.")
@click.option("--back-s", default=BACK_S, show_default=True, help="A process has to be back after so many seconds.")
@click.option("--report", "target", type=click.Path(path_type=Path), help="The page to write.")
def main(  # noqa: PLR0917 - click hands options over by name
    rounds: int, frozen: int, cameras: int, round_s: float, back_s: float, target: Path | None
) -> None:
    """Harm each kind of process, and say whether all stayed as it should; status 1 where it did not."""
    with harmed_run(cameras) as found:
        proof = prove(found, rounds=rounds, frozen=frozen, round_s=round_s)
    faults = faults_of(proof, Limits(back_s=back_s))
    page = report(proof, faults, cameras)
    click.echo(page)
    if target:
        target.write_text(page)
    if faults:
        raise click.ClickException("; ".join(faults))


if __name__ == "__main__":
    main()
