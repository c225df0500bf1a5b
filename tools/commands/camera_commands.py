"""`camgraph cameras` and `camgraph reload` change a running graph."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import click

from camgraph.pipeline.errors import EnvironmentProblem, GraphError, UserError
from camgraph.pipeline.graph.env_file import Variables
from camgraph.pipeline.graph.loading import read_graph
from camgraph.pipeline.graph.yaml_source import load
from camgraph.pipeline.supervision.answers import CameraList, Reloaded
from camgraph.pipeline.supervision.control_client import ask, find_run
from camgraph.pipeline.system.names import nfc
from camgraph.tools.commands.env_file_option import env_file_option, show_remarks
from camgraph.tools.commands.local_path import LocalPath
from camgraph.tools.commands.run_options import name_option
from camgraph.tools.display.camera_view import render_cameras
from camgraph.tools.display.console import console_of_output

_CHANGE_S = 60.0
"""How long a change may take: a stage that opens a model notices a new camera only after that."""
_LOAD_S = 120.0
"""How long a run may take to load a graph: it reads models and files, and perhaps looks at pictures."""
_LOOK_S = 0.1
_VARIABLE = re.compile(r"\$\{(?:secret:)?([A-Za-z_][A-Za-z0-9_]*)\}")
_PASSWORD = re.compile(r"://[^\s/?#@]*:(?!\$\{)[^\s/?#@]+@")
_EXPECTED = "expected KEY=VALUE, such as max_fps=5; `camgraph stages capture` lists the settings of a camera"

no_wait = click.option("--no-wait", is_flag=True, help="Do not wait until it has happened.")
camera_argument = click.argument("camera", callback=lambda _context, _parameter, name: nfc(name))


@click.group()
def cameras() -> None:
    """List, add, remove or pause cameras of a running graph. The changes last as long as the run."""


@cameras.command("list")
@name_option
@click.option("--json", "as_json", is_flag=True, help="All that is known, as JSON.")
def list_cameras(name: str | None, as_json: bool) -> None:
    """Show the cameras of a run, with their states."""
    run = find_run(name)
    if as_json:
        click.echo(json.dumps(_listed(ask(run, "cameras")), indent=2))
    else:
        console_of_output().print(render_cameras(_cameras_of(run)))


def _listed(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The cameras and pending changes, without the settings for further cameras: these may hold passwords."""
    kept = ("cameras", "coming", "leaving", "paused", "by_command", "problems", "refused")
    return {key: answer[key] for key in kept if key in answer}


@cameras.command()
@camera_argument
@click.argument("url", required=False)
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="One more setting of the camera.")
@name_option
@no_wait
@env_file_option("NAME=VALUE lines for `${NAME}` in URL and settings; for this camera alone, and read now.")
def add(
    camera: str,
    url: str | None,
    settings: tuple[str, ...],
    *,
    name: str | None,
    no_wait: bool,
    env_files: tuple[Path, ...],
) -> None:
    """Take one more CAMERA into a run.

    Write URL and settings as in a graph file, `${NAME}` included: a password does not belong into a command line.
    The value of a variable comes from the env files that are named here; if they lack it, from the run; and if the run
    does not know it either, from this shell. Instead of URL, `-` reads `key: value` lines from the standard input.
    """
    run = find_run(name)
    given = _values(url, settings)
    text = json.dumps(given)
    first, remarks = Variables(env_files, environ={}).anew()
    show_remarks(remarks)
    variables: dict[str, Any] = {"first": _named_in(text, first), "besides": _named_in(text, os.environ)}
    answer = ask(run, "add", within_s=_LOAD_S, camera=camera, given=given, **variables)
    if url and _PASSWORD.search(url):
        click.echo("other users can see the password in the command line: write ${NAME} in its place", err=True)
    for remark in answer.get("remarks", ()):
        click.echo(remark, err=True)
    if no_wait:
        click.echo(f"{camera} is on its way")
        return
    problems = _waited(run, lambda known: camera not in known.coming, f"{camera} is not there yet").problems
    if camera in problems:
        raise EnvironmentProblem(_not_taken_in(camera, problems[camera]), error_id="camera-lost")
    click.echo(f"{camera} is there")


@cameras.command()
@camera_argument
@name_option
@no_wait
def remove(camera: str, name: str | None, no_wait: bool) -> None:
    """End a CAMERA of a run. Its frames that are on the way still arrive."""
    run = find_run(name)
    ask(run, "remove", camera=camera)
    if not no_wait:
        _waited(run, lambda known: camera not in known.leaving, f"{camera} is not gone yet")
    click.echo(f"{camera} is {'on its way out' if no_wait else 'gone'}")


