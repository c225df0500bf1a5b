"""`camgraph demo`: four cameras, from video to events, with everything to look at in one folder."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from pipeline.errors import EXIT_GAVE_UP, EnvironmentProblem, UserError
from tools.configs import config_path

PORT = 7007
"""Where the graph sends its events."""
SECONDS = 20
"""How much of each camera the graph takes."""

ASSETS = ("movenet-multipose.onnx", "vtest.avi")
GRAPH = "demo.yaml"
RULES = "demo_rules.yaml"
EVENTS = "events.jsonl"
RECEIVED = "socket.jsonl"
SHEET = "contact-sheet.png"


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
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
    """Watch four cameras for a minute: pull the model and the clip, find people, follow them, judge what they do.

    Leaves the events, an annotated video of each camera, a contact sheet, and the graph with its rules, to be changed
    and run again.
    """
    _make_folder(out)
    _pull_assets()
    done = _run(out, seconds)
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
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()) and not (out / GRAPH).exists():
            raise UserError(f"{out}: is not empty, and not an earlier demo's folder; name a new one with --out")
        for name in (EVENTS, RECEIVED, SHEET):
            (out / name).unlink(missing_ok=True)
    except OSError as error:
        raise EnvironmentProblem(f"{out}: cannot write there: {error.strerror}; name another with --out") from error


def _pull_assets() -> None:
    # Needed by those who run the demo, not by those who ask for --help.
    from tools.assets.catalogue import find  # noqa: PLC0415
    from tools.assets.commands import pull_shown  # noqa: PLC0415

    for name in ASSETS:
        pull_shown(find(name))


def _run(out: Path, seconds: int) -> _Done:
    """Run the graph, with a program that receives its events."""
    # Heavy, and not needed for --help.
    from pipeline.graph import load_plan  # noqa: PLC0415
    from tools.event_receiver import EventReceiver  # noqa: PLC0415
    from tools.running import run_plan  # noqa: PLC0415

    with EventReceiver(out / RECEIVED, PORT) as receiver:
        (out / RULES).write_bytes(config_path(RULES).read_bytes())
        (out / GRAPH).write_text(demo_graph(config_path(GRAPH).read_text("utf-8"), receiver.address, seconds), "utf-8")
        plan = load_plan(out / GRAPH)
        for camera in plan.camera_settings:
            _video(out, camera).unlink(missing_ok=True)
        status = run_plan(plan, calm=True)
    return _Done(status, tuple(plan.camera_settings), receiver.ids)


def demo_graph(text: str, address: str, seconds: int) -> str:
    """The graph of the demo with its events sent to `address`, and with so many seconds of each camera."""
    text = text.replace(f"tcp://127.0.0.1:{PORT}", address)
    return re.sub(r"(?<=duration_s: )\d+", str(seconds), text)


def _make_contact_sheet(out: Path, cameras: Sequence[str]) -> None:
    from tools.contact_sheet import contact_sheet  # noqa: PLC0415

    contact_sheet([_video(out, camera) for camera in cameras], out / SHEET)


def _video(out: Path, camera: str) -> Path:
    return out / "videos" / f"{camera}.mp4"


def _ids(events: Path) -> set[str]:
    return {json.loads(line)["id"] for line in events.read_bytes().splitlines()}


def _report(out: Path, received: int, *, same: bool) -> str:
    """What there is to look at, and what to do next."""
    command = _this_command()
    verdict = "the same as" if same else "NOT the same as"
    looks = {
        SHEET: "each camera at four moments",
        "videos": "people, their skeletons and their numbers",
        EVENTS: "what they did: starts and ends, one JSON object a line",
        RECEIVED: f"{received} lines that another program received over TCP, {verdict} in {EVENTS}",
        GRAPH: f"what camgraph was told: change it, or {RULES} beside it, and run it again",
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
