"""The graph that the cameras are in: all of the way from packets to events, which tell of every single frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.live_faults.cameras import USER, Kind, Patient
from tools.live_faults.model import SIZE, write_model

EVENTS = "events.jsonl"
_VARIABLES: Mapping[Kind, str] = {"wrong": "FAULTS_WRONG_PASSWORD"}
_RULE = "{id: seen, when: score > 0.01, update: 1ms, hold: 60s, gap: 60s}"
"""Tells of each frame that comes out, also where many before it were passed over."""
_GRAPH = """
version: 1
name: {name}
processes: {processes}
cameras:
{cameras}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture, with: {{size: [{width}, {height}]}}}}
  infer: {{use: infer, from: prepare, batch: {{max: 1}}, with: {{model: somebody.onnx}}}}
  people: {{use: decode_yolo_pose, from: infer}}
  tracks: {{use: track, from: people, with: {{confirm_frames: 1, max_lost_s: 600}}}}
  actions: {{use: rules, from: tracks, with: {{rules: [{rule}]}}}}
  log: {{use: sink_jsonl, from: events, batch: {{max: 32}}, with: {{path: {events}}}}}
"""


def write_graph(folder: Path, name: str, processes: str, patients: Sequence[Patient]) -> Path:
    """The graph file, and the model beside it; passwords stand in the environment (`environment`).

    ``processes``: how the stages are placed, `separate` or `compact`.
    """
    write_model(folder / "somebody.onnx")
    cameras = "\n".join(_camera(patient) for patient in patients)
    path = folder / "graph.yaml"
    text = _GRAPH.format(
        name=name, processes=processes, cameras=cameras, rule=_RULE, width=SIZE[0], height=SIZE[1], events=EVENTS
    )
    path.write_text(text)
    return path


def environment(password: str, wrong: str) -> dict[str, str]:
    """The variables of the graph file."""
    return {"FAULTS_PASSWORD": password, "FAULTS_WRONG_PASSWORD": wrong}


def _camera(patient: Patient) -> str:
    variable = _VARIABLES.get(patient.kind, "FAULTS_PASSWORD")
    url = f"rtsp://{USER}:${{{variable}}}@127.0.0.1:{patient.port}/{patient.path}"
    return f'  {patient.name}: {{url: "{url}", transport: {"udp" if patient.kind == "udp" else "tcp"}}}'
