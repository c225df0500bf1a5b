"""The graph on trial: every kind of stage in a process of its own, and a model that costs nothing.

    farm camera -> capture (a process each) -> prepare -> infer -> people -> tracks -> actions -> (outbox) -> log

The model finds one person in each picture, so that each camera has an incident that tells of itself once a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tools.farm import CameraHandle, CameraSettings, ClipSettings

FPS = 10.0
EVENTS = "events.jsonl"
_KEYPOINTS = 17
_ANCHORS = 4
_SIDE = 64
_OPSET = 17

_GRAPH = """
version: 1
name: {name}
hang_s: {hang_s}
cameras:
{cameras}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture, with: {{size: [64, 64]}}}}
  infer: {{use: infer, from: prepare, batch: {{max: 8}}, with: {{model: light.onnx}}}}
  people: {{use: decode_yolo_pose, from: infer}}
  tracks: {{use: track, from: people}}
  actions: {{use: rules, from: tracks, with: {{rules: [{{id: seen, when: score > 0.5, update: 1s}}]}}}}
  log: {{use: sink_jsonl, from: events, with: {{path: events.jsonl}}}}
"""

KINDS = ("capture", "prepare", "infer", "people", "tracks", "actions", "outbox", "log")
"""Of processes, apart from the supervisor; a unit is called `kind.number`, or `capture.camera`."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A graph file and what it is called."""

    name: str
    graph: Path

    @property
    def folder(self) -> Path:
        """Where the graph lies, and all that it writes."""
        return self.graph.parent

    @property
    def events(self) -> Path:
        """What its sink writes."""
        return self.folder / EVENTS


def farm_cameras(count: int, *, fps: float = FPS) -> list[CameraSettings]:
    """Small pictures, a keyframe each half second; each camera has a seed of its own."""
    clip = ClipSettings(width=192, height=128, fps=fps, gop=max(1, round(fps / 2)), seconds=4)
    return [CameraSettings(name=f"c{number}", clip=clip, seed=number) for number in range(count)]


def transport_of(number: int) -> str:
    """Every other camera sends by UDP."""
    return "udp" if number % 2 else "tcp"


def write_subject(folder: Path, name: str, cameras: Sequence[CameraHandle], *, hang_s: float = 10.0) -> Subject:
    """Write the graph file and the model into a folder."""
    write_model(folder / "light.onnx")
    listed = [
        f'  {camera.name}: {{url: "{camera.url}", transport: {transport_of(number)}}}'
        for number, camera in enumerate(cameras)
    ]
    path = folder / "graph.yaml"
    path.write_text(_GRAPH.format(name=name, hang_s=hang_s, cameras="\n".join(listed)))
    return Subject(name, path)


def write_model(path: Path) -> None:
    """uint8 (n, 64, 64, 3) -> float32 (n, 56, 4), laid out as YOLO-pose: one person in the middle, whatever is seen."""
    import onnx  # noqa: PLC0415 - heavy, and only here
    from onnx import TensorProto, helper, numpy_helper  # noqa: PLC0415

    nodes = [
        helper.make_node("Cast", ["images"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMean", ["floats"], ["mean"], axes=[2, 3], keepdims=0),
        helper.make_node("ReduceMean", ["mean"], ["level"], axes=[1], keepdims=1),
        helper.make_node("Unsqueeze", ["level", "last"], ["column"]),
        helper.make_node("Mul", ["column", "zero"], ["nothing"]),
        helper.make_node("Add", ["nothing", "person"], ["output0"]),
    ]
    constants = [
        numpy_helper.from_array(np.array([2], np.int64), "last"),
        numpy_helper.from_array(np.zeros(1, np.float32), "zero"),
        numpy_helper.from_array(_person(), "person"),
    ]
    rows = 5 + 3 * _KEYPOINTS
    seen = helper.make_tensor_value_info("images", TensorProto.UINT8, ["n", _SIDE, _SIDE, 3])
    told = helper.make_tensor_value_info("output0", TensorProto.FLOAT, ["n", rows, _ANCHORS])
    graph = helper.make_graph(nodes, "light", [seen], [told], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)


def _person() -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """(1, 5 + 3 x 17, 4): in the first anchor somebody upright, all joints seen; the others hold nobody."""
    heads = np.zeros((1, 5 + 3 * _KEYPOINTS, _ANCHORS), np.float32)
    heads[0, :5, 0] = (32, 32, 20, 40, 0.9)
    joints = [(32.0, 14.0 + 2 * index, 0.9) for index in range(_KEYPOINTS)]
    heads[0, 5:, 0] = np.array(joints, np.float32).reshape(-1)
    return heads
