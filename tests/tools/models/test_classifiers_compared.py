"""Classifiers side by side: what they call each frame, and how sure they are."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import cv2
import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from onnx import TensorProto, helper, numpy_helper

from camgraph.tools.cli import main

SIDE = 32
REDS, BLUES = (0, 0, 250), (250, 0, 0)


def classifier(
    path: Path, *, favours: float = 0.0, colours: int = 3, factor: float = 8, end: str | None = None, also: str = ""
) -> Path:
    """images (n, 3, 32, 32) -> the mean of each colour as a logit, ``factor`` times, with a bias for the first of them.

    ``end``: an operator that makes something else of the logits; ``also``: the name of an output beside.
    """
    weights = np.zeros((3, colours), np.float32)
    np.fill_diagonal(weights, factor)
    constants = {"weights": weights, "bias": np.array([favours] + [0] * (colours - 1), np.float32)}
    nodes = [
        helper.make_node("ReduceMean", ["images"], ["means"], axes=[2, 3], keepdims=0),
        helper.make_node("Gemm", ["means", "weights", "bias"], ["sums"]),
        helper.make_node(end or "Identity", ["sums"], ["scores"]),
        *([helper.make_node("Neg", ["sums"], [also])] if also else []),
    ]
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, SIDE, SIDE])
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", colours]) for name in ("scores", also) if name
    ]
    made = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    model = helper.make_model(helper.make_graph(nodes, "g", [images], outputs, made), ir_version=8)
    model.opset_import[0].version = 17
    entry = model.metadata_props.add()
    entry.key, entry.value = "names", str(dict(enumerate(("red", "green", "blue")[:colours])))
    onnx.save(model, path)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Eighteen pictures that are red, and six that are blue."""
    for number, colour in enumerate((*[REDS] * 18, *[BLUES] * 6)):
        cv2.imwrite(str(tmp_path / f"{number}.png"), np.full((64, 64, 3), colour, np.uint8))
    return tmp_path


def compared(folder: Path, first: Path, other: Path, *options: str) -> Result:
    command = ["model", "compare", first, other, "--frames", folder, "--least-frames", "20", *options]
    return CliRunner().invoke(main, list(map(str, command)))


@pytest.mark.lab
def test_who_calls_all_the_same_and_is_as_sure_is_good(folder: Path) -> None:
    first, other = classifier(folder / "a.onnx"), classifier(folder / "b.onnx", favours=0.01)
    saved = folder / "saved.json"
    result = compared(folder, first, other, "--json", str(saved))
    assert result.exit_code == 0, result.output
    assert "good: classes, scores" in result.output
    assert "Classes that were seen: red, blue." in result.output
    one = json.loads(saved.read_text())["models"][1]
    assert (one["classes"], one["classes_alike"], one["people"], one["f1"], one["good"]) == (1.0, 1.0, None, None, True)
    assert 0.999 < one["scores"] < 1


@pytest.mark.processes
def test_who_calls_some_otherwise_is_not(folder: Path) -> None:
    result = compared(folder, classifier(folder / "a.onnx"), classifier(folder / "b.onnx", favours=20.0))
    assert result.exit_code == 1
    assert "**classes below 0.95**" in result.output
    assert "| - | - | - | " in result.output
    assert " | 0.750 | " in result.output


@pytest.mark.lab
def test_who_knows_only_what_most_frames_show_is_not(folder: Path) -> None:
    for number in range(24, 250):
        shutil.copy(folder / "0.png", folder / f"{number}.png")
    first = classifier(folder / "a.onnx")
    for name, other in (("constant", {"favours": 20.0}), ("knows no blue", {"colours": 2})):
        result = compared(folder, first, classifier(folder / "b.onnx", **other))
        assert result.exit_code == 1, name
        assert "**classes, counted alike, below 0.95**" in result.output, name
        assert " | 0.976 | " in result.output, name


@pytest.mark.lab
def test_frames_that_are_all_called_the_same_prove_nothing(folder: Path) -> None:
    for number in range(18, 24):
        (folder / f"{number}.png").unlink()
    first = classifier(folder / "a.onnx")
    result = compared(folder, first, classifier(folder / "b.onnx"), "--least-frames", "18")
    assert result.exit_code == 1
    assert "**fewer than two classes in 5 frames or more**" in result.output


@pytest.mark.lab
@pytest.mark.parametrize(("end", "message"), [("Sigmoid", "none"), ("Identity", "sigmoid")])
def test_scores_of_all_classes_are_compared_as_they_are_meant(folder: Path, end: str, message: str) -> None:
    first, other = classifier(folder / "a.onnx", end=end), classifier(folder / "b.onnx", end=end, factor=2)
    result = compared(folder, first, other)
    assert result.exit_code == 1
    if end == "Sigmoid":
        assert "**scores from 0 to 1 that do not add up to 1: add --activation**" in result.output
    saved = folder / "saved.json"
    result = compared(folder, first, other, "--activation", message, "--json", str(saved))
    assert "**scores below 0.95**" in result.output
    red = [1 / (1 + np.exp(-factor * 250 / 255)) for factor in (8, 2)]
    [_, found] = json.loads(saved.read_text())["models"]
    assert found["scores"] == pytest.approx(1 - (red[0] - red[1]), abs=1e-3)


@pytest.mark.processes
def test_one_of_several_outputs_is_named(folder: Path) -> None:
    first, other = (classifier(folder / f"{name}.onnx", also="sums_beside") for name in "ab")
    result = compared(folder, first, other)
    assert result.exit_code == 2
    assert "--outputs" in result.stderr
    result = compared(folder, first, other, "--outputs", "scores")
    assert result.exit_code == 0, result.output
    result = compared(folder, first, other, "--outputs", f"{first}=scores", "--outputs", f"{other}=nothing")
    assert result.exit_code == 2
    assert "it has no output `nothing`; its outputs are" in result.stderr


def test_a_classifier_beside_who_finds_people_is_a_mistake(folder: Path, turned_model: Path) -> None:
    result = compared(folder, classifier(folder / "a.onnx"), turned_model, "--format", f"{turned_model}=yolo_pose")
    assert result.exit_code == 2
    assert "a.onnx is a classifier, and finds nobody in a frame, as " in result.stderr


@pytest.mark.processes
def test_what_is_for_people_is_no_option_for_classifiers(folder: Path) -> None:
    first, other = classifier(folder / "a.onnx"), classifier(folder / "b.onnx")
    result = compared(folder, first, other, "--classes", "red")
    assert result.exit_code == 2
    assert "a.onnx is a classifier, and is asked for all of its classes; expected no --classes" in result.stderr
    assert compared(folder, first, other, "--classes", "all").exit_code == 0
    for name in ("images", "labels"):
        (folder / "yolo" / name / "val").mkdir(parents=True)
    cv2.imwrite(str(folder / "yolo" / "images" / "val" / "a.png"), np.zeros((32, 32, 3), np.uint8))
    (folder / "yolo" / "labels" / "val" / "a.txt").write_text("0 0.5 0.5 0.5 0.5" + " 0.5 0.5 2" * 17 + "\n")
    result = compared(folder, first, other, "--labels", str(folder / "yolo"))
    assert result.exit_code == 2, result.output
    assert "a.onnx is a classifier, and labels are of people's keypoints" in result.stderr
