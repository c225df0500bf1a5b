"""Kills several processes at once while a real model has all cores.

    python -m camgraph.tools.lab.proofs.model_kills MODEL

files   the same events, byte for byte, as without a kill; where a stage lost its memory, that is said, and status 1
live    the run is healthy again, all committed events are delivered, nothing is left over

With `--report docs/model_kills.md` the figures go onto that page. MODEL is `asset:movenet-multipose.onnx` or the file
of any pose model that says what it is; without one it is the pulled one.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from camgraph.pipeline.testing import hit
from camgraph.tools.assets import asset_path
from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.lab.file_runs import MODEL, STARTS_S, Killing, Ran, Way, run_name, run_way
from camgraph.tools.lab.proofs.trials.delivery import Ledger
from camgraph.tools.lab.proofs.trials.run import LiveRun
from camgraph.tools.lab.proofs.trials.subject import Subject
from camgraph.tools.measuring.processes import left_over
from camgraph.tools.scenes.simulator import CameraHandle, CameraSettings, ClipSettings, RtspSimulator

_AFTER_FRAMES = 9
_CAPTURES = tuple(f"capture.{camera}" for camera in STARTS_S)
_STATELESS = (*_CAPTURES, "prepare.0", "infer.0", "people.0", "outbox.0", "log.0")
_WITH_MEMORY = ("tracks.0", "actions.0")
FILE_GROUPS: Sequence[tuple[str, ...]] = (
    *((process,) for process in (*_STATELESS[2:], *_WITH_MEMORY)),
    ("infer.0", "people.0"),
    ("prepare.0", "infer.0"),
    ("capture.south", "infer.0", "log.0"),
    ("outbox.0", "log.0"),
    _STATELESS,
    ("infer.0", "tracks.0"),
    (*_STATELESS, *_WITH_MEMORY),
)
LIVE_GROUPS: Sequence[tuple[str, ...]] = (
    ("capture.c0",),
    ("prepare.0",),
    ("infer.0",),
    ("people.0",),
    ("outbox.0",),
    ("log.0",),
    ("tracks.0",),
    ("actions.0",),
    ("infer.0", "people.0"),
    ("capture.c0", "capture.c1", "infer.0"),
    ("outbox.0", "log.0"),
    ("prepare.0", "infer.0", "people.0", "tracks.0", "actions.0", "outbox.0", "log.0"),
)
_LIVE = """
version: 1
name: {name}
hang_s: 60       # a machine that is busy with other things is not what is looked for here
cameras:
{cameras}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture}}
  infer: {{use: infer, from: prepare, batch: {{max: 4}}, with: {{model: "{model}"}}}}
  people: {{use: decode, from: infer}}
  tracks: {{use: track, from: people}}
  actions: {{use: rules, from: tracks, with: {{rules: [{{id: seen, when: score > 0.01, update: 1s}}]}}}}
  log: {{use: sink_jsonl, from: events, with: {{path: events.jsonl}}}}
