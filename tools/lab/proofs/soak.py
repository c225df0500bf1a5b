"""Soaks a live graph in faults: `python -m camgraph.tools.lab.proofs.soak --report docs/soak.md`.

Eight cameras of the simulator, each kind of stage in a process of its own; every few seconds a camera fails in some
way, every minute a process is killed. Memory, descriptors, threads and shared memory of the whole family have to stay
flat. With `--undisturbed` nothing is done to it, and the bound of its memory is much narrower: what grows then grows by
itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import click

from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.lab.proofs.trials.flatness import Flatness
from camgraph.tools.lab.proofs.trials.schedule import FAULTS
from camgraph.tools.lab.proofs.trials.soaking import Plan, Soaked, soak
from camgraph.tools.lab.proofs.trials.verdict import (
    MEMORY,
    Bounds,
    Verdict,
    judge_samples,
    undisturbed_bounds,
    warm_up_s,
)
from camgraph.tools.lab.report_page import (
    counted,
)
from camgraph.tools.measuring.processor_time import others_line

_UNDISTURBED = "proofs.soak, undisturbed"
"""The marks of its part of the page."""
_AROUND_S = 45.0
"""About what comes before and after: the start, the return of the last camera, the end."""
_EXPECTED = "lost its state"
"""The problem that a run reports if a stateful stage was killed, and for which it ends with status 1."""


def faults_of(soaked: Soaked, bounds: Bounds) -> tuple[Verdict, list[str]]:
    """The verdict on the samples, and all that is wrong, each in a sentence."""
    try:
        verdict = judge_samples(soaked.samples, soaked.plan.seconds, bounds)
    except ValueError as error:  # the soak ended before there were enough samples
        verdict = Verdict({}, [str(error)])
    found = list(verdict.faults) + ([f"after the last fault: {soaked.broke}"] if soaked.broke else [])
    if not soaked.delivered.good:
        found.append(f"events: {soaked.delivered}")
    if soaked.left:
        found.append(f"left over: {', '.join(soaked.left)}")
    found += [f"the run says: {problem}" for problem in soaked.problems if _EXPECTED not in problem]
    if (died := sum(soaked.deaths.values())) != (killed := sum(soaked.killed.values())):
        found.append(f"{killed} processes were killed, and {died} died: {counted(soaked.deaths)}")
    found += [
        f"camera {name} brought no frame" for name, c in soaked.status.get("cameras", {}).items() if not c["frames"]
    ]
    return verdict, found


def report(soaked: Soaked, verdict: Verdict, faults: Sequence[str]) -> str:
    """The part between the marks, but for the command and the machine."""
    plan, cameras, calm = soaked.plan, soaked.status.get("cameras", {}), not soaked.plan.is_disturbed
    frames = sum(camera["frames"] for camera in cameras.values())
    back = "never" if soaked.back_s is None else f"{soaked.back_s:.1f} s"
    lines = [
        others_line(soaked.cpu),
        "",
        f"{plan.cameras} cameras of 10 fps, every other one over UDP; {_done_to(soaked)}.",
        f"**{frames} frames** were captured.",
        "",
        "**Not all is as it should be:**" if faults else "**All of this is as it should be.**",
        "",
        *(f"- {fault}" for fault in faults),
        "",
        f"- Events: {soaked.delivered}. {counted(soaked.events)}.",
        *(
            []
            if calm
            else [f"- From the end of the last fault until all cameras were live and all processes ran: {back}."]
        ),
        f"- Exit status {soaked.exit_status}: {'; '.join(soaked.problems) or 'nothing to say'}.",
        f"- Left over: {', '.join(soaked.left) or 'nothing'}.",
        "",
        f"## What has to be flat{', undisturbed' if calm else ''}",
        "",
        f"Sampled every {plan.sample_s:g} s, {len(soaked.samples)} times; the first {warm_up_s(plan.seconds):.0f} s "
        "are warm-up. The slope is the median of the slopes between all pairs of points (Theil and Sen), with its "
        "interval of 95 % (the series is put together anew of pieces of itself); times the judged time it is the rise, "
        "which must not exceed the bound. Memory is anonymous memory; of a kind of process its mean.",
        "",
        "| what | median | lowest, highest | slope, per hour | interval | rise | bound | |",
        "|---|---|---|---|---|---|---|---|",
        *(_flat_row(name, flatness) for name, flatness in verdict.flatness.items()),
        "",
        *_fineness(verdict),
        *(() if calm else _disturbance(soaked)),
    ]
    return "\n".join(lines)


def _done_to(soaked: Soaked) -> str:
    plan = soaked.plan
    if not plan.is_disturbed:
        return "nothing was done to them"
    faults, kills = soaked.faults.total(), soaked.killed.total()
    return (
        f"a fault every {plan.fault_s:g} s ({faults} of {len(FAULTS)} kinds), "
        f"SIGKILL of a process every {plan.kill_s:g} s ({kills})"
    )


def _fineness(verdict: Verdict) -> list[str]:
    """The smallest leak that the run could have shown."""
    found = verdict.flatness.get(MEMORY)
    if found is None:
        return []
    return [f"In {MEMORY}, this run cannot tell a slope below {found.finest_per_hour:.1f} MB an hour from none.", ""]


def _disturbance(soaked: Soaked) -> list[str]:
    return [
        "## Cameras",
        "",
        "| camera | frames | dropped | losses |",
        "|---|---|---|---|",
        *(_camera_row(name, camera) for name, camera in soaked.status.get("cameras", {}).items()),
        "",
        "## What was done to it",
        "",
        f"- Faults: {counted(soaked.faults)}.",
        f"- Killed: {counted(soaked.killed)}. Deaths in the log: {counted(soaked.deaths)}.",
        f"- States of cameras in the log: {counted(soaked.states)}.",
        "",
    ]


def _flat_row(name: str, f: Flatness) -> str:
    flat = "flat" if f.flat else "**not flat**"
    return (
        f"| {name} | {f.median:.1f} | {f.lowest:.1f}, {f.highest:.1f} | {f.per_hour:+.2f} "
        f"| {f.least_per_hour:+.2f} to {f.most_per_hour:+.2f} | {f.rise:+.2f} "
        f"| {f.bound:.2f} | {flat} |"
    )


def _camera_row(name: str, camera: Mapping[str, Any]) -> str:
    return f"| {name} | {camera['frames']} | {counted(camera['drops_by_reason'])} | {camera['losses']} |"


@figure_command("proofs.soak", undisturbed=_UNDISTURBED)
@click.option("--minutes", default=30.0, show_default=True, help="How long; 480 is a night.")
@click.option("--cameras", default=8, show_default=True, help="How many.")
@click.option("--seed", default=1, show_default=True, help="Of what is done to it, and when.")
@click.option("--undisturbed", is_flag=True, help="Without faults and kills, and with a narrower bound for memory.")
def main(figure: Figure, minutes: float, cameras: int, seed: int, undisturbed: bool) -> None:
    """Soak, and report whether all stayed as it should; status 1 if it did not. The page is always written."""
    doing = "without faults" if undisturbed else "of faults"
    figure.takes(60 * minutes + _AROUND_S, f"{minutes:g} min {doing}, and what comes before and after")
    plan = Plan(60 * minutes, cameras, seed)
    if undisturbed:
        plan = replace(plan, fault_s=math.inf, kill_s=math.inf)
    soaked = soak(plan, click.echo)
    verdict, faults = faults_of(soaked, undisturbed_bounds(plan.seconds) if undisturbed else Bounds())
    figure.publish(f"{figure.head()} {report(soaked, verdict, faults)}", faults)


if __name__ == "__main__":
    main()
