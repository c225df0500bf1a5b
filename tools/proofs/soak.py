"""Soaks a live graph in faults: `python -m tools.proofs.soak --report docs/soak.md`.

Eight cameras of the simulator, each kind of stage in a process of its own; every few seconds a camera fails in some
way, every minute a process is killed. Memory, descriptors, threads and shared memory of the whole family have to stay
flat.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from tools.measuring.processor_time import others_line
from tools.measuring.report_page import counted, estimate, machine_line, publish, report_option, written_by
from tools.proofs.trials.flatness import Flatness
from tools.proofs.trials.schedule import FAULTS
from tools.proofs.trials.soaking import Plan, Soaked, soak
from tools.proofs.trials.verdict import Bounds, Verdict, judge_samples, warm_up_s

TOOL = "proofs.soak"
_AROUND_S = 45.0
"""About what comes before and after: the start, the return of the last camera, the end."""
_EXPECTED = "lost what it remembered"
"""What a run says of a killed stage that has a memory, and ends with status 1 for."""


def faults_of(soaked: Soaked, bounds: Bounds) -> tuple[Verdict, list[str]]:
    """The verdict on the samples, and all that is not as it should be, each in a sentence."""
    try:
        verdict = judge_samples(soaked.samples, soaked.plan.seconds, bounds)
    except ValueError as error:  # it broke off at once
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
    plan, cameras = soaked.plan, soaked.status.get("cameras", {})
    frames = sum(camera["frames"] for camera in cameras.values())
    back = "never" if soaked.back_s is None else f"{soaked.back_s:.1f} s"
    lines = [
        others_line(soaked.cpu),
        "",
        f"{plan.cameras} cameras of 10 fps, every other one over UDP; a fault every {plan.fault_s:g} s "
        f"({sum(soaked.faults.values())} of {len(FAULTS)} kinds), SIGKILL of a process every {plan.kill_s:g} s "
        f"({sum(soaked.killed.values())}).",
        f"**{frames} frames** were captured.",
        "",
        "**Not all is as it should be:**" if faults else "**All of this is as it should be.**",
        "",
        *(f"- {fault}" for fault in faults),
        "",
        f"- Events: {soaked.delivered}. {counted(soaked.events)}.",
        f"- From the end of the last fault until all cameras were live and all processes ran: {back}.",
        f"- Exit status {soaked.exit_status}: {'; '.join(soaked.problems) or 'nothing to say'}.",
        f"- Left over: {', '.join(soaked.left) or 'nothing'}.",
        "",
        "## What has to be flat",
        "",
        f"Sampled every {plan.sample_s:g} s, {len(soaked.samples)} times; the first {warm_up_s(plan.seconds):.0f} s "
        "are warm-up. The slope is the median of the slopes between all pairs of points (Theil and Sen); times the "
        "judged time it is the rise, which must not exceed the bound. Memory is anonymous memory; of a kind of "
        "process its mean.",
        "",
        "| what | median | lowest, highest | slope, per hour | rise | bound | |",
        "|---|---|---|---|---|---|---|",
        *(_flat_row(name, flatness) for name, flatness in verdict.flatness.items()),
        "",
        "## Cameras",
        "",
        "| camera | frames | dropped | losses |",
        "|---|---|---|---|",
        *(_camera_row(name, camera) for name, camera in cameras.items()),
        "",
        "## What was done to it",
        "",
        f"- Faults: {counted(soaked.faults)}.",
        f"- Killed: {counted(soaked.killed)}. Deaths in the log: {counted(soaked.deaths)}.",
        f"- States of cameras in the log: {counted(soaked.states)}.",
        "",
    ]
    return "\n".join(lines)


def _flat_row(name: str, f: Flatness) -> str:
    flat = "flat" if f.flat else "**not flat**"
    return (
        f"| {name} | {f.median:.1f} | {f.lowest:.1f}, {f.highest:.1f} | {f.per_hour:+.2f} | {f.rise:+.2f} "
        f"| {f.bound:.2f} | {flat} |"
    )


def _camera_row(name: str, camera: Mapping[str, Any]) -> str:
    return f"| {name} | {camera['frames']} | {counted(camera['drops_by_reason'])} | {camera['losses']} |"


@click.command()
@click.option("--minutes", default=30.0, show_default=True, help="How long; 480 is a night.")
@click.option("--cameras", default=8, show_default=True, help="How many.")
@click.option("--seed", default=1, show_default=True, help="Of what is done to it, and when.")
@report_option(TOOL)
def main(minutes: float, cameras: int, seed: int, target: Path | None) -> None:
    """Soak, and report whether all stayed as it should; status 1 if it did not. The page is always written."""
    estimate(60 * minutes + _AROUND_S, f"{minutes:g} min of faults, and what comes before and after")
    soaked = soak(Plan(60 * minutes, cameras, seed), click.echo)
    verdict, faults = faults_of(soaked, Bounds())
    head = f"{written_by(TOOL, click.get_current_context().params)} {machine_line()}."
    publish(f"{head} {report(soaked, verdict, faults)}", target, TOOL)
    if faults:
        raise click.ClickException("; ".join(faults))


if __name__ == "__main__":
    main()
