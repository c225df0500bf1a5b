"""Kills and freezes processes under live cameras.

python -m camgraph.tools.lab.proofs.live_kills --report docs/live_kills.md
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import click

from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.lab.proofs.trials.delivery import Delivered
from camgraph.tools.lab.proofs.trials.harm import LEFT_S, HarmedRun, causes, harmed_run
from camgraph.tools.lab.proofs.trials.rounds import Base, Round, Series
from camgraph.tools.lab.proofs.trials.subject import FPS, KINDS
from camgraph.tools.lab.report_page import (
    median_and_worst,
)
from camgraph.tools.measuring.load import MOST_OTHER, why_not_judged
from camgraph.tools.measuring.processes import SUPERVISOR
from camgraph.tools.measuring.processor_time import CpuTime, others_line

BACK_S, BACK_STARTS = 3.0, 3.0
"""A process is back after so many seconds, or, on a slow machine, after as many times `time_to_start()`."""
BASE_S = 20.0
_MEMORY = "lost its state"
_FREEZE_S, _SUPERVISOR_S, _AROUND_S = 10.0, 10.0, 60.0
"""About what a round takes in which a process is frozen, or the supervisor killed; and what comes before and after."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits. `back_s`: until a process is back; `gone_s`: until a dead supervisor's run is gone; `start_s`: what
    `time_to_start()` measured, from which `back_s` follows, 0 if nobody measured.

    Of the other cameras while captures are harmed: `rate`, their part of the frames that they had before, and
    `silent_s`, without any frame; of all cameras while a shared stage is: `rate`, their part of captured frames. These
    are judged where other processes take at most `other` of the cores.
    """

    back_s: float = BACK_S
    gone_s: float = 2.0
    start_s: float = 0.0
    rate: float = 0.95
    silent_s: float = 1.5
    other: float = MOST_OTHER


@dataclass(slots=True)
class KillProof:
    """All rounds, and how the run ended."""

    base: Base
    killed: list[Series] = field(default_factory=list)
    frozen: list[Series] = field(default_factory=list)
    supervisor_frozen: list[Round] = field(default_factory=list)
    supervisor_killed: list[Round] = field(default_factory=list)
    deaths: int = 0
    exit_status: int = -1
    problems: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    delivered: Delivered = field(default_factory=Delivered)
    cpu: list[CpuTime] = field(default_factory=list)

    @property
    def series(self) -> list[Series]:
        """All series but the supervisor's."""
        return [*self.killed, *self.frozen]


def prove(
    run: HarmedRun, *, rounds: int, frozen: int, round_s: float, base_s: float = BASE_S, kinds: Sequence[str] = KINDS
) -> KillProof:
    """Measure the rates without harm for `base_s`, then harm each kind of process so many times."""
    proof = KillProof(run.measure_base(base_s))
    for kind in kinds:
        proof.killed.append(run.series(kind, rounds, run.kill, round_s=round_s))
        click.echo(f"killed: {_killed_row(proof.killed[-1], proof.base)}")
    for kind in kinds if frozen else ():
        proof.frozen.append(run.series(kind, frozen, run.freeze, round_s=round_s))
        click.echo(f"frozen: {_frozen_row(proof.frozen[-1], proof.base)}")
    for _ in range(frozen):
        proof.supervisor_frozen.append(run.freeze_supervisor())
        click.echo(f"supervisor frozen {len(proof.supervisor_frozen)} of {frozen}")
    proof.deaths, proof.cpu = sum(causes(run.run).values()), list(run.cpu)
    for _ in range(rounds):
        proof.supervisor_killed.append(run.kill_supervisor())
        click.echo(f"supervisor killed {len(proof.supervisor_killed)} of {rounds}")
    proof.exit_status, proof.delivered, proof.left = run.end()
    proof.problems = run.run.problems()
    return proof


def time_to_start(times: int = 5) -> float:
    """Seconds in which this machine starts Python and imports two of the stages, the median of several times.

    This is most of the time until a killed process is back, so it tells a slow machine from a slow successor.
    """
    taken = []
    for _ in range(times):
        begun = time.monotonic()
        subprocess.run(
            [sys.executable, "-P", "-c", "import camgraph.stages.people.infer, camgraph.stages.rules.rules"], check=True
        )
        taken.append(time.monotonic() - begun)
    return statistics.median(taken)


