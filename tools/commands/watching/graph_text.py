"""The standard graph as YAML text: `--print-graph` prints exactly the graph that runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import yaml

from tools.commands.watching.device import Device
from tools.commands.watching.models import PoseModel
from tools.commands.watching.outputs import STANDARD_OUTPUT
from tools.commands.watching.sources import WatchedCamera

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class Watch:
    """All that the graph says. Paths as the graph writes them: inputs absolute, outputs as the person named them.

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
    yield f"  prepare: {{use: preprocess, from: capture, with: {{{_picture(model)}}}}}"
    yield f"  infer:   {{use: infer, from: prepare, group: model, {batch}threads: {device.threads}, " + (
        f"with: {{model: {_quoted(model.model)}{providers}}}}}"
    )
    yield "  people:  {use: decode, from: infer, group: model}"
    yield "  tracks:  {use: track, from: people}"
    yield f"  actions: {{use: rules, from: tracks, with: {{file: {_quoted(_escaped(watch.rules))}}}}}"
    if watch.events is not None:
        yield _log(watch, watch.events)
    if watch.videos is not None:
        film = f"path: {_quoted(_escaped(watch.videos) + '/{camera}.mp4')}"
        film += ", overwrite: true" if watch.overwrite else ""
        yield f"  videos:  {{use: sink_video, from: {{frames: capture, tracks: tracks}}, with: {{{film}}}}}"


def _log(watch: Watch, path: str) -> str:
    replaces = watch.overwrite and path != STANDARD_OUTPUT
    log = f"path: {_quoted(_escaped(path))}" + (", mode: replace" if replaces else "")
    # A live camera's loss and return are events too; those of files are the same bytes in every run.
    events = "events" if any(camera.live for camera in watch.cameras) else "actions"
    return f"  log:     {{use: sink_jsonl, from: {events}, with: {{{log}}}}}"


def _picture(model: PoseModel) -> str:
    if model.size is not None:
        corner = f", align: corner, pad: {model.pad}" if model.align == "corner" else ""
        return f"size: [{model.size[0]}, {model.size[1]}]{corner}"
    return f"size: native, max_side: {model.max_side}"


def _escaped(path: str) -> str:
    """`${` in a file's name is no variable."""
    return path.replace("${", "$${")


def _quoted(text: str) -> str:
    quoted: str = yaml.safe_dump(text, default_style='"', allow_unicode=True, width=1 << 20)
    return quoted.rstrip("\n")


def _key(name: str) -> str:
    """The name as a key: unquoted if YAML reads it as text."""
    return name if _PLAIN_KEY.fullmatch(name) and yaml.safe_load(name) == name else _quoted(name)
