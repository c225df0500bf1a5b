"""Means and deviations of channels, which no model shows: settings of `infer` and options of the commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import onnx
import pytest
from camgraph_test_stages.commands import model_command
from camgraph_test_stages.raised_hands import write_raised_hands
from onnx import TensorProto, helper

from camgraph.pipeline.errors import GraphError
from camgraph.pipeline.graph.loading import parse_graph
from camgraph.pipeline.testing import feed, opened, stamp
from camgraph.stages.messages import Tensor
from camgraph.stages.people.infer import Infer, InferSettings
from camgraph.tools.models.chain import model_inputs
from camgraph.tools.models.declaration import DeclaredModel
from camgraph.tools.models.declaration_options import declaration

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
LIGHT = np.array([200, 120, 40], np.uint8)
"""Of all pixels: red, green, blue."""
GRAPH = """version: 1
name: kinds
cameras:
  front: {{url: clip.mp4}}
stages:
  capture:  {{use: capture}}
  prepare:  {{use: preprocess, from: capture}}
  scores:   {{use: infer, from: prepare, with: {{model: kinds.onnx{infer}}}}}
  kinds:    {{use: classify, from: scores}}
  log:      {{use: sink_jsonl, from: events, with: {{path: events.jsonl, mode: replace}}}}
"""


def write_means(path: Path, kind: int = TensorProto.FLOAT) -> Path:
    """A classifier whose three scores are the means of the channels that it is given."""
    value = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Cast", ["images"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMean", ["floats"], ["scores"], axes=[2, 3], keepdims=0),
    ]
    ends = [value("images", kind, ["n", 3, 32, 32])], [value("scores", TensorProto.FLOAT, ["n", 3])]
    model = helper.make_model(
        helper.make_graph(nodes, "g", *ends), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    onnx.save(model, path)
    return path


def scores_of(folder: Path, **given: Any) -> np.ndarray:
    """The scores of a picture with one colour."""
    pictures = np.broadcast_to(LIGHT, (1, 32, 32, 3)).copy()
    item = Tensor(stamp(), {"image": pictures}, np.ones((1, 4), np.float32), (32, 32), (32, 32))
    with opened(Infer, {"model": "kinds.onnx", "format": "classes", "input": given}, folder=folder) as stage:
        [found] = feed(stage, [item])
    assert isinstance(found, Tensor)
    return np.asarray(found.arrays_by_name["scores"][0])


def test_infer_gives_the_model_normalised_pixels(tmp_path: Path) -> None:
    write_means(tmp_path / "kinds.onnx")
    np.testing.assert_allclose(scores_of(tmp_path), LIGHT / 255, rtol=1e-5)
    wanted = (LIGHT / 255 - MEAN) / STD
    np.testing.assert_allclose(scores_of(tmp_path, mean=MEAN, std=STD), wanted, rtol=1e-5)
    pixels = scores_of(tmp_path, mean=[104, 117, 123], order="bgr", scale=1)
    np.testing.assert_allclose(pixels, LIGHT[::-1] - np.array([104.0, 117, 123]), rtol=1e-5)


def test_commands_give_it_the_same(tmp_path: Path) -> None:
    model = write_means(tmp_path / "kinds.onnx")
    cv2.imwrite(str(tmp_path / "p.png"), np.broadcast_to(LIGHT[::-1], (32, 32, 3)))
    names = ("format", "keypoints", "outputs", "layout", "order", "scale", "mean", "std")
    declared = declaration({**dict.fromkeys(names), "mean": MEAN, "std": STD})
    [given] = model_inputs(DeclaredModel(model, declared), [str(tmp_path / "p.png")], 1)
    np.testing.assert_allclose(given["images"][0, :, 5, 5], (LIGHT / 255 - MEAN) / STD, rtol=1e-5)
    told = model_command("inspect", model, "--mean", "0.485,0.456,0.406", "--std", "0.229,0.224,0.225").output
    assert "(pixel x 0.00392157 - (0.485, 0.456, 0.406)) / (0.229, 0.224, 0.225)" in told


def test_a_prepared_model_needs_no_setting_any_more(tmp_path: Path) -> None:
    model = write_means(tmp_path / "floats.onnx")
    assert model_command("prepare", model, tmp_path / "kinds.onnx", "--mean", "0.485,0.456,0.406").exit_code == 0
    np.testing.assert_allclose(scores_of(tmp_path), LIGHT / 255 - MEAN, rtol=1e-5)


def problems_of(folder: Path, infer: str) -> str:
    with pytest.raises(GraphError) as caught:
        parse_graph(GRAPH.format(infer=infer), "g.yaml", base_folder=folder, environ={}).require_plan()
    return "\n".join(map(str, caught.value.problems))


def test_some_inputs_cannot_be_normalised(tmp_path: Path, make_clip: Any) -> None:
    make_clip("clip.mp4", frames=2)
    write_means(tmp_path / "kinds.onnx", TensorProto.UINT8)
    assert "`mean` and `std` are for inputs of floats" in problems_of(tmp_path, ", input: {mean: [1, 2, 3]}")
    write_means(tmp_path / "kinds.onnx")
    assert "a channel cannot be divided by 0" in problems_of(tmp_path, ", input: {std: [1, 0, 1]}")
    write_raised_hands(tmp_path / "kinds.onnx")
    for key, value in (("mean", "[1, 2, 3]"), ("order", "bgr"), ("scale", "2")):
        assert f"input.{key}: kinds.onnx takes windows of keypoints, which have no pixels" in problems_of(
            tmp_path, f", input: {{{key}: {value}}}"
        )


PLAIN = "kinds.onnx: a classifier does not show how its pixels were normalised: taken to be 0 to 1"
OF_PIXELS = "kinds.onnx: `mean` is above 1, and pixels are scaled to 0 to 1 before"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, PLAIN),
        ({"order": "bgr"}, PLAIN),
        ({"mean": [0, 0, 0]}, ""),
        ({"scale": 1}, ""),
        ({"mean": [104, 117, 123], "scale": 1}, ""),
        ({"mean": [104, 117, 123]}, OF_PIXELS),
    ],
)
def test_check_doubts_pixels_of_a_classifier(tmp_path: Path, given: dict[str, Any], told: str) -> None:
    write_means(tmp_path / "kinds.onnx")
    settings = InferSettings.model_validate({"model": "kinds.onnx", "format": "classes", "input": given})
    remarks = list(Infer.remarks(settings, tmp_path, {}))
    assert [one.startswith(told) for one in remarks] == ([True] if told else [])
