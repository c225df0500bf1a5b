"""The graph on trial: every kind of stage in a process of its own, and a model that costs nothing.

    simulated camera -> capture (a process each) -> prepare -> infer -> people -> tracks -> actions -> (outbox) -> log

The model finds one person in each picture, so that each camera has an incident that tells of itself: once a second, or
with each frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from camgraph.tools.lab.light_model import SIDE, write_model
from camgraph.tools.scenes.simulator import CameraHandle, CameraSettings, ClipSettings

FPS = 10.0
EVENTS = "events.jsonl"

_GRAPH = """
version: 1
name: {name}
hang_s: {hang_s}
processes: {processes}
cameras:
{cameras}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture, with: {{size: [{side}, {side}]}}}}
  infer: {{use: infer, from: prepare, batch: {{max: 8}}, with: {{model: light.onnx}}}}
  people: {{use: decode_yolo_pose, from: infer}}
  tracks: {{use: track, from: people, with: {{confirm_s: 0, max_lost_s: 600}}}}
  actions: {{use: rules, from: tracks, with: {{rules: [{rule}]}}}}
  log: {{use: sink_jsonl, from: events, batch: {{max: 32}}, with: {{path: {events}}}}}
"""
_EVERY_SECOND = "{id: seen, when: score > 0.01, update: 1s}"
_EVERY_FRAME = "{id: seen, when: score > 0.01, update: 1ms, hold: 60s, gap: 60s}"
"""Makes an event of each frame that comes out, even if many before it were passed over."""

KINDS = ("capture", "prepare", "infer", "people", "tracks", "actions", "outbox", "log")
"""The kinds of processes, apart from the supervisor; a process is called `kind.number`, or `capture.camera`."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A graph file and its name."""

    name: str
    graph: Path

    @property
    def folder(self) -> Path:
        """The folder of the graph and of all its output."""
        return self.graph.parent

    @property
    def events(self) -> Path:
        """The file of its sink."""
        return self.folder / EVENTS


def simulated_cameras(count: int, *, fps: float = FPS) -> list[CameraSettings]:
    """Small pictures, a keyframe each half second; each camera has a seed of its own."""
    clip = ClipSettings(width=192, height=128, fps=fps, gop=max(1, round(fps / 2)), seconds=4)
    return [CameraSettings(name=f"c{number}", clip=clip, seed=number) for number in range(count)]


def transport_of(number: int) -> str:
    """Every other camera sends by UDP."""
    return "udp" if number % 2 else "tcp"


def write_subject(
    folder: Path, name: str, cameras: Sequence[CameraHandle], *, hang_s: float = 10.0, every_frame: bool = False
) -> Subject:
    """The graph on simulated cameras. `every_frame`: each frame that comes out is an event, else one a second."""
    listed = [
        f'{camera.name}: {{url: "{camera.url}", transport: {transport_of(number)}}}'
        for number, camera in enumerate(cameras)
    ]
    return write_graph(folder, name, listed, hang_s=hang_s, every_frame=every_frame)


def write_graph(
    folder: Path,
    name: str,
    cameras: Sequence[str],
    *,
    processes: str = "separate",
    hang_s: float = 10.0,
    every_frame: bool = False,
) -> Subject:
    """The graph file, and the model beside it. `cameras`: a line each, as under `cameras:` in the file."""
    write_model(folder / "light.onnx")
    text = _GRAPH.format(
        name=name, processes=processes, hang_s=hang_s, cameras="\n".join(f"  {line}" for line in cameras), side=SIDE,
        rule=_EVERY_FRAME if every_frame else _EVERY_SECOND, events=EVENTS,
    )  # fmt: skip
    path = folder / "graph.yaml"
    path.write_text(text)
    return Subject(name, path)
