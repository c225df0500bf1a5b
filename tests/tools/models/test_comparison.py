"""What is said of compared models, and which of them are blessed."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from onnx import TensorProto, helper, numpy_helper

from pipeline.errors import EnvironmentProblem, UserError
from tools.cli import main
from tools.models import comparison, memory, throughput
from tools.models.accuracy import first_pictures, read_labels
from tools.models.agreement import Agreement
from tools.models.comparison import Compared
from tools.models.comparison_table import table
from tools.models.memory import high_water_bytes, peak_bytes
from tools.models.verdict import Limits, is_blessed, lost_ap, objection
from tools.pose_accuracy.truth import Precision

YOLOX = "models/yolox_nano_bigisland.onnx"


def camgraph(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["model", *map(str, arguments)])


def compared(tmp_path: Path, ap: float | None = None, keypoints: int = 17, **agreement: Any) -> Compared:
    """A model that finds 10 people as the first does, unless ``agreement`` says otherwise."""
    model = tmp_path / "m.onnx"
    model.write_bytes(b"0" * 1_500_000)
    usual: dict[str, Any] = {"frames": 500, "first": 10, "other": 10, "both": 10, "oks": [1.0]}
    if keypoints:
        usual |= {"sure_first": 100, "sure_other": 100, "sure_both": 100}
    precision = None if ap is None else Precision(ap, ap, ap, ap)
    return Compared(
        model, 200_000_000, Agreement(**{**usual, **agreement}), keypoints, 0, precision, [4.0, 2.0, 3.0], 12.5
    )


def test_a_model_may_lose_no_more_than_the_limits(tmp_path: Path) -> None:
    first, limits = compared(tmp_path, 0.60), Limits(least=0.95, most_lost=0.02)
    assert is_blessed(compared(tmp_path, 0.59), first, limits)
    assert is_blessed(compared(tmp_path, 0.70), first, limits)
    assert not is_blessed(compared(tmp_path, 0.57), first, limits)
    assert not is_blessed(compared(tmp_path, 0.60, both=8), first, limits)
    assert not is_blessed(compared(tmp_path, 0.60, oks=[0.9]), first, limits)
    assert not is_blessed(compared(tmp_path, 0.60, sure_both=90), first, limits)
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


def test_detectors_are_compared_by_their_boxes(tmp_path: Path) -> None:
    first = compared(tmp_path, keypoints=0, oks=[])
    assert is_blessed(compared(tmp_path, keypoints=0, oks=[]), first, Limits())
    assert objection(compared(tmp_path), first, Limits()) == "17 keypoints, not none"


def test_precision_of_one_alone_is_no_comparison(tmp_path: Path) -> None:
    known, unknown = compared(tmp_path, 0.6, frames=4), compared(tmp_path, frames=4)
    assert lost_ap(unknown, known) == lost_ap(known, unknown) == inf
    assert objection(unknown, known, Limits()) == "no AP to compare"
    assert lost_ap(unknown, unknown) == 0
    assert objection(unknown, unknown, Limits()) == "too few frames to say: 4 of 500"
    assert objection(known, known, Limits()) is None, "labels say more than many frames"


def test_the_table_says_what_was_lost(tmp_path: Path) -> None:
    first = compared(tmp_path, 0.60)
    rows = list(table([first, compared(tmp_path, 0.55), compared(tmp_path, 0.6, both=8)], Limits()))
    figures = "1.00 x | 12.5 | 10 | 1.000 | 1.000 | 1.000 | 1.000 | 0.600"
    assert rows[2] == f"| m.onnx | 1.5 | 200 | 3.0 | {figures} | the first |"
    assert rows[3].endswith("| 0.550 | **AP 0.050 less** |")
    assert rows[4].endswith("| 0.800 | 1.000 | 1.000 | 0.600 | **people below 0.95** |")
    assert "AP" not in next(iter(table([compared(tmp_path)], Limits())))


def test_what_was_not_measured_is_no_figure(tmp_path: Path) -> None:
    model = tmp_path / "m.onnx"
    model.write_bytes(b"0" * 1_500_000)
    nothing = Compared(model, 1_000_000, dropped=3)
    rows = list(table([nothing, nothing], Limits()))
    assert rows[2] == "| m.onnx | 1.5 | 1 | - | - | - | 0 | - | - | - | - | 3 | the first |"
    assert "| dropped | verdict |" in rows[0]


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
    monkeypatch.setattr(throughput, "_ROUND_S", 0.01)


@pytest.mark.usefixtures("quick")
def test_frames_that_one_model_drops_stand_in_its_column(tmp_path: Path) -> None:
    good, bad = pose(tmp_path / "good.onnx"), pose(tmp_path / "bad.onnx", dark_is_nan=True)
    (tmp_path / "pictures").mkdir()
    for number, light in enumerate((0, 90, 0, 200)):
        cv2.imwrite(str(tmp_path / f"pictures/{number}.png"), np.full((64, 64, 3), light, np.uint8))
    told = camgraph("compare", good, bad, good, "--frames", tmp_path / "pictures", "--least-frames", 4)
    assert told.exit_code == 1, told.output
    _, _, first, dropping, again, *_ = [line.split(" | ") for line in told.output.splitlines()]
    assert (first[-2], first[6]) == ("0", "4")
    assert (dropping[-2], dropping[6], dropping[7]) == ("2", "2", "0.500")
    assert dropping[-1] == "**2 frames dropped** |"
    assert again[-1] == "good |"
    turned = camgraph("compare", bad, good, "--frames", tmp_path / "pictures")
    assert "2 frames." in turned.output, "nobody knows who should be found where the first drops a frame"
    assert "**too few frames to say: 2 of 500** |" in turned.output


@pytest.mark.usefixtures("quick")
def test_a_model_whose_confidences_are_gone_is_not_blessed(tmp_path: Path) -> None:
    def unsure(heads: np.ndarray) -> None:
        heads[0, 7::3] = 0

    good, bad = pose(tmp_path / "good.onnx"), pose(tmp_path / "bad.onnx", unsure)
    picture = tmp_path / "p.png"
    cv2.imwrite(str(picture), np.zeros((64, 64, 3), np.uint8))
    told = camgraph("compare", good, bad, "--frames", picture, "--least-frames", 1)
    assert told.exit_code == 1, told.output
    assert "| 1.000 | 1.000 | 1.000 | 0.000 | **confidences below 0.95** |" in told.output
    assert " | - | - | " in told.output, "one frame alone is warm-up"


def test_memory_is_that_of_a_process_of_its_own(test_data: Path) -> None:
    held = np.ones(300_000_000, np.uint8)
    assert high_water_bytes() > held.nbytes
    assert 30e6 < peak_bytes(test_data / YOLOX) < held.nbytes


def test_a_model_that_does_not_open_has_no_memory(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^no such model file: .*absent\.onnx$"):
        peak_bytes(tmp_path / "absent.onnx")


def test_a_model_that_never_answers_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that measures memory meets it first, and is ended."""
    monkeypatch.setattr(memory, "LIMIT_S", 5.0)
    model, picture = endless(tmp_path / "endless.onnx"), tmp_path / "black.png"
    cv2.imwrite(str(picture), np.zeros((64, 64, 3), np.uint8))
    told = camgraph("compare", model, model, "--frames", picture)
    assert told.exit_code == 3
    assert re.search(r"endless\.onnx: .* did not end within 5 s", told.output)


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
    told = camgraph("compare", "a.onnx", "b.onnx")
    assert told.exit_code == 2
    assert "expected --frames with what your cameras see, or --labels" in told.output


@pytest.mark.slow
def test_precision_against_known_people(test_data: Path, tmp_path: Path) -> None:
    """A model that finds those alone of whom it is very sure agrees too little, and is less right."""
    model, labels = test_data / "models/yolov8n-pose_float.onnx", test_data / "images/coco/test_coco.json"
    sure = tmp_path / "sure.onnx"
    assert camgraph("prepare", model, sure, "--nms", "--min-score", 0.85).exit_code == 0
    told = camgraph("compare", model, sure, "--labels", labels, "--least", 0, "--most-lost", 0.005)
    assert told.exit_code == 1, told.output
    assert "| AP | verdict |" in told.output
    assert "less** |" in told.output
    assert "4 frames." in told.output
