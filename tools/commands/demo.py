"""`camgraph demo`: four cameras, from video to events, with everything to look at in one folder."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

import click

from camgraph.pipeline.errors import EXIT_GAVE_UP, EnvironmentProblem, UserError
from camgraph.pipeline.system.disk import try_lock
from camgraph.tools.commands.configs import config_path
from camgraph.tools.commands.local_path import LocalPath

PORT = 7007
"""The address that the graph sends its events to."""
SECONDS = 20
"""How much of each camera the graph takes."""

CAMERAS, FPS = 4, 10
"""Of the graph."""
START_S, CORE_SECONDS_OF_A_FRAME = 10.0, 0.23
ASSETS = ("movenet-multipose.onnx", "vtest.avi")
NAME = "demo"
"""The name of the run in the graph."""
GRAPH = "demo.yaml"
RULES = "demo_rules.yaml"
EVENTS = "events.jsonl"
RECEIVED = "socket.jsonl"
SHEET = "contact-sheet.png"


@click.command()
@click.option(
    "--out",
    type=LocalPath(file_okay=False),
    default=Path("out/demo"),
    show_default=True,
    help="The folder for all that the demo writes; an earlier demo's files in it are replaced.",
)
@click.option(
    "--seconds",
    type=click.IntRange(1, SECONDS),
    default=SECONDS,
    show_default=True,
    help="How much of each camera to watch.",
)
def demo(out: Path, seconds: int) -> None:
    """Watch four cameras for 20 s each: pull the model and the clip, find people, follow them, judge their actions.

    It takes about two minutes on two cores, less on more.

    Leaves the events, an annotated video of each camera, a contact sheet, and the graph with its rules, to be changed
    and run again.
    """
    _make_folder(out)
    name = _free_name()
    _pull_assets()
    click.echo(_how_long(seconds, len(os.sched_getaffinity(0))))
    done = _run(out, seconds, name)
    if done.status:
        raise click.exceptions.Exit(done.status)
    _make_contact_sheet(out, done.cameras)
    same = done.received == _ids(out / EVENTS)
    click.echo(_report(out, len(done.received), same=same))
    if not same:
        raise click.exceptions.Exit(EXIT_GAVE_UP)


@dataclass(frozen=True, slots=True)
class _Done:
    """A run at its end: its exit status, its cameras in the graph's order, and the ids that came over the socket."""

    status: int
    cameras: tuple[str, ...]
    received: set[str]


