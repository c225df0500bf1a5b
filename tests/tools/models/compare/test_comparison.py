"""What is said of compared models, and which of them are blessed."""

from __future__ import annotations

import json
import re
import sys
from array import array
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import onnx
import pytest
from camgraph_test_stages.commands import model_command
from onnx import TensorProto, helper, numpy_helper

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.tools.models.compare import comparison, memory
from camgraph.tools.models.compare.accuracy import first_pictures, read_labels
from camgraph.tools.models.compare.agreement import Agreement
from camgraph.tools.models.compare.comparison import Compared, Labelled
from camgraph.tools.models.compare.memory import peak_bytes
from camgraph.tools.models.compare.report import as_json, table
from camgraph.tools.models.compare.verdict import Limits, compared_parts, is_blessed, lost_ap, objection
from camgraph.tools.models.high_water import high_water_bytes
from camgraph.tools.models.pose_truth import Precision

YOLOX = "models/yolox_nano_bigisland.onnx"


ENOUGH = Labelled(100, 200)


def compared(
    tmp_path: Path, ap: float | None = None, keypoints: int = 17, labelled: Labelled = ENOUGH, **agreement: Any
) -> Compared:
    """A model that finds 10 people as the first does, unless ``agreement`` says otherwise."""
    model = tmp_path / "m.onnx"
    model.write_bytes(onnx.ModelProto(doc_string="0" * 1_500_000).SerializeToString())
    usual: dict[str, Any] = {"frames": 500, "first": 10, "other": 10, "both": 10, "same_class": 10, "oks": [1.0]}
    if keypoints:
        usual |= {"sure_first": 100, "sure_other": 100, "sure_both": 100}
    precision = None if ap is None else Precision(ap, ap, ap, ap)
    found = Agreement(**{**usual, **agreement})
    rates: Any = [4.0, 2.0, 3.0], 12.5
    return Compared(model, 200_000_000, found, keypoints, 0, precision, *rates, ("person", "car"), labelled)


def test_a_model_may_lose_no_more_than_the_limits(tmp_path: Path) -> None:
    first, limits = compared(tmp_path, 0.60), Limits(least=0.95, most_lost=0.02)
    assert is_blessed(compared(tmp_path, 0.59), first, limits)
    assert is_blessed(compared(tmp_path, 0.70), first, limits)
    assert not is_blessed(compared(tmp_path, 0.57), first, limits)
    assert not is_blessed(compared(tmp_path, 0.60, both=8), first, limits)
    assert not is_blessed(compared(tmp_path, 0.60, oks=[0.9]), first, limits)
    assert not is_blessed(compared(tmp_path, 0.60, sure_both=90), first, limits)
    assert objection(compared(tmp_path, 0.60, same_class=9), first, limits) == "classes below 0.95"
    assert objection(compared(tmp_path, 0.60, scores_apart=0.6), first, limits) == "scores below 0.95"
    assert is_blessed(compared(tmp_path, 0.60, scores_apart=0.4), first, limits)
    assert lost_ap(compared(tmp_path, 0.5), first) == pytest.approx(0.1)


def test_what_was_not_seen_is_no_proof(tmp_path: Path) -> None:
    first, limits = compared(tmp_path), Limits()
    none = {"sure_first": 0, "sure_other": 0, "sure_both": 0, "oks": []}
    dropping = compared(tmp_path)
    dropping.dropped = 1
    cases = [
        (compared(tmp_path), None),
        (compared(tmp_path, keypoints=0), "no keypoints, not 17"),
        (compared(tmp_path, keypoints=5), "5 keypoints, not 17"),
        (compared(tmp_path, first=0, other=0, both=0, **none), "nobody in these frames"),
        (compared(tmp_path, both=0, **none), "nobody in both"),
        (compared(tmp_path, **none), "no sure joints to compare"),
        (compared(tmp_path, sure_other=0, sure_both=0), "confidences below 0.95"),
        (compared(tmp_path, frames=499), "too few frames to say: 499 of 500"),
        (dropping, "1 frame dropped"),
    ]
    assert [objection(one, first, limits) for one, _ in cases] == [expected for _, expected in cases]
    assert is_blessed(compared(tmp_path, frames=100), first, Limits(least_frames=100))


