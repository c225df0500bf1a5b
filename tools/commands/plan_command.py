"""`camgraph plan`: how many cameras this machine holds."""

from __future__ import annotations

import json
import math
from pathlib import Path

import click

from camgraph.pipeline.graph.env_file import Variables
from camgraph.tools.commands.env_file_option import env_file_option, show_remarks
from camgraph.tools.commands.local_path import LocalPath


def _finite(_: click.Context, __: click.Parameter, number: float | None) -> float | None:
    """`nan` is neither below nor above the limits of a range."""
    if number is not None and not math.isfinite(number):
        raise click.BadParameter(f"{number} is no number; expected one such as 5 or 2.5")
    return number


@click.command()
@click.argument("graph", type=LocalPath())
@click.option("--cameras", type=click.IntRange(1, 10_000), help="Plan so many cameras; by default those of GRAPH.")
@click.option(
    "--max-fps",
    type=click.FloatRange(0, 1000, min_open=True),
    callback=_finite,
    help="Take at most so many frames a second from each camera, as `max_fps` in GRAPH does.",
)
@click.option(
    "--sample",
    type=click.IntRange(1, 64),
    default=8,
    show_default=True,
    help="The most cameras to measure, taken evenly from all of GRAPH. "
    "If these are fewer files, they are read several times.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0.5, 600),
    callback=_finite,
    default=10.0,
    show_default=True,
    help="How long to measure, twice. Longer is more exact.",
)
@click.option("--json", "as_json", is_flag=True, help="All that was measured, as JSON.")
@env_file_option("NAME=VALUE lines for `${NAME}` in GRAPH.")
def plan(
    graph: Path,
    cameras: int | None,
    max_fps: float | None,
    sample: int,
    seconds: float,
    *,
    as_json: bool,
    env_files: tuple[Path, ...],
) -> None:
    """Say how many cameras this machine holds with GRAPH, and what ends first.

    GRAPH runs for about half a minute, with its own cameras, stages and models, but without its sinks: nothing is sent
    or written. Files are read as if they were live cameras.
    """
    # With them come the stages, whose imports take longer than --help may.
    from camgraph.tools.commands.planning.plan import Asked, plan_graph  # noqa: PLC0415
    from camgraph.tools.commands.planning.words import in_words  # noqa: PLC0415

    environ, remarks = Variables(env_files).anew()
    show_remarks(remarks)
    planned = plan_graph(
        Asked(graph, environ, cameras, max_fps, sample, seconds), lambda text: click.echo(text, err=True)
    )
    if as_json:
        click.echo(json.dumps(planned.as_json(), indent=2))
        return
    for line in in_words(planned):
        click.echo(line)
