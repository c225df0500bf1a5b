"""A selection of candidates in a model's graph: the same people, of a fraction of the bytes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import TensorProto, helper

from camgraph.stages.people.inference.contracts import InputSettings, read_contract
from camgraph.stages.people.inference.engines.onnxruntime_engine import open_with
from camgraph.stages.people.inference.model.candidate_selection import (
    CannotSelect,
    Selection,
    fold_selection,
    selection_of,
)
from camgraph.stages.people.inference.signatures import signature_of_file
from camgraph.stages.vision.decoding.detections import Detections
from camgraph.stages.vision.decoding.formats import Asked, detections_of
from camgraph.stages.vision.model_contract import Converter
from camgraph.stages.vision.recognition import Format, Port, Reading, Signature, recognise
from camgraph.tools.models.chain import Chain
from camgraph.tools.models.frames import frames_of

ANCHORS, MOST = 200, 40
SIZE = (640, 640)
F32 = NDArray[np.float32]


def reading(kind: Format, classes: int, points: int, values: int = 3) -> Reading:
    names = tuple(f"class{number}" for number in range(classes))
    return Reading(kind, "as the test says", ("output0",), names, points, values)


def selection(of: Reading, *, turned: bool = False, anchors: int = ANCHORS, most: int = MOST) -> Selection:
    rows = 4 + (of.format == "yolo_objectness") + len(of.classes) + of.keypoints * of.point_values
    shape = ("n", anchors, rows) if turned else ("n", rows, anchors)
    return selection_of(Signature((), (Port("output0", shape, "tensor(float)"),)), of, most)


def selected(chosen: Selection, heads: F32, opset: int = 17) -> F32:
    """The heads, from a model that gives them as it gets them, with the selection in its graph."""
    port = helper.make_tensor_value_info
    shape = ["n", *heads.shape[1:]]
    node = helper.make_node("Identity", ["given"], ["output0"])
    ports = [port(name, TensorProto.FLOAT, shape) for name in ("given", "output0")]
    graph = helper.make_graph([node], "g", ports[:1], ports[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    fold_selection(model, chosen)
    onnx.checker.check_model(model, full_check=True)
    engine = open_with({"cpu": {}}, model.SerializeToString(), threads=1)
    return np.asarray(engine.run({"given": heads})["output0"])


def heads_of(of: Reading, seed: int, likely: int, pictures: int = 2) -> F32:
    """(pictures, rows, ANCHORS): ``likely`` candidates of each that may score more than 0.3, many of them the same."""
    rng = np.random.default_rng(seed)
    scores = 4 + (of.format == "yolo_objectness")
    heads = rng.uniform(0, 640, (pictures, scores + len(of.classes) + of.keypoints * of.point_values, ANCHORS))
    heads[:, 2:4] = rng.uniform(20, 200, heads[:, 2:4].shape)
    heads[:, scores : scores + len(of.classes)] = rng.uniform(
        0, 0.29, heads[:, scores : scores + len(of.classes)].shape
    )
    for picture in heads:
        sure = rng.permutation(ANCHORS)[:likely]
        found = rng.integers(0, 20, (len(of.classes), likely)) / 20
        picture[scores : scores + len(of.classes), sure] = found
    if of.format == "yolo_objectness":
        heads[:, 4] = rng.integers(0, 20, heads[:, 4].shape) / 20
    return heads.astype(np.float32)


def people(of: Reading, heads: F32, most: int = 100) -> Detections:
    asked = Asked(len(of.classes), None, of.keypoints, of.point_values, most=most)
    return detections_of(of.format, [heads], SIZE, asked)


def assert_same(got: Detections, expected: Detections) -> None:
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_array_equal(one, other)


KINDS_OF_1000 = reading("yolo", 996, 0)
"""Each candidate has as many values as candidates are asked for."""
KINDS = [
    (reading("yolo_pose", 1, 17), False),
    (reading("yolo_pose", 1, 17), True),
    (reading("yolo_pose", 3, 5, 2), False),
    (reading("yolo", 80, 0), False),
    (reading("yolo", 2, 0), True),
    (reading("yolo_objectness", 4, 0), True),
    (reading("yolo_objectness", 1, 17), True),
]


@pytest.mark.parametrize("opset", [11, 13, 17, 18, 21])
@pytest.mark.parametrize(("of", "turned"), KINDS)
def test_the_same_people(of: Reading, turned: bool, opset: int) -> None:
    heads = heads_of(of, 7, MOST)
    lying = np.ascontiguousarray(heads.transpose(0, 2, 1)) if turned else heads
    chosen = selection(of, turned=turned)
    got = selected(chosen, lying, opset)
    assert got.shape[chosen.axis] == MOST
    for picture, all_of_it in zip(got, lying, strict=True):
        expected = people(of, all_of_it)
        assert len(expected.scores) > 3
        assert_same(people(of, picture), expected)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, ANCHORS))
def test_if_there_are_too_many_it_is_said_and_the_best_stay(seed: int, likely: int) -> None:
    of = KINDS[0][0]
    heads, chosen = heads_of(of, seed, likely), selection(of)
    got = selected(chosen, heads)
    enough = (heads[:, 4] >= np.float32(0.3)).sum(axis=1)
    assert chosen.full(got, 0.3) == (enough >= MOST).sum()
    for picture, all_of_it, count in zip(got, heads, enough, strict=True):
        found, expected = people(of, picture), people(of, all_of_it)
        if count <= MOST:
            assert_same(found, expected)
        assert_same(found, expected.take(np.arange(len(found.scores))))


def test_picture_is_full_if_last_candidate_scores_enough() -> None:
    chosen = selection(KINDS[0][0])
    last = np.zeros((3, 56, MOST), np.float32)
    last[:, 4, -1] = 0.3, np.nextafter(np.float32(0.3), np.float32(0)), 0.9
    assert chosen.full(last, 0.3) == 2


def test_an_objectness_counts_for_what_is_full() -> None:
    chosen = selection(KINDS[5][0], turned=True)
    last = np.zeros((3, MOST, 9), np.float32)
    last[:, -1, 4] = 0.5, 1, 0.5
    last[:, -1, 6] = 0.5, 0.5, 0.6
    assert chosen.full(last, 0.3) == 2


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_no_number_is_not_hidden(wrong: float) -> None:
    """Wherever it is: the candidate may not be among the selected ones."""
    of = KINDS[0][0]
    heads = heads_of(of, 3, 10, pictures=3)
    heads[1, 20, int(heads[1, 4].argmin())] = wrong
    finite = np.isfinite(selected(selection(of), heads)).all(axis=(1, 2))
    assert finite.tolist() == [True, False, True]


def test_what_cannot_be_selected_says_why() -> None:
    pose = KINDS[0][0]

    def why(shape: tuple[Any, ...], of: Reading | None = pose, kind: str = "tensor(float)") -> str:
        with pytest.raises(CannotSelect) as refusal:
            selection_of(Signature((), (Port("output0", shape, kind),)), of, 1000)
        return str(refusal.value)

    assert why(("n", 56, 8400), None).startswith("its format is not known, not one of ('yolo_pose', 'yolo', ")
    assert why(("n", 3549, 85), replace(pose, format="yolox")).startswith("its format is yolox")
    assert why(("n", 56, 8400), kind="tensor(float16)") == "its candidates are tensor(float16), expected tensor(float)"
    assert why(("n", 56, "cells")).endswith("their number is only known when it runs")
    assert why(("n", 8400, 1000), KINDS_OF_1000).startswith("1000 are wanted, as many as each has values: set another")
    assert selection_of(Signature((), (Port("output0", ("n", 1000, 8400), "tensor(float)"),)), KINDS_OF_1000, 1000)
    assert why(("n", 56, 1000)) == "it has 1000 candidates, no more than the 1000 that are wanted"


def test_an_output_that_no_node_makes_cannot_be_selected() -> None:
    """It is a constant of the model."""
    stored = helper.make_tensor("output0", TensorProto.FLOAT, [1, 56, ANCHORS], np.zeros(56 * ANCHORS, np.float32))
    port = helper.make_tensor_value_info("output0", TensorProto.FLOAT, [1, 56, ANCHORS])
    graph = helper.make_graph([], "g", [], [port], [stored])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with pytest.raises(CannotSelect, match="are made by no node of its graph"):
        fold_selection(model, selection(KINDS[0][0]))


def test_an_old_opset_is_refused() -> None:
    of = KINDS[0][0]
    with pytest.raises(CannotSelect, match="its opset is 10, expected 11 or later"):
        selected(selection(of), heads_of(of, 1, 1), 10)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["yolo11n-pose_640", "yolov8n-pose_float"])
def test_the_same_people_of_real_models(test_data: Path, name: str) -> None:
    path = test_data / "models" / f"{name}.onnx"
    signature = signature_of_file(path)
    of = recognise(signature)
    chosen = selection_of(signature, of, 1000)
    model = onnx.load(path)
    fold_selection(model, chosen)
    engines = [open_with({"cpu": {}}, source, threads=2) for source in (path, model.SerializeToString())]
    contract = read_contract(signature, name, InputSettings())
    seen = 0
    with Chain(path) as chain:
        for frame in frames_of([str(test_data / "videos" / "opencv4nodejs_people.mp4")], 4):
            picture = chain.prepared(frame).arrays_by_name["image"]
            inputs = {contract.name: Converter(contract).batch([picture])}
            whole, part = (np.asarray(engine.run(inputs)[chosen.output]) for engine in engines)
            assert part.nbytes * 8 < whole.nbytes
            assert chosen.full(part, 0.3) == 0
            found = people(of, whole[0])
            assert_same(people(of, part[0]), found)
            seen += len(found.scores)
    assert seen > 10