def test_a_first_model_that_says_nothing_blesses_nobody(tmp_path: Path) -> None:
    first = Compared(tmp_path / "m.onnx", dropped=500)
    assert objection(compared(tmp_path, frames=0), first, Limits()) == "the first dropped all frames"


def test_detectors_compare_boxes_scores_and_classes(tmp_path: Path) -> None:
    first = compared(tmp_path, keypoints=0, oks=[])
    other = compared(tmp_path, keypoints=0, oks=[])
    assert is_blessed(other, first, Limits())
    assert compared_parts(other) == ("boxes", "scores", "classes")
    assert compared_parts(compared(tmp_path, 0.6)) == ("boxes", "scores", "classes", "keypoints", "AP")
    assert objection(compared(tmp_path, keypoints=0, oks=[], same_class=5), first, Limits()) == "classes below 0.95"
    assert objection(compared(tmp_path), first, Limits()) == "17 keypoints, not none"


def test_precision_of_one_alone_is_no_comparison(tmp_path: Path) -> None:
    known, unknown = compared(tmp_path, 0.6, frames=4), compared(tmp_path, frames=4)
    assert lost_ap(unknown, known) == lost_ap(known, unknown) == inf
    assert objection(unknown, known, Limits()) == "no AP to compare"
    assert lost_ap(unknown, unknown) == 0
    assert objection(unknown, unknown, Limits()) == "too few frames to say: 4 of 500"
    assert objection(known, known, Limits()) is None, "labels say more than many frames"


def test_few_labels_are_no_proof(tmp_path: Path) -> None:
    first = compared(tmp_path, 0.650)
    few = [compared(tmp_path, 0.638, labelled=labelled, frames=4) for labelled in (Labelled(4, 12), Labelled(100, 199))]
    assert [objection(one, first, Limits()) for one in few] == [
        "too few labels to say: 4 pictures of 100, 12 people of 200",
        "too few labels to say: 100 pictures of 100, 199 people of 200",
    ]
    assert is_blessed(few[0], first, Limits(least_pictures=4, least_people=12))
    assert is_blessed(few[0], first, Limits(least_frames=4)), "enough frames say as much as without labels"
    assert objection(compared(tmp_path, 0.6, labelled=Labelled(4, 12), frames=4), first, Limits()) == "AP 0.050 less"


def test_the_table_says_what_was_lost(tmp_path: Path) -> None:
    first = compared(tmp_path, 0.60)
    apart = {"apart_px": array("d", [1.0, 3.0, 3.0]), "apart_of_size": array("d", [0.01, 0.03, 0.03])}
    other = compared(tmp_path, 0.6, both=8, **apart)
    rows = list(table([first, compared(tmp_path, 0.55), other], Limits()))
    figures = "1.00 x | 12.5 | 10 | 1.000 | 1.000 | 1.000 | 1.000 | 1.000 | - | - | 1.000 | 0.600"
    assert rows[2] == f"| m.onnx | 1.5 | 200 | 3.0 | {figures} | the first |"
    assert rows[3].endswith("| 0.550 | **AP 0.050 less** |")
    assert rows[4].endswith("| 1.250 | 1.000 | 3.0, 3.0 | 3.0, 3.0 | 1.000 | 0.600 | **people below 0.95** |")
    saved = json.loads(as_json([first, other], Limits()))["models"]
    assert saved[0]["joints_apart_px"] is saved[0]["joints_apart_of_size"] is None
    assert saved[1]["joints_apart_px"] == {"median": 3.0, "p95": 3.0}
    assert saved[1]["joints_apart_of_size"] == {"median": 0.03, "p95": 0.03}
    good = compared(tmp_path, kinds={1, -1})
    rows = list(table([good, compared(tmp_path)], Limits()))
    assert rows[3].endswith("| good: boxes, scores, classes, keypoints |")
    assert rows[-1].endswith(" Classes that were seen: car.")
    assert "AP" not in next(iter(table([compared(tmp_path)], Limits())))


def test_what_was_not_measured_is_no_figure(tmp_path: Path) -> None:
    model = tmp_path / "m.onnx"
    model.write_bytes(onnx.ModelProto(doc_string="0" * 1_500_000).SerializeToString())
    nothing = Compared(model, 1_000_000, dropped=3)
    rows = list(table([nothing, nothing], Limits()))
    assert rows[2] == "| m.onnx | 1.5 | 1 | - | - | - | 0 | - | - | - | - | - | - | - | - | 3 | the first |"
    assert "| dropped | verdict |" in rows[0]


