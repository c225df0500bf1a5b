"""`camgraph watch`: videos, cameras or pictures, without a graph file."""

from __future__ import annotations

import math
import sys
from typing import Any

import click

from camgraph.pipeline.system.names import A_NAME, is_name
from camgraph.tools.commands.env_file_option import env_file_option


def _finite(_: click.Context, __: click.Parameter, number: float | None) -> float | None:
    """`nan` is neither below nor above the limits of a range."""
    if number is not None and not math.isfinite(number):
        raise click.BadParameter(f"{number} is no number of frames; expected one such as 5 or 2.5")
    return number


def _a_name(_: click.Context, __: click.Parameter, text: str) -> str:
    if not is_name(text):
        raise click.BadParameter(f"{text!r} cannot be the name of a run; expected {A_NAME}")
    return text


@click.command()
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option(
    "--model",
    metavar="NAME|PATH",
    help="An ONNX pose model, MoveNet MultiPose or YOLO-pose; by default the MultiPose that `camgraph assets` pulls.",
)
@click.option(
    "--size",
    type=click.IntRange(32, 8192),
    metavar="PIXELS",
    help="The longest side of the model's picture, if the model takes any size. Smaller is faster and finds people "
    "who fill the picture, larger finds those who are far away. By default a look at the files decides; for live "
    "cameras it is 384.",
)
@click.option(
    "--rules", metavar="FILE", help="The rules to judge by; by default falls, lying, hands up, lingering and the like."
)
@click.option(
    "--events",
    metavar="FILE|-",
    default="events.jsonl",
    show_default=True,
    help="The file for the events, one JSON object a line, behind those in it; - is the standard output.",
)
@click.option(
    "--overwrite",
    is_flag=True,
    help="Begin the events file anew, and replace the videos and tracks of an earlier run.",
)
@click.option(
    "--video",
    metavar="FOLDER",
    help="Also write an annotated MP4 of each camera into FOLDER; beside one of an earlier run it gets a number.",
)
@click.option(
    "--tracks",
    metavar="FILE",
    help="Also write the people of each frame, with their ids, into FILE: .txt (MOTChallenge) or .jsonl. "
    "With several cameras its name holds {camera}; beside a file of an earlier run it gets a number.",
)
@click.option(
    "--max-fps",
    type=click.FloatRange(0, 1000, min_open=True),
    callback=_finite,
    metavar="N",
    help="Take at most this many frames a second from each camera; by default all.",
)
@click.option("--single-process", is_flag=True, help="Run everything in one process: to debug, or without /dev/shm.")
@click.option(
    "--print-graph", is_flag=True, help="Print the graph that would run, as a file to keep, and do not run it."
)
@click.option(
    "--name", default="watch", callback=_a_name, show_default=True, help="The run's name: part of every event's id."
)
@click.option("--quiet", is_flag=True, help="No live table and no summary; problems are still printed.")
@env_file_option("NAME=VALUE lines for `${NAME}` in a SOURCE.")
def watch(**options: Any) -> None:
    """Watch videos, cameras, or folders of pictures, and write down the actions of people in them.

    A SOURCE is a video file, a folder of videos (a camera each) or of pictures, a pattern such as 'clips/*.mkv', an
    address such as rtsp://user:password@host/path, or a camera of this machine: /dev/video0, or just 0. Files are
    watched to their end, frame by frame; live cameras until Ctrl-C, the newest frame first. Others on this machine can
    see the addresses of a command: with 'rtsp://user:${PASSWORD}@host/path' the password comes from an env file or the
    environment, and nobody does.
    """
    # These imports take longer than --help may.
    from camgraph.tools.commands.watching.starting import Asked, start  # noqa: PLC0415

    sys.exit(start(Asked(**options)))
