"""From the user's request to a run."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import click

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.foreign_text import shown
from camgraph.pipeline.graph import Graph, parse_graph, plan_of
from camgraph.pipeline.graph.env_file import Variables
from camgraph.pipeline.graph.graph_source import GraphSource
from camgraph.pipeline.graph.loading import Amend, unchanged
from camgraph.pipeline.graph.remarks import remarks_alone
from camgraph.pipeline.system.names import A_NAME, is_name
from camgraph.pipeline.system.paths import ASSET_PREFIX, lost_home, resolve, why_no_path
from camgraph.stages.rules.rule_set import read_rules
from camgraph.stages.video.capture import Camera, Capture
from camgraph.tools.assets.catalogue import find
from camgraph.tools.commands.asset_commands import pull_shown
from camgraph.tools.commands.configs import config_path
from camgraph.tools.commands.watching.device import Device, find_device
from camgraph.tools.commands.watching.graph_text import Watch, graph_text
from camgraph.tools.commands.watching.models import PoseModel, model_file, named_model, pose_model
from camgraph.tools.commands.watching.outputs import STANDARD_OUTPUT, ready_events, ready_tracks, ready_videos
from camgraph.tools.commands.watching.picture_size import LOOKING, in_words, one_for_all
from camgraph.tools.commands.watching.several import one_each
from camgraph.tools.commands.watching.size import choose_sides, of_files
from camgraph.tools.commands.watching.sources import WatchedCamera, cameras_of
from camgraph.tools.display.running import run_plan

RULES = "watch_rules.yaml"
PHOTO_RULES = "photo_rules.yaml"
"""For photographs alone: no rule that needs time to pass."""
GRAPH_FILE = "camgraph watch --print-graph"
"""The name of the graph in messages: it is no file, but this shows the lines that they count."""


SMALLEST_SIDE, LARGEST_SIDE, MOST_FPS = 32, 8192, 1000


@dataclass(frozen=True, slots=True)
class Asked:
    """The command line of `camgraph watch`; see `camgraph watch --help`. `events`: None for none."""

    sources: tuple[str, ...]
    model: str | None = None
    size: int | None = None
    rules: str | None = None
    events: str | None = None
    overwrite: bool = False
    video: str | None = None
    tracks: str | None = None
    max_fps: float | None = None
    single_process: bool = False
    print_graph: bool = False
    name: str = "watch"
    quiet: bool = False
    env_files: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        """Raises UserError for a value that no graph can have. The command line knows of most before."""
        whole = isinstance(self.size, int) and not isinstance(self.size, bool)
        if self.size is not None and not (whole and SMALLEST_SIDE <= self.size <= LARGEST_SIDE):
            expected = f"a whole number of pixels from {SMALLEST_SIDE} to {LARGEST_SIDE}"
            raise _wrong_value("size", expected, self.size)
        number = isinstance(self.max_fps, int | float) and not isinstance(self.max_fps, bool)
        if self.max_fps is not None and not (number and 0 < self.max_fps <= MOST_FPS):
            raise _wrong_value("max_fps", f"a number of frames a second above 0, of at most {MOST_FPS}", self.max_fps)
        if not (isinstance(self.name, str) and is_name(self.name)):
            raise _wrong_value("name", A_NAME, self.name)


def _wrong_value(name: str, expected: str, got: object) -> UserError:
    return UserError(f"{name}: expected {expected}, got {shown(repr(got), 60)}", error_id="option-value")


@dataclass(frozen=True, slots=True)
class WatchGraph:
    """The text of a graph, with everything to read it: `environ` has the secret values of its variables."""

    text: str
    folder: Path
    name: str
    outbox: str
    environ: Mapping[str, str] = field(repr=False)
    variables: Variables = field(repr=False)
    alone: Sequence[str] = ()
    """Remarks on sources that are photographs."""

    def parsed(self, amend: Amend = unchanged, *, strict: bool = False) -> Graph:
        """The graph, see `pipeline.graph.loading.load_graph`. Raises GraphError."""
        return parse_graph(
            self.text,
            GRAPH_FILE,
            base_folder=self.folder,
            name=self.name,
            outbox=self.outbox,
            environ=self.environ,
            strict=strict,
            amend=amend,
        )


def start(asked: Asked) -> int:
    """Run the graph, or print it; returns the exit status. Raises UserError or EnvironmentProblem."""
    made = watch_graph(asked, _show)
    if asked.print_graph:
        if model_file(named_model(asked.model, made.folder)).is_file():
            made.parsed()
        click.echo(made.text, nl=False)
        return 0
    graph = made.parsed()
    for line in (*made.alone, *remarks_alone(graph)):
        _show(line)
    quiet = asked.quiet or _terminal_takes_events(asked)
    return run_plan(plan_of(graph), quiet=quiet, calm=True, loader=GraphSource(made.variables))


def _show(line: str) -> None:
    click.echo(line, err=True)


def watch_graph(asked: Asked, show: Callable[[str], None]) -> WatchGraph:
    """The graph of the request; `say` gets remarks for the user. Raises UserError or EnvironmentProblem.

    Checks come first, slow steps last.
    """
    folder = Path.cwd()
    variables = Variables(asked.env_files)
    environ, remarks = variables.anew()
    several = one_each(asked.sources, folder)
    for remark in (*remarks, *several.remarks):
        show(remark)
    cameras = cameras_of(several.sources, folder, environ)
    hidden = _hidden(cameras)
    model = named_model(asked.model, folder)
    alone = photographs(cameras, folder)
    rules = _rules(asked.rules, folder, PHOTO_RULES if len(alone) == len(cameras) else RULES)
    if not asked.print_graph:
        _ready_outputs(asked, folder, [camera.name for camera in cameras], show)
        _pull_model(model)
    pose = _sized(pose_model(model, asked.size), cameras, folder, show)
    text = graph_text(_watch(asked, cameras, pose, rules, _device(pose.model, show)))
    outbox = _outbox(asked, folder)
    return WatchGraph(text, folder, asked.name, outbox, environ | hidden, variables.with_environ(hidden), alone)


def _pull_model(model: str) -> None:
    """On a terminal a missing model is pulled; a script must not wait for something that it did not ask for."""
    if model_file(model).is_file():
        return
    name = model.removeprefix(ASSET_PREFIX)
    if not sys.stderr.isatty():
        home = lost_home()
        raise UserError(
            f"the model {name} is not on this machine; get it with: camgraph assets pull {name}"
            + (f"\n{home}" if home else ""),
            error_id="asset-missing",
        )
    asset = find(name)
    click.echo(f"the model {name} is not on this machine: pulling it, once", err=True)
    pull_shown(asset)


def _watch(asked: Asked, cameras: Sequence[WatchedCamera], model: PoseModel, rules: str, device: Device) -> Watch:
    return Watch(
        name=asked.name,
        cameras=cameras,
        model=model,
        device=device,
        rules=rules,
        events=asked.events,
        overwrite=asked.overwrite,
        videos=asked.video,
        tracks=asked.tracks,
        max_fps=asked.max_fps,
        single_process=asked.single_process,
    )


def _sized(model: PoseModel, cameras: Sequence[WatchedCamera], folder: Path, show: Callable[[str], None]) -> PoseModel:
    """The size of the model's picture, if it is open: by a look at the files, or by the kind of camera."""
    if model.size is not None or model.why:
        return model
    if any(camera.live for camera in cameras):
        return replace(model, why="what suits most rooms")
    file = model_file(model.model)
    if not file.is_file():
        return model
    show(f"{LOOKING} (--size skips this)")
    files = {camera.name: resolve(camera.url.replace("$${", "${"), folder) for camera in cameras}
    choices = choose_sides(file, of_files(files))
    for line in in_words(choices):
        show(line)
    # A second look costs as much again, and all cameras of the graph would have it.
    nears = [choice.near for choice in choices.values()]
    smaller = min(near for near in nears if near) if all(nears) else None
    sides = one_for_all({camera: choice.side for camera, choice in choices.items()})
    return replace(model, max_side=sides, near=smaller, why="chosen by a look at these files")


