"""The standard graph as YAML text: `--print-graph` prints exactly the graph that runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import yaml

from camgraph.tools.commands.watching.device import Device
from camgraph.tools.commands.watching.models import PoseModel
from camgraph.tools.commands.watching.outputs import STANDARD_OUTPUT
from camgraph.tools.commands.watching.sources import WatchedCamera

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
TRAIL_S = 3
"""How many seconds of their ways people draw behind them in the videos: enough to see where somebody came from."""


@dataclass(frozen=True, slots=True)
class Watch:
    """The contents of the graph. Paths as the graph has them: inputs absolute, outputs as the user named them.

    `events`: None if no file of events is wanted.
    """

    name: str
    cameras: Sequence[WatchedCamera]
    model: PoseModel
    device: Device
    rules: str
    events: str | None
    overwrite: bool = False
    videos: str | None = None
    tracks: str | None = None
    max_fps: float | None = None
    single_process: bool = False


def graph_text(watch: Watch) -> str:
    """The graph, with the password of no camera in it."""
    return "\n".join([*_head(watch), *_cameras(watch), *_stages(watch), ""])


def _head(watch: Watch) -> Iterator[str]:
    yield "# Made by `camgraph watch`. Keep it, change it, and run it with `camgraph run`."
    yield "# Relative paths start at the folder of this file."
    for camera in watch.cameras:
        for variable in camera.variables:
            yield f"# Set {variable} in the environment: {_meaning(variable)} of {camera.name}."
    yield "version: 1"
    yield f"name: {_quoted(watch.name)}"
    if watch.single_process:
        yield "processes: one"


def _meaning(variable: str) -> str:
    return "the address" if variable.endswith("_URL") else "the password, not percent-encoded,"


def _cameras(watch: Watch) -> Iterator[str]:
    yield "cameras:"
    for camera in watch.cameras:
        yield f"  {_key(camera.name)}: {{url: {_quoted(camera.url)}}}"
    if watch.max_fps is not None:
        yield f"camera_defaults: {{max_fps: {watch.max_fps:g}}}"


def _stages(watch: Watch) -> Iterator[str]:
    model, device = watch.model, watch.device
    batch = f"batch: {{max: {device.batch}}}, " if device.batch > 1 else ""
    providers = f", providers: [{', '.join(device.providers)}]" if device.providers != ("cpu",) else ""
    yield "stages:"
    yield "  capture: {use: capture}"
    if model.size is None and model.why:
        yield f"  # max_side is {model.why}: people should be 60 to 250 pixels tall in the model's picture."
    run = f"{batch}threads: {device.threads}, with: {{model: {_quoted(model.model)}{providers}}}"
    if model.near is None:
        yield f"  prepare: {{use: preprocess, from: capture, with: {{{_picture(model)}}}}}"
        yield f"  infer:   {{use: infer, from: prepare, group: model, {run}}}"
        yield "  people:  {use: decode, from: infer, group: model}"
    else:
        for name, side in (("near", replace(model, max_side=model.near)), ("far", model)):
            yield f"  {name}_picture: {{use: preprocess, from: capture, with: {{{_picture(side)}}}}}"
            yield f"  {name}_model: {{use: infer, from: {name}_picture, group: {name}, {run}}}"
            yield f"  {name}_people: {{use: decode, from: {name}_model, group: {name}}}"
        yield "  people:  {use: combine_people, from: {near: near_people, far: far_people}}"
    yield "  tracks:  {use: track, from: people}"
    yield f"  actions: {{use: rules, from: tracks, with: {{file: {_quoted(_escaped(watch.rules))}}}}}"
    if watch.events is not None:
        yield _log(watch, watch.events)
    if watch.videos is not None:
        film = f"path: {_quoted(_escaped(watch.videos) + '/{camera}.mp4')}, trail_s: {TRAIL_S}"
        film += ", overwrite: true" if watch.overwrite else ""
        yield f"  videos:  {{use: sink_video, from: {{frames: capture, tracks: tracks}}, with: {{{film}}}}}"
    if watch.tracks is not None:
        file = f"path: {_quoted(_escaped(watch.tracks))}" + (", overwrite: true" if watch.overwrite else "")
        yield f"  paths:   {{use: sink_tracks, from: tracks, with: {{{file}}}}}"


def _log(watch: Watch, path: str) -> str:
    replaces = watch.overwrite and path != STANDARD_OUTPUT
    log = f"path: {_quoted(_escaped(path))}" + (", mode: replace" if replaces else "")
    # A live camera's loss and return are events too; those of files are the same bytes in every run.
    events = "events" if any(camera.live for camera in watch.cameras) else "actions"
    return f"  log:     {{use: sink_jsonl, from: {events}, with: {{{log}}}}}"


def _picture(model: PoseModel) -> str:
    if model.size is not None:
        corner = f", align: corner, pad: {model.pad}" if model.align == "corner" else ""
        corner += f", fit: {model.fit}" if model.fit != "letterbox" else ""
        return f"size: [{model.size[0]}, {model.size[1]}]{corner}"
    if isinstance(model.max_side, int):
        return f"size: native, max_side: {model.max_side}"
    sides = ", ".join(f"{_key(camera)}: {side}" for camera, side in model.max_side.items())
    return f"size: native, max_side: {{{sides}}}"


def _escaped(path: str) -> str:
    """`${` in a file's name is no variable."""
    return path.replace("${", "$${")


def _quoted(text: str) -> str:
    quoted: str = yaml.safe_dump(text, default_style='"', allow_unicode=True, width=1 << 20)
    return quoted.rstrip("\n")


def _key(name: str) -> str:
    """The name as a key: unquoted if YAML reads it as text."""
    return name if _PLAIN_KEY.fullmatch(name) and yaml.safe_load(name) == name else _quoted(name)