def test_weights_beside_a_model_count_as_its_size(tmp_path: Path) -> None:
    path = pose(tmp_path / "m.onnx")
    model = onnx.load(str(path))
    onnx.save(model, path, save_as_external_data=True, location="weights", size_threshold=1000)
    (tmp_path / "weights").write_bytes((tmp_path / "weights").read_bytes() + bytes(2_000_000))
    one = Compared(path)
    assert list(table([one, one], Limits()))[2].startswith("| m.onnx | 2.0 |")
    whole = path.stat().st_size + (tmp_path / "weights").stat().st_size
    assert json.loads(as_json([one], Limits()))["models"][0]["file_bytes"] == whole
    result = model_command("inspect", path)
    assert result.exit_code == 0, result.output
    assert "m.onnx  2.0 MB" in result.output


Change = Callable[[np.ndarray], object]


def pose(path: Path, change: Change = lambda heads: None, *, dark_is_nan: bool = False) -> Path:
    """(n, 3, 64, 64) -> (n, 56, 84): one person, whatever is in the picture, and NaN in it for black ones if asked."""
    heads = np.zeros((1, 56, 84), np.float32)
    heads[0, :5, 0] = 32, 32, 20, 40, 0.9
    heads[0, 5::3, 0], heads[0, 6::3, 0], heads[0, 7::3, 0] = 32, 32, 0.9
    change(heads)
    nodes = [
        helper.make_node("ReduceMean", ["images"], ["mean"], axes=[1, 2, 3], keepdims=1),
        helper.make_node("Squeeze", ["mean", "axis"], ["light"]),
        helper.make_node("Div", ["light", "light"] if dark_is_nan else ["light", "one"], ["share"]),
        helper.make_node("Mul", ["share", "nothing"], ["zero"]),
        helper.make_node("Add", ["zero", "heads"], ["out"]),
    ]
    constants = {"axis": np.array([3]), "one": np.float32(1), "nothing": np.float32(0), "heads": heads}
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "g",
        [value("images", TensorProto.FLOAT, ["n", 3, 64, 64])],
        [value("out", TensorProto.FLOAT, ["n", 56, 84])],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def endless(path: Path) -> Path:
    """The same in a loop without an end."""
    model = onnx.load(str(pose(path)))
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Identity", ["on"], ["go_on"]), helper.make_node("Identity", ["x"], ["y"])], "body",
        [value("i", TensorProto.INT64, []), value("on", TensorProto.BOOL, []), value("x", TensorProto.FLOAT, None)],
        [value("go_on", TensorProto.BOOL, []), value("y", TensorProto.FLOAT, None)],
    )  # fmt: skip
    model.graph.node[-1].output[0] = "heads_of_picture"
    model.graph.initializer.append(numpy_helper.from_array(np.array(True), "true"))
    model.graph.node.append(helper.make_node("Loop", ["", "true", "heads_of_picture"], ["out"], body=body))
    onnx.save(model, path)
    return path


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither memory nor speed: both are measured elsewhere, and take seconds for each model."""
    monkeypatch.setattr(comparison, "peak_bytes", lambda model, **settings: 1_000_000)
    monkeypatch.setattr(comparison, "_ROUND_S", 0.01)


@pytest.mark.usefixtures("quick")
@pytest.mark.processes
def test_frames_that_one_model_drops_stand_in_its_column(tmp_path: Path) -> None:
    good, bad = pose(tmp_path / "good.onnx"), pose(tmp_path / "bad.onnx", dark_is_nan=True)
    (tmp_path / "pictures").mkdir()
    for number, light in enumerate((0, 90, 0, 200)):
        cv2.imwrite(str(tmp_path / f"pictures/{number}.png"), np.full((64, 64, 3), light, np.uint8))
    result = model_command("compare", good, bad, good, "--frames", tmp_path / "pictures", "--least-frames", 4)
    assert result.exit_code == 1, result.output
    _, _, first, dropping, again, *_ = [line.split(" | ") for line in result.output.splitlines()]
    assert (first[-2], first[6]) == ("0", "4")
    assert (dropping[-2], dropping[6], dropping[7]) == ("2", "2", "0.500")
    assert dropping[-1] == "**2 frames dropped** |"
    assert again[-1] == "good: boxes, scores, classes, keypoints |"
    turned = model_command("compare", bad, good, "--frames", tmp_path / "pictures")
    assert "2 frames." in turned.output, "nobody knows who should be found where the first drops a frame"
    assert "**too few frames to say: 2 of 500** |" in turned.output


@pytest.mark.usefixtures("quick")
def test_a_model_whose_confidences_are_gone_is_not_blessed(tmp_path: Path) -> None:
    def unsure(heads: np.ndarray) -> None:
        heads[0, 7::3] = 0

    good, bad = pose(tmp_path / "good.onnx"), pose(tmp_path / "bad.onnx", unsure)
    picture = tmp_path / "p.png"
    cv2.imwrite(str(picture), np.zeros((64, 64, 3), np.uint8))
    result = model_command("compare", good, bad, "--frames", picture, "--least-frames", 1)
    assert result.exit_code == 1, result.output
    assert "| 1.000 | 1.000 | 0.0, 0.0 | 0.0, 0.0 | 0.000 | **confidences below 0.95** |" in result.output
    assert " | - | - | " in result.output, "one frame alone is warm-up"


def detector(path: Path, kind: int, **metadata: str) -> Path:
    """Two classes, with one thing of this one in each picture."""

    def thing(heads: np.ndarray) -> None:
        heads[0, 4:] = 0
        heads[0, 4 + kind, 0] = 0.9

    model = onnx.load(str(pose(path, thing)))
    [heads] = [entry for entry in model.graph.initializer if entry.name == "heads"]
    heads.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(heads)[:, :6], "heads"))
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 6
    helper.set_model_props(model, {"task": "detect", "names": "{0: 'helmet', 1: 'vest'}", **metadata})
    onnx.save(model, path)
    return path


@pytest.mark.usefixtures("quick")
def test_a_detector_that_calls_things_otherwise_has_lost(tmp_path: Path) -> None:
    first, same = detector(tmp_path / "first.onnx", 0), detector(tmp_path / "same.onnx", 0)
    turned = detector(tmp_path / "turned.onnx", 1, names="{0: 'vest', 1: 'helmet'}")
    other = detector(tmp_path / "other.onnx", 1)
    picture = tmp_path / "p.png"
    cv2.imwrite(str(picture), np.zeros((64, 64, 3), np.uint8))
    saved = tmp_path / "found.json"
    result = model_command(
        "compare", first, same, turned, other, "--frames", picture, "--least-frames", 1, "--json", saved
    )
    assert result.exit_code == 1, result.output
    record = json.loads(saved.read_text())
    assert (record["frames"], record["classes_seen"]) == (1, ["helmet"])
    figures = [(one["good"], one["against"], one["compared"]) for one in record["models"]]
    parts = ["boxes", "scores", "classes"]
    good, bad = (True, None, parts), (False, "classes below 0.95", parts)
    assert figures == [(None, None, parts), good, good, bad]
    assert [one["oks"] for one in record["models"]] == [None] * 4
    _, _, _, *verdicts = [line.split(" | ")[-1] for line in result.output.splitlines()[:6]]
    assert verdicts == ["good: boxes, scores, classes |", "good: boxes, scores, classes |", "**classes below 0.95** |"]
    assert "Classes that were seen: helmet." in result.output
    vests = model_command("compare", first, same, "--frames", picture, "--least-frames", 1, "--classes", "vest")
    assert vests.exit_code == 1, vests.output
    assert "**nobody in these frames** |" in vests.output
    assert "Classes that were seen: none." in vests.output
    unknown = model_command("compare", first, same, "--frames", picture, "--classes", "vest,shoe")
    assert unknown.exit_code == 2
    assert "the model knows no class shoe; it knows helmet, vest" in unknown.output


@pytest.mark.processes
def test_memory_is_that_of_a_process_of_its_own(test_data: Path) -> None:
    held = np.ones(300_000_000, np.uint8)
    assert high_water_bytes() > held.nbytes
    assert 30e6 < peak_bytes(test_data / YOLOX) < held.nbytes


@pytest.mark.processes
def test_a_model_that_does_not_open_has_no_memory(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"absent\.onnx: cannot be read: No such file"):
        peak_bytes(tmp_path / "absent.onnx")


@pytest.mark.processes
def test_a_model_that_never_answers_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that measures memory meets it first, and is ended."""
    monkeypatch.setattr(memory, "LIMIT_S", 5.0)
    model, picture = endless(tmp_path / "endless.onnx"), tmp_path / "black.png"
    cv2.imwrite(str(picture), np.zeros((64, 64, 3), np.uint8))
    result = model_command("compare", model, model, "--frames", picture)
    assert result.exit_code == 3
    assert re.search(r"endless\.onnx: it was not opened and run within 5 s", result.output)