@cameras.command()
@camera_argument
@name_option
def pause(camera: str, name: str | None) -> None:
    """Let a CAMERA of a run rest: the run does not connect to the camera until you resume it."""
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
@click.argument("file", metavar="[GRAPH]", type=LocalPath(), required=False)
@name_option
@no_wait
@env_file_option("Use this file from now on instead of the env files that the run has.")
def reload(file: Path | None, name: str | None, no_wait: bool, env_files: tuple[Path, ...]) -> None:
    """Apply a changed graph file to the running graph. Only the changed parts are restarted.

    GRAPH is by default the file that the run was started from. Cameras that were added by command stay. The run itself
    loads the file with its own variables: it reads the env files again, and you need not set a variable here.
    """
    run = find_run(name, graph=file)
    path = file or _graph_of(run)
    text = read_graph(path)
    asked: dict[str, Any] = {
        "file": str(path),
        "folder": str(path.absolute().parent),
        "text": text,
        "besides": _named_in(text, os.environ),
    }
    if env_files:
        asked["env_files"] = [str(one.absolute()) for one in env_files]
    reply = ask(run, "reload", within_s=_LOAD_S, **asked)
    show_remarks(reply.get("remarks", ()))
    answer = Reloaded.from_json(reply)
    if no_wait:
        click.echo("\n".join(_change_lines(answer)))
        return
    known = _waited(run, lambda known: not known.busy, "not all of the change has happened yet")
    refused = {
        process: why for process, why in known.refused.items() if process in {*answer.restarted, *answer.going_on}
    }
    absent = {name: why for name, why in known.problems.items() if name in {*answer.added, *answer.changed}}
    for line in _change_lines(answer, but={*refused, *absent}):
        click.echo(line)
    problems = [
        f"{process} does not open with its new settings, and goes on with those of before: {why}"
        for process, why in refused.items()
    ]
    problems += [_not_taken_in(name, why) for name, why in absent.items()]
    if problems:
        kind = UserError if refused else EnvironmentProblem
        raise kind("\n".join(problems), error_id="reload-refused" if refused else "camera-lost")


def _graph_of(run: str) -> Path:
    """The file that the run was started from. Raises UserError if the run was not started from a file."""
    file = _cameras_of(run).graph_file
    if not file:
        raise UserError(
            f"the run {run} was not started from a file: name one, as in `camgraph reload FILE`",
            error_id="run-without-file",
        )
    return Path(file)


def _change_lines(answer: Reloaded, but: Collection[str] = ()) -> list[str]:
    """The effects of a reload, a line each."""
    rows = (
        (answer.added, "comes"),
        (answer.removed, "goes"),
        (answer.changed, "begins anew with other settings"),
        (answer.kept, "stays: it was added by command"),
        (answer.restarted, "is started again"),
        (answer.going_on, "goes on with other settings"),
    )
    lines = [f"{name} {what}" for names, what in rows for name in names if name not in but]
    return lines if answer.changes_something else [*lines, "nothing has changed"]


def _not_taken_in(camera: str, why: str) -> str:
    return f"{camera} was not taken in, and is not there: {why}"


def _named_in(text: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that a text names: the other variables are not sent to a run."""
    return {name: environ[name] for name in _VARIABLE.findall(text) if name in environ}


# ---- the settings of a camera


def _values(url: str | None, settings: tuple[str, ...]) -> dict[str, Any]:
    """The settings of a camera as the user gave them."""
    values = _given() if url == "-" else {"url": url} if url else {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key or not value:
            raise UserError(f"--set {key[:40]}{equals}: {_EXPECTED}", error_id="camera-change")
        values[key] = _read(value, f"--set {key[:40]}")
    return values


def _given() -> dict[str, Any]:
    where, text = "the standard input", sys.stdin.read()
    values = _read(text, where, place=True) if text.strip() else None
    if not isinstance(values, dict):
        raise UserError(f"{where}: expected `key: value` lines, such as `url: rtsp://...`", error_id="camera-change")
    return values


def _read(text: str, where: str, *, place: bool = False) -> Any:
    """The value of this text in a graph file, with variables left as they are.

    Raises UserError, with line and column if `place` is set. The error does not quote the text: it may have a password.
    """
    try:
        source = load(text, where)
        problems = source.problems
    except GraphError as error:
        problems = tuple(error.problems)
    if problems:
        raise UserError(
            "\n".join(str(one) if place else f"{where}: {one.text}" for one in problems), error_id="camera-change"
        )
    return source.data


# ---- waiting


def _cameras_of(run: str) -> CameraList:
    return CameraList.from_json(ask(run, "cameras"))


def _waited(run: str, over: Callable[[CameraList], bool], not_yet: str) -> CameraList:
    """Wait until `over` is true of a run's cameras; return these. Raises EnvironmentProblem if that takes too long."""
    until = time.monotonic() + _CHANGE_S
    try:
        while not over(known := _cameras_of(run)):
            if time.monotonic() > until:
                raise EnvironmentProblem(
                    f"{not_yet} after {_CHANGE_S:g} s; see: camgraph cameras list", error_id="camera-lost"
                )
            time.sleep(_LOOK_S)
    except KeyboardInterrupt:
        click.echo(f"{not_yet}: it goes on by itself; see: camgraph cameras list", err=True)
        raise
    return known
