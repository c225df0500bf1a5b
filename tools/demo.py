"""`camgraph demo`: four cameras, from video to events, with everything to look at in one folder."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

import click

from pipeline.errors import EXIT_GAVE_UP, EnvironmentProblem
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
    status, received = _run(out, seconds)
    if status:
        sys.exit(status)
    _make_contact_sheet(out)
    same = received == _ids(out / EVENTS)
    click.echo(_report(out, len(received), same=same))
    if not same:
        raise click.exceptions.Exit(EXIT_GAVE_UP)


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name in (EVENTS, RECEIVED, SHEET):
            (out / name).unlink(missing_ok=True)
        shutil.rmtree(out / "videos", ignore_errors=True)
    except OSError as error:
        raise EnvironmentProblem(f"{out}: cannot write there: {error.strerror}; name another with --out") from error


def _pull_assets() -> None:
    # Needed by those who run the demo, not by those who ask for --help.
    from tools.assets.catalogue import find  # noqa: PLC0415
    from tools.assets.commands import pull_shown  # noqa: PLC0415

    for name in ASSETS:
        pull_shown(find(name))


def _run(out: Path, seconds: int) -> tuple[int, set[str]]:
    """Run the graph with a program that receives its events; the exit status and their ids."""
    # Heavy, and not needed for --help.
    from pipeline.graph import load_plan  # noqa: PLC0415
    from tools.event_receiver import EventReceiver  # noqa: PLC0415
    from tools.running import run_plan  # noqa: PLC0415

    with EventReceiver(out / RECEIVED, PORT) as receiver:
        (out / RULES).write_bytes(config_path(RULES).read_bytes())
        (out / GRAPH).write_text(demo_graph(config_path(GRAPH).read_text("utf-8"), receiver.address, seconds), "utf-8")
        status = run_plan(load_plan(out / GRAPH), calm=True)
    return status, receiver.ids


def demo_graph(text: str, address: str, seconds: int) -> str:
    """The graph of the demo with its events sent to `address`, and with so many seconds of each camera."""
    text = text.replace(f"tcp://127.0.0.1:{PORT}", address)
    return re.sub(r"(?<=duration_s: )\d+", str(seconds), text)


def _make_contact_sheet(out: Path) -> None:
    from tools.contact_sheet import contact_sheet  # noqa: PLC0415

    contact_sheet(sorted((out / "videos").glob("*.mp4")), out / SHEET)


def _ids(events: Path) -> set[str]:
    return {json.loads(line)["id"] for line in events.read_bytes().splitlines()}


def _report(out: Path, received: int, *, same: bool) -> str:
    """What there is to look at, and what to do next."""
    verdict = "the same as in events.jsonl" if same else "NOT the same as in events.jsonl: something is wrong"
    command = _this_command()
    return f"""
A second program received {received} events over TCP: {verdict}.

Look at
  {out / SHEET}   each camera at four moments
  {out / "videos"}/              people with their skeletons and numbers
  {out / EVENTS}        what they did, one JSON object a line
  {out / GRAPH}, {RULES}   how it was told to: change them, then
                               {command} run {out / GRAPH}
Watch your own
  {command} watch your-video.mp4
"""


def _this_command() -> str:
    """How this person calls camgraph: `make demo` leaves it outside of PATH."""
    here = Path(sys.argv[0])
    on_path = shutil.which("camgraph")
    if (on_path and Path(on_path).exists()) or here.name != "camgraph":
        return "camgraph"
    return os.path.relpath(here)