def labelled(path: Path, names: dict[int, str], **more: object) -> Path:
    """COCO's file, with a person on each picture."""
    person = {
        "category_id": 1,
        "iscrowd": 0,
        "bbox": [0, 0, 9, 9],
        "area": 81,
        "num_keypoints": 17,
        "keypoints": [1] * 51,
    }
    annotations = [{"id": number, "image_id": number, **person} for number in names]
    images = [{"id": number, "file_name": name, "width": 9, "height": 9} for number, name in names.items()]
    path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": [{"id": 1}], **more}))
    return path


def test_labels_of_the_first_pictures_are_read(tmp_path: Path) -> None:
    labels = labelled(tmp_path / "labels.json", {7: "a.jpg", 8: "b.jpg", 9: "c.jpg"})
    for name in "abc":
        (tmp_path / f"{name}.jpg").write_bytes(b"")
    truth = read_labels(labels, None, 2)
    assert list(truth.paths) == [7, 8]
    assert truth.people == 2
    assert [image["id"] for image in first_pictures(truth, 1).coco["images"]] == [7]


LABELS = {
    "absent.json": "absent.json: there is no such file; expected a file of COCO's keypoints",
    "text.json": "text.json: cannot be read (JSONDecodeError",
    "list.json": "list.json: cannot be read (TypeError",
    "hands.json": "hands.json: people of other than 17 keypoints",
    "nobody.json": "nobody.json: no picture in it shows anybody with known keypoints",
    "far.json": "far.jpg is not there (1 of 1 are missing); name the folder that has them: --pictures",
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_that_are_none(tmp_path: Path, name: str) -> None:
    (tmp_path / "text.json").write_text("no labels")
    (tmp_path / "list.json").write_text("[]")
    labelled(tmp_path / "far.json", {1: "far.jpg"})
    labelled(tmp_path / "nobody.json", {})
    labelled(tmp_path / "hands.json", {}, annotations=[{"image_id": 1, "keypoints": [1] * 63}])
    with pytest.raises(UserError) as caught:
        read_labels(tmp_path / name, None, 10)
    assert LABELS[name] in str(caught.value)


def test_without_pycocotools_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pycocotools", None)
    with pytest.raises(EnvironmentProblem, match=r"--labels needs pycocotools.* pip install pycocotools"):
        read_labels(labelled(tmp_path / "labels.json", {}), None, 10)


def test_what_the_command_needs() -> None:
    result = model_command("compare", "a.onnx", "b.onnx")
    assert result.exit_code == 2
    assert "expected --frames with frames of your cameras, or --labels" in result.output


def with_lower_scores(model: Path, out: Path, by: float) -> Path:
    """A YOLO-pose whose scores are lower, so that fewer candidates are people."""
    made = onnx.load(str(model))
    [heads] = made.graph.output
    lower = np.zeros((1, 56, 1), np.float32)
    lower[0, 4] = by
    made.graph.initializer.append(numpy_helper.from_array(lower, "lower"))
    made.graph.node.append(helper.make_node("Sub", [heads.name, "lower"], ["lowered"]))
    heads.name = "lowered"
    onnx.save(made, out)
    return out


@pytest.mark.lab
@pytest.mark.slow
def test_precision_against_known_people(test_data: Path, tmp_path: Path) -> None:
    """A model that finds those alone of whom it is very sure agrees too little, and is less right."""
    model, labels = test_data / "models/yolov8n-pose_float.onnx", test_data / "images/coco/test_coco.json"
    sure = with_lower_scores(model, tmp_path / "sure.onnx", by=0.75)
    result = model_command("compare", model, sure, "--labels", labels, "--least", 0, "--most-lost", 0.005)
    assert result.exit_code == 1, result.output
    assert "| AP | verdict |" in result.output
    assert "less** |" in result.output
    assert "4 frames." in result.output
