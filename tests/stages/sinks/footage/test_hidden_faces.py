"""The whole way of `look: blurred_faces`: rules are told to say where heads are, and pictures hide them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
from camgraph_test_stages.two_people import write_two_people

from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.testing import run_graph
from camgraph.stages.sinks.footage.incident_record import records_in
from camgraph.stages.sinks.sink_footage import SinkFootage, SinkFootageSettings

MakeClip = Callable[..., Path]

GRAPH = """
version: 1
name: hidden
processes: compact
cameras:
  cam: {url: cam.mp4}
stages:
  capture: {use: capture}
  prepare: {use: preprocess, from: capture}
  infer: {use: infer, from: prepare, with: {model: people.onnx}}
  people: {use: decode, from: infer}
  tracks: {use: track, from: people}
  actions:
    use: rules
    from: tracks
    with: {rules: [{id: somebody, when: in door}], zones: {door: [[0.4, 0], [0.55, 0], [0.55, 1], [0.4, 1]]}}
  footage: {use: sink_footage, from: actions, with: {look: blurred_faces, clips: false, crops: true}}
"""
NOSE_ABOVE_MIDDLE = 12.0
"""In pixels of the model, of which each has four pixels of the clip across and down."""
NOSES = {"in the door": (120, 80), "beside it": (200, 80), "hardly seen": (40, 80)}


def sharpness(picture: np.ndarray, at: tuple[int, int]) -> float:
    """Of a few pixels beside a point, where no joint is drawn."""
    x, y = at
    return float(picture[y + 2 : y + 6, x - 6 : x - 2].std(axis=(0, 1)).max())


def test_all_heads_of_a_picture_are_hidden(make_clip: MakeClip, tmp_path: Path) -> None:
    """Those of bystanders too, and of people who have no track."""
    make_clip("cam.mp4", frames=6, size=(256, 256), options={"crf": "5"})
    write_two_people(tmp_path / "people.onnx", {0: (0.0, -NOSE_ABOVE_MIDDLE)})
    (tmp_path / "graph.yaml").write_text(GRAPH)
    outcome, _ = run_graph(load_plan(tmp_path / "graph.yaml"))
    assert outcome.problems == []
    (record,) = records_in(tmp_path / "footage")
    assert len(record.data["people"]) == 1
    picture = cv2.imread(str(record.file("snapshot")))
    assert picture is not None
    for who, (x, y) in NOSES.items():
        assert sharpness(picture, (x, y)) < 4, who
        assert sharpness(picture, (x, y + 140)) > 8, "the rest is as it was"
    (path,) = record.path.parent.glob("*_person*.jpg")
    crop = cv2.imread(str(path))
    assert crop is not None
    assert sharpness(crop, (crop.shape[1] // 2, crop.shape[0] // 2 - 4 * round(NOSE_ABOVE_MIDDLE))) < 4


def test_a_remark_says_that_clips_show_faces() -> None:
    def remarks(**values: object) -> str:
        return " ".join(SinkFootage.remarks(SinkFootageSettings.model_validate(values), Path(), {}))

    assert "clips and recordings show all faces" in remarks(look="blurred_faces")
    assert "clips and recordings show all faces" in remarks(look="blurred_faces", clips=False, record="always")
    assert "faces" not in remarks(look="blurred_faces", clips=False)
    assert "faces" not in remarks(look="annotated")
