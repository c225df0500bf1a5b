"""`camgraph cameras` and `camgraph reload`: what changes in a graph while it runs."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
import yaml
from rich.console import Console

from pipeline.control import ask, find_run
from pipeline.errors import EnvironmentProblem, GraphError, UserError
from pipeline.graph import load_plan
from pipeline.graph.single_camera import check_camera
from pipeline.plan import run_to_wire
from tools.camera_view import render_cameras

_CHANGE_S = 60.0
"""A stage that opens a model meanwhile hears of a camera only when it is open."""
_LOOK_S = 0.1
_PASSWORD = re.compile(r"://[^\s/?#@]*:(?!\$\{)[^\s/?#@]+@")

name_option = click.option("--name", help="Which run, where there are several.")
no_wait = click.option("--no-wait", is_flag=True, help="Do not wait until it has happened.")
camera_argument = click.argument("camera")


@click.group()
def cameras() -> None:
    """List, add, remove or pause cameras of a running graph. What is changed so lasts as long as the run."""


@cameras.command("list")
@name_option
def list_cameras(name: str | None) -> None:
    """Show the cameras of a run, and how they are."""
    Console().print(render_cameras(ask(find_run(name), "cameras")))


@cameras.command()
@camera_argument
@click.argument("url", required=False)
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="One more setting of the camera.")
@name_option
@no_wait
def add(camera: str, url: str | None, settings: tuple[str, ...], name: str | None, no_wait: bool) -> None:
    """Take one more CAMERA into a run.

    URL and settings are those of a graph file, `${NAME}` for what stands in the environment included: a password does
    not belong into a command line. Instead of URL, `-` reads `key: value` lines from the standard input.
    """
    run = find_run(name)
    known = ask(run, "cameras")
    try:
        checked = check_camera(
            camera,
            _values(url, settings),
            source=known["source"],
            base_folder=Path(known["base_folder"]),
            defaults=known["defaults"],
        )
    except GraphError as error:
        raise UserError("\n".join(problem.text for problem in error.problems)) from None
    ask(run, "add", camera=camera, values=dict(checked.values))
    if url and _PASSWORD.search(url):
        click.echo("the password stood in the command line, where others can see it: write ${NAME} for it", err=True)
    _wait(run, lambda known: camera not in known["coming"], camera, no_wait=no_wait)
    click.echo(f"{camera} is {'on its way' if no_wait else 'there'}")


@cameras.command()
@camera_argument
@name_option
@no_wait
def remove(camera: str, name: str | None, no_wait: bool) -> None:
    """Let a CAMERA of a run end; what is on the way of it still arrives."""
    run = find_run(name)
    ask(run, "remove", camera=camera)
    _wait(run, lambda known: camera not in known["leaving"], camera, no_wait=no_wait)
    click.echo(f"{camera} is {'on its way out' if no_wait else 'gone'}")


@cameras.command()
@camera_argument
@name_option
def pause(camera: str, name: str | None) -> None:
    """Let a CAMERA of a run rest: it is not connected to, until it is resumed."""
    ask(find_run(name), "pause", camera=camera)
    click.echo(f"{camera} rests")


@cameras.command()
@camera_argument
@name_option
def resume(camera: str, name: str | None) -> None:
    """Let a CAMERA that rests go on."""
    ask(find_run(name), "resume", camera=camera)
    click.echo(f"{camera} goes on")


@click.command()
@click.argument("graph", type=click.Path(path_type=Path), required=False)
@name_option
@no_wait
def reload(graph: Path | None, name: str | None, no_wait: bool) -> None:
    """Take a changed graph file over into its running graph; only what has changed is started again.

    GRAPH is the file that the run was started from, if nothing is said. Cameras that were added by command stay.
    """
    run = find_run(name)
    path = graph or Path(ask(run, "cameras")["graph_file"])
    if path == Path():
        raise UserError(f"the run {run} was not started from a file: name the graph file")
    answer = ask(run, "reload", plan=run_to_wire(load_plan(path, name=run)))
    _wait(run, lambda known: not known["busy"], run, no_wait=no_wait)
    click.echo("\n".join(_told(answer)))


def _told(answer: Mapping[str, Any]) -> list[str]:
    words = {
        "added": "comes",
        "removed": "goes",
        "changed": "begins anew with other settings",
        "kept": "stays: it was added by command",
        "restarted": "is started again",
    }
    told = [f"{name} {what}" for kind, what in words.items() for name in answer[kind]]
    return told if any(answer[kind] for kind in words if kind != "kept") else ["nothing has changed"]


def _values(url: str | None, settings: tuple[str, ...]) -> dict[str, Any]:
    """The settings of a camera as the user gave them."""
    values = _yaml(sys.stdin.read(), "the standard input") if url == "-" else {"url": url} if url else {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise UserError(f"--set {key[:40]}: expected KEY=VALUE")
        values[key] = yaml.safe_load(value)
    return values


def _yaml(text: str, where: str) -> dict[str, Any]:
    try:
        values = yaml.safe_load(text)
    except yaml.YAMLError:
        values = None
    if not isinstance(values, dict):
        raise UserError(f"{where}: expected `key: value` lines, such as `url: rtsp://...`")
    return values


def _wait(run: str, over: Callable[[Mapping[str, Any]], bool], camera: str, *, no_wait: bool) -> None:
    until = time.monotonic() + _CHANGE_S
    while not no_wait:
        known = ask(run, "cameras")
        if camera in known["problems"]:
            raise EnvironmentProblem(f"{camera} was not taken in: {known['problems'][camera]}")
        if over(known):
            return
        if time.monotonic() > until:
            raise EnvironmentProblem(f"it has not happened within {_CHANGE_S:g} s; see: camgraph cameras list")
        time.sleep(_LOOK_S)
