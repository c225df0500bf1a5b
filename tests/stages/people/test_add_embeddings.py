"""Embeddings of crops, given to the people that the crops show, and graphs in which people have looks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from camgraph_test_stages.two_people import write_two_people
from onnx import TensorProto, helper

from camgraph.pipeline.errors import BadItem, UserError
from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.testing import feed, opened, run_graph, stamp
from camgraph.stages import testing
from camgraph.stages.messages import People, Tensor
from camgraph.stages.people.add_embeddings import AddEmbeddings

SIZE = (320, 240)
BOXES = ((20, 20, 60, 200), (120, 20, 160, 200), (220, 20, 260, 200))


def people(*boxes: tuple[float, ...]) -> People:
    return testing.people(boxes, frame_size=SIZE, keypoints=np.zeros((0, 3)))


def crops(rows: Any, *owner: int) -> Tensor:
    fit = np.ones((len(owner), 4), np.float32)
    return Tensor(stamp(), {"vectors": np.array(rows, np.float32)}, fit, SIZE, (64, 64), np.array(owner, np.int64))


def test_embeddings_become_unit_vectors_of_their_people(tmp_path: Path) -> None:
    given = people(*BOXES)
    with opened(AddEmbeddings, {}, folder=tmp_path) as stage:
        [made] = feed(stage, [{"people": given, "crops": crops([[[3], [4]], [[np.inf], [1]]], 2, 1)}])
    assert isinstance(made, People)
    np.testing.assert_allclose(made.appearance[2], [0.6, 0.8], atol=1e-6)
    assert np.isnan(made.appearance[:2]).all(), "one has no crop, and the numbers of the other are none"


def test_nobody_has_no_embedding(tmp_path: Path) -> None:
    with opened(AddEmbeddings, {}, folder=tmp_path) as stage:
        [made] = feed(stage, [{"people": people(), "crops": crops(np.empty((0, 8)))}])
    assert isinstance(made, People)
    assert len(made) == 0


@pytest.mark.parametrize("rows", [[0.5], [[0.5]], [[1, 2], [3, 4]]])
def test_vectors_of_another_shape_cost_their_frame(tmp_path: Path, rows: Any) -> None:
    with opened(AddEmbeddings, {}, folder=tmp_path) as stage, pytest.raises(BadItem, match="expected an output"):
        feed(stage, [{"people": people(*BOXES), "crops": crops(rows, 0)}])


def test_an_output_that_there_is_not(tmp_path: Path) -> None:
    with opened(AddEmbeddings, {"output": "features"}, folder=tmp_path) as stage:
        with pytest.raises(UserError, match="the model has no output features; it has: vectors"):
            feed(stage, [{"people": people(*BOXES), "crops": crops([[1, 2]], 0)}])


def write_mean_colour(path: Path) -> None:
    """images (n, 3, 64, 32) -> vectors (n, 3): the mean of each colour. Stands for a re-identification model."""
    graph = helper.make_graph(
        [helper.make_node("ReduceMean", ["images"], ["vectors"], axes=[2, 3], keepdims=0)],
        "mean_colour",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, 64, 32])],
        [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["n", 3])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


GRAPH = """version: 1
name: looks
cameras:
  front: {{url: clip.mp4}}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture}}
  pose:    {{use: infer, from: prepare, with: {{model: pose.onnx}}}}
  people:  {{use: decode, from: pose}}
{looks}
  tracks:  {{use: track, from: looks}}
  file:    {{use: sink_tracks, from: tracks, with: {{path: tracks.jsonl}}}}
"""
COLOURS = "  looks: {use: add_colours, from: {frames: capture, people: people}}"
EMBEDDINGS = """
  crops: {use: crop, from: {frames: capture, people: people}}
  reid:  {use: infer, from: crops, batch: {max: 8}, with: {model: reid.onnx}}
  looks: {use: add_embeddings, from: {people: people, crops: reid}}"""


@pytest.mark.slow
@pytest.mark.parametrize("looks", [COLOURS, EMBEDDINGS], ids=["colours", "embeddings"])
def test_a_graph_of_real_processes_follows_people_who_look_alike(tmp_path: Path, make_clip: Any, looks: str) -> None:
    make_clip("clip.mp4", frames=20)
    write_two_people(tmp_path / "pose.onnx")
    write_mean_colour(tmp_path / "reid.onnx")
    (tmp_path / "g.yaml").write_text(GRAPH.format(looks=looks))
    outcome, status = run_graph(load_plan(tmp_path / "g.yaml"))
    assert outcome.status == 0, status
    frames = [json.loads(line) for line in (tmp_path / "tracks.jsonl").read_text().splitlines()]
    assert [frame["seq"] for frame in frames] == list(range(20))
    assert [one["track_id"] for one in frames[-1]["people"]] == [1, 2]
