"""Cameras that are called in other scripts, through real stages in processes of their own to events and videos."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import unicodedata
from collections import Counter
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from camgraph.pipeline.system.names import ascii_form
from camgraph.tools.lab.light_model import SIDE, write_model

ROOT = Path(__file__).parents[2]
NAMES = ("Süd", "вход", "入口", "Sud")
FRAMES = 8
GRAPH = """
version: 1
name: scripts
processes: {processes}
camera_defaults: {{url: clip.mp4}}
cameras: {{{cameras}}}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture, with: {{size: [{side}, {side}]}}}}
  infer: {{use: infer, from: prepare, with: {{model: light.onnx}}}}
  people: {{use: decode_yolo_pose, from: infer}}
  tracks: {{use: track, from: people, with: {{confirm_s: 0}}}}
  actions: {{use: rules, from: tracks, with: {{file: rules.yaml}}}}
  log: {{use: sink_jsonl, from: events, with: {{path: events.jsonl, order: time}}}}
  films: {{use: sink_video, from: {{frames: capture, tracks: tracks}}, with: {{path: "videos/{{camera}}.mp4"}}}}
"""
RULES = """
zones: {all: {Süd: [[0, 0], [1, 0], [1, 1], [0, 1]]}}
rules:
  - {id: seen, when: score > 0.01}
  - {id: south, when: score > 0.01, cameras: [Süd]}
  - {id: drawn, when: in all or score > 0.01}
"""


def write_clip(path: Path) -> None:
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=10)
        stream.width, stream.height, stream.pix_fmt = 96, 64, "yuv420p"
        for number in range(FRAMES):
            grey = np.full((64, 96), 40 + 9 * number, np.uint8)
            frame = av.VideoFrame.from_ndarray(grey, "gray8").reformat(format="yuv420p")
            frame.pts, frame.time_base = number, Fraction(1, 10)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


@pytest.mark.parametrize("processes", ["separate", "compact", "one"])
def test_cameras_of_four_scripts_run_side_by_side(tmp_path: Path, processes: str) -> None:
    """The rules are written decomposed, the graph composed."""
    write_clip(tmp_path / "clip.mp4")
    write_model(tmp_path / "light.onnx")
    (tmp_path / "rules.yaml").write_text(unicodedata.normalize("NFD", RULES), encoding="utf-8")
    cameras = ", ".join(f"{name}: {{}}" for name in NAMES)
    text = GRAPH.format(processes=processes, cameras=cameras, side=SIDE)
    (tmp_path / "graph.yaml").write_text(text, encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="cgn", dir="/tmp") as runtime:
        environ = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(tmp_path / "state")}
        ran = subprocess.run(
            [sys.executable, "-m", "camgraph.tools.cli", "run", "graph.yaml"],
            env={**environ, "CAMGRAPH_RUN_DIR": f"{runtime}/runs"},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert ran.returncode == 0, ran.stderr
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text(encoding="utf-8").splitlines()]
    starts = Counter((e["subject"], e["data"]["rule"]["id"]) for e in events if e["data"]["phase"] == "start")
    expected = {(name, "seen") for name in NAMES} | {("Süd", "south"), ("Süd", "drawn")}
    assert starts == dict.fromkeys(expected, 1)
    assert {e["data"]["camera"] for e in events} == set(NAMES)
    videos = {path.name: path for path in (tmp_path / "videos").iterdir()}
    assert videos.keys() == {f"{ascii_form(name)}.mp4" for name in NAMES}
    for path in videos.values():
        with av.open(str(path)) as video:
            assert sum(1 for _ in video.decode(video=0)) == FRAMES
    logged = ran.stdout + ran.stderr
    assert all(name in logged for name in NAMES)