def _make_folder(out: Path) -> None:
    """Make it, and keep other demos out of it as long as this process lives."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        if not try_lock(os.open(out, os.O_RDONLY)):
            raise UserError(
                f"{out}: another demo is writing into this folder; wait for it, or name another with --out",
                error_id="file-in-use",
            )
        if any(out.iterdir()) and not (out / GRAPH).exists():
            raise UserError(
                f"{out}: is not empty, and not an earlier demo's folder; name a new one with --out",
                error_id="file-exists",
            )
        for name in (EVENTS, RECEIVED, SHEET):
            (out / name).unlink(missing_ok=True)
    except OSError as error:
        raise EnvironmentProblem(
            f"{out}: cannot write there: {error.strerror}; name another with --out", error_id="cannot-write"
        ) from error


def _free_name() -> str:
    """A name that no other run of this user has; reported if it is not NAME."""
    from camgraph.pipeline.system.found_runs import found_runs  # noqa: PLC0415 - not needed for --help

    taken = {run.name for run in found_runs() if run.own}
    free = next(name for name in chain([NAME], (f"{NAME}-{n}" for n in count(2))) if name not in taken)
    if free != NAME:
        click.echo(f"a run called {NAME} is going on: this one is called {free}", err=True)
    return free


def _pull_assets() -> None:
    # Needed by those who run the demo, not by those who ask for --help.
    from camgraph.tools.assets.catalogue import find  # noqa: PLC0415
    from camgraph.tools.commands.asset_commands import pull_shown  # noqa: PLC0415

    for name in ASSETS:
        pull_shown(find(name))


def _how_long(seconds: int, cores: int) -> str:
    """The steps to come, and about how long they take: measured on two idle cores."""
    frames = CAMERAS * seconds * FPS
    about_s = START_S + frames * CORE_SECONDS_OF_A_FRAME / cores
    took = f"{about_s / 60:.0f} min" if about_s >= 90 else f"{about_s:.0f} s"
    return f"watching {CAMERAS} cameras for {seconds} s each, {frames} frames: about {took} on {cores} quiet cores"


def _run(out: Path, seconds: int, name: str) -> _Done:
    """Run the graph, with a program that receives its events."""
    # Heavy, and not needed for --help.
    from camgraph.pipeline.graph import parse_graph, plan_of  # noqa: PLC0415
    from camgraph.stages.sinks.writing.output_names import part_of  # noqa: PLC0415
    from camgraph.tools.display.running import run_plan  # noqa: PLC0415
    from camgraph.tools.scenes.simulator.event_receiver import EventReceiver  # noqa: PLC0415

    with EventReceiver(out / RECEIVED, PORT) as receiver:
        (out / RULES).write_bytes(config_path(RULES).read_bytes())
        kept = kept_graph(config_path(GRAPH).read_text("utf-8"), receiver.address, seconds)
        if _runs_on_gpu():
            kept = gpu_graph(kept)
        (out / GRAPH).write_text(kept, "utf-8")
        plan = plan_of(parse_graph(sending_graph(kept), str(out / GRAPH), base_folder=out, name=name))
        for camera in plan.camera_settings:
            _video(out, camera).unlink(missing_ok=True)
            part_of(_video(out, camera)).unlink(missing_ok=True)
        status = run_plan(plan, calm=True)
    return _Done(status, tuple(plan.camera_settings), receiver.ids)


def kept_graph(text: str, address: str, seconds: int) -> str:
    """The graph that the demo leaves: events for clients of `address`, so many seconds of each camera."""
    text = text.replace(f"tcp://127.0.0.1:{PORT}", address)
    return re.sub(r"(?<=duration_s: )\d+", str(seconds), text)


def gpu_graph(kept: str) -> str:
    """The same graph with its model on the GPU, and on the CPU if the GPU is gone."""
    return kept.replace(f'"asset:{ASSETS[0]}"}}', f'"asset:{ASSETS[0]}", providers: [cuda, cpu]}}')


def _runs_on_gpu() -> bool:
    """Whether a GPU of this machine runs the model; says why one that is here does not."""
    from camgraph.tools.assets import asset_path  # noqa: PLC0415
    from camgraph.tools.commands.watching.device import find_device  # noqa: PLC0415

    device = find_device(asset_path(ASSETS[0]))
    if device.why_not:
        click.echo(f"this machine's GPU cannot run the model, the CPU does: {device.why_not}", err=True)
    return "cuda" in device.providers


def sending_graph(kept: str) -> str:
    """The graph that the demo runs: its events are sent, for no event may be missing at the receiver."""
    return kept.replace(", listen: true", "")


def _make_contact_sheet(out: Path, cameras: Sequence[str]) -> None:
    from camgraph.tools.commands.contact_sheet import contact_sheet  # noqa: PLC0415

    contact_sheet([_video(out, camera) for camera in cameras], out / SHEET)


def _video(out: Path, camera: str) -> Path:
    return out / "videos" / f"{camera}.mp4"


def _ids(events: Path) -> set[str]:
    return {json.loads(line)["id"] for line in events.read_bytes().splitlines()}


def _report(out: Path, received: int, *, same: bool) -> str:
    """Things to look at, and next steps."""
    command = _this_command()
    verdict = "the same as" if same else "NOT the same as"
    looks = {
        SHEET: "each camera at four moments",
        "videos": "people, their skeletons and their numbers",
        EVENTS: "the events: starts and ends, one JSON object a line",
        RECEIVED: f"{received} lines that another program received over TCP, {verdict} in {EVENTS}",
        GRAPH: f"the graph: change it, or {RULES} beside it, and run it again",
    }
    lines = [f"  {out / name!s:<{len(str(out)) + 20}}{what}" for name, what in looks.items()]
    runs = [f"  {command} run {out / GRAPH}", f"  {command} watch your-video.mp4"]
    return "\n".join(["", "Look at", *lines, "", "Run", *runs])


def _this_command() -> str:
    """How this person calls camgraph: `make demo` leaves it outside of PATH."""
    here = Path(sys.argv[0])
    on_path = shutil.which("camgraph")
    if (on_path and Path(on_path).exists()) or here.name != "camgraph":
        return "camgraph"
    return os.path.relpath(here)