def faults_of(proof: KillProof, limits: Limits) -> list[str]:
    """All that is wrong, each in a sentence."""
    found = [fault for series in proof.series for one in series.rounds for fault in one.faults]
    found += [fault for one in (*proof.supervisor_frozen, *proof.supervisor_killed) for fault in one.faults]
    found += [late for series in proof.series if (late := _late(series, limits.back_s))]
    found += [
        fault
        for series in proof.series
        if not why_not_judged(proof.base.load, series.load, limits.other)
        for fault in _slowed(series, limits)
    ]
    found += [
        f"{one.noticed_s:.1f} s after the supervisor's death not all was gone, expected {limits.gone_s:g}"
        for one in proof.supervisor_killed
        if one.noticed_s > limits.gone_s
    ]
    harmed = sum(len(series.rounds) for series in proof.series)
    if proof.deaths != harmed:
        found.append(f"{harmed} processes were harmed, and {proof.deaths} died")
    if not proof.delivered.good:
        found.append(f"events: {proof.delivered}")
    found += [f"left over: {what}" for what in proof.left]
    return found + [f"the run says: {problem}" for problem in proof.problems if _MEMORY not in problem]


def not_judged(proof: KillProof, limits: Limits) -> list[str]:
    """The series whose rates prove nothing either way, because other processes had the machine."""
    found = []
    for how, some in (("killed", proof.killed), ("frozen", proof.frozen)):
        whys = {series.kind: why_not_judged(proof.base.load, series.load, limits.other) for series in some}
        if kinds := [kind for kind, why in whys.items() if why]:
            found.append(f"not judged: the cameras' rates while {', '.join(kinds)} was {how}: {max(whys.values())}")
    return found


def _late(series: Series, back_s: float) -> str:
    late = [one.back_s for one in series.rounds if one.back_s > back_s]
    message = (
        f"{series.kind}: {len(late)} of {len(series.rounds)} were back after more than {back_s:g} s, the last after"
    )
    return f"{message} {max(late):.1f} s" if late else ""


def _slowed(series: Series, limits: Limits) -> list[str]:
    """The frames that cameras lost by the harm of others' captures, or of their own while a shared stage was away."""
    own = series.kind == "capture"
    shares, what = (series.processed, "processed") if own else (series.captured, "captured")
    found = [
        f"{camera} had {share:.1%} of its {what} frames while {series.kind} was harmed, expected {limits.rate:.0%}"
        for camera, share in shares.items()
        if share < limits.rate
    ]
    silent = [one.silent_s for one in series.rounds if own and one.silent_s > limits.silent_s]
    message = f"another camera was without frames for up to {max(silent, default=0):.1f} s while capture was harmed"
    return [*found, *([f"{message}, expected at most {limits.silent_s:g}"] if silent else [])]


def report(proof: KillProof, limits: Limits) -> str:
    """The part between the marks, but for the command and the machine."""
    found = [*faults_of(proof, limits), *not_judged(proof, limits)]
    base = proof.base.load
    start = f"To start Python and import two stages took {limits.start_s:.2f} s, so a process has to be back after "
    fps = [*proof.base.processed.values()] or [0.0]
    lines = [
        f"Until the supervisor was killed: {others_line(proof.cpu)}",
        "",
        f"Cameras of {FPS:g} fps. Before any harm {min(fps):.1f} to {max(fps):.1f} frames/s of a camera came out of "
        f"all stages, and the machine was {base.busy:.0%} busy: this run, its cameras and what looks at it took "
        f"{base.own:.2f} of {base.cores} cores, other processes {base.other:.2f}.",
        *([f"{start}{limits.back_s:.1f} s."] if limits.start_s else []),
        "",
        "**Not all is proven:**" if found else "**All of this is proven.**",
        "",
        *(f"- {what}" for what in found),
        "",
        f"Events: {proof.delivered}. Exit status {proof.exit_status}; left over: {', '.join(proof.left) or 'nothing'}.",
        "",
        "## SIGKILL",
        "",
        "| process | rounds | back after, median and worst | longest time without frames, median and worst "
        "| processed, of the rate before | captured, of the rate before | cores that other processes took |",
        "|---|---|---|---|---|---|---|",
        *(_killed_row(series, proof.base) for series in proof.killed),
        "",
        *_supervisor_killed(proof.supervisor_killed),
        "",
        *_frozen(proof),
    ]
    return "\n".join(lines)


