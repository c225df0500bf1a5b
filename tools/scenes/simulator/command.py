"""`camgraph farm`: cameras to try camgraph with, if you have none."""

from __future__ import annotations

import re
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.tools.scenes.simulator.clip import clip_path
from camgraph.tools.scenes.simulator.faults import KINDS, parse_fault
from camgraph.tools.scenes.simulator.rtsp_simulator import RtspSimulator
from camgraph.tools.scenes.simulator.settings import CameraSettings, ClipSettings

_FAULTS = "\n".join(
    ["\b", "Faults:"]
    + [f"  {':'.join(filter(None, (name, kind.argument))):<31} {kind.about}" for name, kind in KINDS.items()]
)


@click.command("farm", epilog=_FAULTS)
@click.argument("clips", nargs=-1, metavar="[CLIP]...")
@click.option("--cameras", type=click.IntRange(1, 256), help="How many; by default one for each clip.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8554,
    show_default=True,
    help="Of the first camera on 127.0.0.1; the others have those behind it. 0 is any free ones.",
)
@click.option("--codec", type=click.Choice(["h264", "h265"]), help="Encode to this; by default the clip as it is.")
@click.option("--size", metavar="WIDTHxHEIGHT", help="Encode at this size.")
@click.option("--fps", type=float, help="Encode at this rate; movements keep their speed.")
@click.option(
    "--gop", type=int, help="Frames from keyframe to keyframe, if the clip is encoded; by default one second."
)
@click.option(
    "--b-frames", type=int, help="B-frames between two other frames, if the clip is encoded; by default none."
)
@click.option("--seconds", type=float, help="Only this much of the clip, from its beginning.")
@click.option(
    "--auth",
    type=click.Choice(["none", "basic", "digest"]),
    default="none",
    show_default=True,
    help="How the cameras ask for a user and a password, if they do.",
)
@click.option("--user", default="farm", show_default=True, help="The user that they accept, with --auth.")
@click.option(
    "--password",
    default="farm",
    show_default=True,
    help="The password that they accept, with --auth. Take no real one: others can see it, also in the addresses.",
)
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="[CAMERA=]NAME[:ARG]@SECONDS[+DURATION]",
    help="A fault, and its time after the start; see below. Can be given several times.",
)
def simulator(**options: Any) -> None:
    """Serve CLIPs as RTSP cameras on this machine, again and again, until Ctrl-C; without one, a test picture.

    The addresses are printed, one a line, when all can be opened. Only programs of this machine reach them.
    """
    schedule = [parse_fault(text) for text in options["faults"]]
    with RtspSimulator(_cameras(options), schedule=schedule, say_faults=True) as running:
        for camera in running.cameras:
            click.echo(camera.url)
        click.echo("serving until Ctrl-C", err=True)
        try:
            status = running.wait()
        except KeyboardInterrupt:
            return
        raise EnvironmentProblem(
            f"farm: its process ended with status {status}; see its messages above", error_id="simulator"
        )


def _cameras(options: dict[str, Any]) -> list[CameraSettings]:
    """The cameras that a command line asks for. Raises UserError for an impossible camera."""
    paths: list[str | None] = [clip_path(Path(clip)) for clip in options["clips"]] or [None]
    width, height = _sides(options["size"])
    shared = {name: options[name] for name in ("codec", "fps", "gop", "b_frames", "seconds")}
    account = {name: options[name] for name in ("auth", "user", "password")}
    port = options["port"]
    try:
        return [
            CameraSettings(
                name=f"cam{number + 1}",
                clip=ClipSettings(path=path, width=width, height=height, **shared),
                port=port + number if port else 0,
                seed=number,
                **account,
            )
            for number, path in enumerate(islice(cycle(paths), options["cameras"] or len(paths)))
        ]
    except ValidationError as error:
        first = error.errors()[0]
        wanted = first["msg"].replace("Input should be", "must be")
        raise UserError(
            f"camgraph farm: {'.'.join(map(str, first['loc']))}: {wanted}, got {first['input']}",
            error_id="option-value",
        ) from None


def _sides(size: str | None) -> tuple[int | None, int | None]:
    if size is None:
        return None, None
    sides = re.fullmatch(r"(\d+)x(\d+)", size)
    if sides is None:
        raise UserError(f"--size {size}: expected WIDTHxHEIGHT, such as 1280x720", error_id="option-value")
    return int(sides[1]), int(sides[2])
