"""The command `picture`: saves the newest picture of a camera of a running graph."""

from __future__ import annotations

from pathlib import Path

import click

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.foreign_text import shown
from camgraph.pipeline.supervision.control_client import ask, find_run
from camgraph.pipeline.system.disk import write_whole
from camgraph.pipeline.system.file_access import kept_from_others
from camgraph.pipeline.system.names import ascii_form, nfc
from camgraph.pipeline.system.paths import runs_folder
from camgraph.pipeline.system.spelling import did_you_mean
from camgraph.stages.sinks.footage.picture_service import NAME, ask_picture
from camgraph.tools.commands.local_path import LocalPath
from camgraph.tools.commands.run_options import name_option


@click.command("picture")
@click.argument("camera")
@click.option("-o", "--out", metavar="FILE", type=LocalPath(), help="The JPEG.  [default: CAMERA.jpg, here]")
@name_option
def picture_command(camera: str, out: Path | None, name: str | None) -> None:
    """Save the newest picture of CAMERA, as it has sent it, without anything drawn on it.

    The run keeps the last packets of its cameras if its graph has a stage `sink_footage`. The picture is the newest
    keyframe, so it is a few seconds old, as your camera is set.
    """
    run, camera = find_run(name), nfc(camera)
    known = ask(run, "status")["cameras"]
    if camera not in known:
        raise UserError(
            f"the run {run} has no camera {shown(camera)}{did_you_mean(camera, known)}", error_id="name-unknown"
        )
    services = sorted((runs_folder() / run).glob(f"*/state/*/{NAME}"))
    if not services:
        raise UserError(
            f"the run {run} keeps no pictures: give its graph a stage `footage: {{use: sink_footage, from: actions}}`",
            error_id="pictures-not-kept",
        )
    picture = ask_picture(services[0], camera)
    path = out or Path(f"{ascii_form(camera)}.jpg")
    with kept_from_others():
        write_whole(path, picture.jpeg)
    click.echo(f"{path}: {picture.facts['width']} x {picture.facts['height']}, {len(picture.jpeg) / 1e3:.0f} kB")