def _killed_row(series: Series, base: Base) -> str:
    back = median_and_worst([one.back_s for one in series.rounds])
    return f"| {series.kind} | {len(series.rounds)} | {back} | {_what_cameras_had(series, base)} |"


def _frozen_row(series: Series, base: Base) -> str:
    noticed = median_and_worst([one.noticed_s for one in series.rounds])
    back = median_and_worst([one.back_s for one in series.rounds])
    return f"| {series.kind} | {len(series.rounds)} | {noticed} | {back} | {_what_cameras_had(series, base)} |"


def _what_cameras_had(series: Series, base: Base) -> str:
    """The rates of cameras. Others have one only while captures are harmed; a star marks rates that prove nothing."""
    silent = median_and_worst([one.silent_s for one in series.rounds])
    star = " *" if why_not_judged(base.load, series.load) else ""
    processed = f"{min(series.processed.values(), default=0):.1%}{star}" if series.kind == "capture" else "all stop"
    captured = f"{min(series.captured.values(), default=0):.1%}{star}"
    return f"{silent} | {processed} | {captured} | {series.load.other:.2f}"


def _supervisor_killed(rounds: Sequence[Round]) -> list[str]:
    if not rounds:
        return ["The supervisor was not killed."]
    gone = median_and_worst([one.noticed_s for one in rounds])
    live = median_and_worst([one.back_s for one in rounds])
    left = sum(bool(one.faults) for one in rounds)
    return [
        f"The {SUPERVISOR}, {len(rounds)} rounds, median and worst: until nothing was left (processes, sockets, shared "
        f"memory) {gone}; until all cameras of the next run, begun at once, were live {live}. Rounds in which "
        f"something was left for {LEFT_S:g} s: {left or 'none'}."
    ]


def _frozen(proof: KillProof) -> list[str]:
    if not proof.frozen:
        return ["Nothing was frozen (SIGSTOP)."]
    wrong = [fault for one in proof.supervisor_frozen for fault in one.faults]
    return [
        "## SIGSTOP",
        "",
        "| process | rounds | noticed after, median and worst | back after, median and worst | longest time without "
        "frames, median and worst | processed, of the rate before | captured, of the rate before "
        "| cores that other processes took |",
        "|---|---|---|---|---|---|---|---|",
        *(_frozen_row(series, proof.base) for series in proof.frozen),
        "",
        f"The supervisor itself was frozen for longer than `hang_s` {len(proof.supervisor_frozen)} times. That no "
        f"event was delivered meanwhile, or that somebody was blamed or started again afterwards: "
        f"{'; '.join(wrong) or 'never'}.",
    ]


@figure_command("proofs.live_kills")
@click.option("--rounds", default=20, show_default=True, help="Kills of each kind of process.")
@click.option("--frozen", default=3, show_default=True, help="How often each is frozen.")
@click.option("--cameras", default=8, show_default=True, help="How many.")
@click.option("--round-s", default=4.0, show_default=True, help="A round takes as long, or longer.")
def main(figure: Figure, **options: Any) -> None:
    """Harm each kind of process, and say whether all stayed as it should.

    The page is always written; the exit status is 1 if not all is proven.
    """
    rounds, frozen, round_s = options["rounds"], options["frozen"], options["round_s"]
    freezes_s = frozen * (len(KINDS) * max(round_s, _FREEZE_S) + 2 * _FREEZE_S)
    kills_s = rounds * (len(KINDS) * max(round_s, BACK_S) + _SUPERVISOR_S)
    figure.takes(_AROUND_S + kills_s + freezes_s, f"{rounds} kills and {frozen} freezes of each kind of process")
    start = time_to_start()
    with harmed_run(options["cameras"]) as run:
        proof = prove(run, rounds=rounds, frozen=frozen, round_s=round_s)
    limits = Limits(back_s=max(BACK_S, BACK_STARTS * start), start_s=start)
    wrong = [*faults_of(proof, limits), *not_judged(proof, limits)]
    figure.publish(f"{figure.head()}\n{report(proof, limits)}", wrong)


if __name__ == "__main__":
    main()