"""
_WAIT_S = 120.0


@dataclass(frozen=True, slots=True)
class Killed:
    """One group that died at once. `found`: the result; `faults`: each in a sentence."""

    processes: tuple[str, ...]
    back_s: float
    found: str
    faults: tuple[str, ...] = ()

    @property
    def row(self) -> str:
        return f"| {_in_short(self.processes)} | {self.back_s:.2f} s | {self.found} |"


def _in_short(processes: Sequence[str]) -> str:
    return (
        ", ".join(processes)
        if len(processes) <= 4
        else f"{', '.join(processes[:2])} ... {processes[-1]} ({len(processes)})"
    )


# ---- files


def kill_with_files(model: str, seconds: float, groups: Sequence[tuple[str, ...]] = FILE_GROUPS) -> list[Killed]:
    """Run the graph once for each group, and hold its events against those of an undisturbed run."""
    way = Way(threads=2, batch=3, model=model)
    reference = run_way(way, seconds)
    found = []
    for processes in groups:
        killed = judged(processes, run_way(way, seconds, Killing([processes], _AFTER_FRAMES)), reference)
        click.echo(killed.row)
        found.append(killed)
    return found


def judged(processes: tuple[str, ...], ran: Ran, reference: Ran) -> Killed:
    """Status 1 only if a stage with a memory died, or reports its loss."""
    same, remembering = ran.events == reference.events, set(processes) & set(_WITH_MEMORY)
    faults = [f"left over: {what}" for what in left_over(run_name())]
    if set(ran.recovery_s) != set(processes):
        faults.append(f"back: {', '.join(ran.recovery_s) or 'none'}")
    # A capture that died may count frames twice that it had to send again.
    if ran.frames != reference.frames and not set(processes) & set(_CAPTURES):
        faults.append(f"frames {ran.frames}, expected {reference.frames}")
    if not remembering and (ran.status or not same):
        faults.append(f"status {ran.status}, events {'the same' if same else 'others'}: {ran.problems}")
    if remembering and (
        ran.status != 1
        or any(f"{process.partition('.')[0]} lost" not in " ".join(ran.problems) for process in remembering)
    ):
        faults.append(f"status {ran.status}, and of what was lost is said: {ran.problems}")
    verdict = (
        "byte-identical, status 0" if same and not ran.status else f"status {ran.status}: {'; '.join(ran.problems)}"
    )
    return Killed(
        processes,
        max(ran.recovery_s.values(), default=0.0),
        verdict,
        tuple(f"{_in_short(processes)}: {fault}" for fault in faults),
    )


# ---- live


def kill_live(model: str, groups: Sequence[tuple[str, ...]] = LIVE_GROUPS, cameras: int = 4) -> list[Killed]:
    """One run under load; each group dies at once, when the run is healthy again after the one before."""
    clip = ClipSettings(path=str(asset_path("vtest.avi")), codec="h264", fps=10, seconds=20)
    with (
        RtspSimulator([CameraSettings(name=f"c{n}", clip=clip, seed=n) for n in range(cameras)]) as simulator,
        tempfile.TemporaryDirectory(prefix="cgmodel") as folder,
    ):
        subject = _write_live(Path(folder), model, simulator.cameras)
        with LiveRun(subject) as run:
            run.until(_is_healthy, _WAIT_S, "healthy at the start")
            ledger = Ledger(run.outbox)
            found = [_kill_group(run, ledger, processes) for processes in groups]
            ledger.read()
            return [*found, _ended(run, ledger)]


def _write_live(folder: Path, model: str, cameras: Sequence[CameraHandle]) -> Subject:
    listed = "\n".join(f'  {camera.name}: {{url: "{camera.url}"}}' for camera in cameras)
    graph = folder / "graph.yaml"
    graph.write_text(_LIVE.format(name=f"model{os.getpid()}", cameras=listed, model=model))
    return Subject(f"model{os.getpid()}", graph)


def _is_healthy(status: dict[str, object]) -> bool:
    health = status["health"]
    return isinstance(health, dict) and health["level"] == "healthy"


def _kill_group(run: LiveRun, ledger: Ledger, processes: tuple[str, ...]) -> Killed:
    before = run.processes()
    ledger.read()
    at = time.monotonic()
    for process in processes:
        hit(before[process]["pid"], signal.SIGKILL)

    def is_back(status: dict[str, object]) -> bool:
        now = status["processes"]
        assert isinstance(now, dict)
        anew = all(now[process]["pid"] not in (0, before[process]["pid"]) for process in processes)
        return anew and _is_healthy(status)

    faults = []
    try:
        run.until(is_back, _WAIT_S, "healthy again")
    except TimeoutError as late:
        faults.append(f"{_in_short(processes)}: {late}")
    others = [
        process
        for process, now in run.processes().items()
        if process not in processes and now["pid"] != before[process]["pid"]
    ]
    faults += [f"{_in_short(processes)}: {other} was started again as well" for other in others]
    killed = Killed(processes, time.monotonic() - at, "healthy again" if not faults else "not healthy", tuple(faults))
    click.echo(killed.row)
    return killed


def _ended(run: LiveRun, ledger: Ledger) -> Killed:
    """Stop the run. It ends with status 1, because stateful stages lost their state."""
    begun = time.monotonic()
    status = run.stop(_WAIT_S)
    delivered = ledger.against(run.subject.events)
    problems = run.problems()
    faults = [] if delivered.good else [f"events: {delivered}"]
    faults += [f"left over: {what}" for what in left_over(run.subject.name)]
    faults += [f"the run says: {problem}" for problem in problems if "lost its state" not in problem]
    faults += [f"status {status}, expected 1"] if status != 1 else []
    faults += ["a traceback in the log"] if "Traceback" in run.log.read_text(errors="replace") else []
    return Killed(("stop",), time.monotonic() - begun, f"status {status}; {delivered}", tuple(faults))


# ---- the page


def report(model: str, files: Sequence[Killed], live: Sequence[Killed]) -> str:
    """The tables of one model."""
    faults = [fault for one in (*files, *live) for fault in one.faults]
    return "\n".join(
        [
            f"## {Path(model).name.removeprefix('asset:')}",
            "",
            "**Not all is proven:**" if faults else "**All of this is proven.**",
            "",
            *(f"- {fault}" for fault in faults),
            *([""] if faults else []),
            "| files: died at once | all back after | events and exit status |",
            "|---|---|---|",
            *(one.row for one in files),
            "",
            "| live: died at once | healthy again after | |",
            "|---|---|---|",
            *(one.row for one in live),
            "",
        ]
    )


@figure_command("proofs.model_kills")
@click.argument("models", metavar="[MODEL]...", nargs=-1)
@click.option("--what", type=click.Choice(["all", "files", "live"]), default="all", show_default=True)
@click.option("--seconds", default=2.0, show_default=True, help="How much of the clip each file camera shows.")
def main(figure: Figure, models: tuple[str, ...], what: str, seconds: float) -> None:
    """Kill groups of processes under each MODEL. The page is always written; status 1 if not all is proven."""
    if figure.page and what != "all":
        raise click.UsageError("the page has both parts: leave out --report, or --what")
    wanted = [model if model.startswith("asset:") else str(Path(model).resolve()) for model in models or (MODEL,)]
    figure.takes(len(wanted) * 25.0 * (len(FILE_GROUPS) + len(LIVE_GROUPS)), f"{len(wanted)} models")
    pages, faults = [], []
    for model in wanted:
        files = kill_with_files(model, seconds) if what != "live" else []
        live = kill_live(model) if what != "files" else []
        pages.append(report(model, files, live))
        faults += [fault for one in (*files, *live) for fault in one.faults]
        figure.look()
    head = f"{figure.head(but=['models', 'what'])}\n{figure.others()}\n"
    figure.publish("\n".join([head, *pages]), faults)


if __name__ == "__main__":
    main()