def _device(model: str, show: Callable[[str], None]) -> Device:
    device = find_device(model_file(model))
    if device.why_not:
        show(f"this machine's GPU cannot run the model, the CPU does: {device.why_not}")
    return device


def _rules(text: str | None, folder: Path, usual: str) -> str:
    """The absolute path of the rules, read once for all of their mistakes. Raises GraphError."""
    path = config_path(usual)
    if text is not None:
        problem = why_no_path(text)
        if problem:
            raise UserError(f"--rules: {problem}", error_id="rules-file")
        path = (folder / Path(text).expanduser()).absolute()
    read_rules(path)
    return str(path)


def _ready_outputs(asked: Asked, folder: Path, cameras: Sequence[str], show: Callable[[str], None]) -> None:
    if asked.video is not None and ready_videos(asked.video, folder) and not asked.overwrite:
        message = "a camera with a video there gets another one, with a number (--overwrite replaces it)"
        show(f"{asked.video}: {message}")
    tracks = asked.tracks
    if tracks is not None and ready_tracks(tracks, folder, asked.name, cameras) and not asked.overwrite:
        show(f"{tracks}: a camera with a file there gets another one, with a number (--overwrite replaces it)")
    if asked.events is not None and ready_events(asked.events, folder) and not asked.overwrite:
        show(f"{asked.events}: new events are added to those in the file (--overwrite replaces it)")


def _hidden(cameras: Sequence[WatchedCamera]) -> dict[str, str]:
    """The variables with the secrets of the addresses."""
    return {key: value for camera in cameras for key, value in camera.variables.items()}


def _outbox(asked: Asked, folder: Path) -> str:
    """One for each events file: events that wait for one must not go to another, of another day and other videos."""
    if asked.events is None:
        return asked.name
    target = asked.events if asked.events == STANDARD_OUTPUT else str((folder / asked.events).absolute())
    return f"{asked.name}-{hashlib.sha256(target.encode(errors='surrogateescape')).hexdigest()[:8]}"


def _terminal_takes_events(asked: Asked) -> bool:
    """Events and a live table on one terminal would overwrite each other; then only the events are shown."""
    return asked.events == STANDARD_OUTPUT and sys.stdout.isatty()


def photographs(cameras: Sequence[WatchedCamera], folder: Path) -> list[str]:
    """A line for each camera that is a folder of photographs, or one photograph: no film, each judged by itself."""
    files = {
        camera.name: Camera.model_validate({"url": camera.url.replace("$${", "${")})
        for camera in cameras
        if not camera.live
    }
    return [
        f"{name}: photographs, each judged by itself (to watch them as a film, number them from 1 on without a gap)"
        for name, settings in files.items()
        if Capture.frames_alone(settings, folder)
    ]
