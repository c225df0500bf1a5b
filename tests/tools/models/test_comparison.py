"""What is said of compared models, and which of them are blessed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from pipeline.errors import EnvironmentProblem, UserError
from tools.cli import main
from tools.models.accuracy import first_pictures, read_labels
from tools.models.agreement import Agreement
from tools.models.comparison import Compared, Limits, is_blessed, lost_ap
from tools.models.comparison_table import table
from tools.models.memory import high_water_bytes, peak_bytes
from tools.pose_accuracy.truth import Precision

YOLOX = "models/yolox_nano_bigisland.onnx"


def camgraph(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["model", *map(str, arguments)])


def compared(tmp_path: Path, ap: float | None, both: int = 10, oks: float = 1.0) -> Compared:
    """A model that finds ``both`` of the 10 people of the first."""
    model = tmp_path / "m.onnx"
    model.write_bytes(b"0" * 1_500_000)
    agreement = Agreement(frames=5, first=10, other=both, both=both, oks=[oks])
    precision = None if ap is None else Precision(ap, ap, ap, ap)
    return Compared(model, agreement, precision, [4.0, 2.0, 3.0], 12.5, 200_000_000)


def test_a_model_may_lose_no_more_than_the_limits(tmp_path: Path) -> None:
    first, limits = compared(tmp_path, 0.60), Limits(least=0.95, most_lost=0.02)
    assert is_blessed(compared(tmp_path, 0.59), first, limits)
    assert is_blessed(compared(tmp_path, 0.70), first, limits)
    assert is_blessed(compared(tmp_path, None), first, limits)
    assert not is_blessed(compared(tmp_path, 0.57), first, limits)
    assert not is_blessed(compared(tmp_path, 0.60, both=8), first, limits)
    assert not is_blessed(compared(tmp_path, 0.60, oks=0.9), first, limits)
    assert lost_ap(compared(tmp_path, 0.5), first) == pytest.approx(0.1)


def test_the_table_says_what_was_lost(tmp_path: Path) -> None:
    first = compared(tmp_path, 0.60)
    rows = list(table([first, compared(tmp_path, 0.55), compared(tmp_path, 0.6, both=8)], Limits()))
    assert rows[2] == "| m.onnx | 1.5 | 200 | 3.0 | 1.00 x | 12.5 | 10 | 1.000 | 1.000 | 1.000 | 0.600 | the first |"
    assert rows[3].endswith("| 0.550 | **AP 0.050 less** |")
    assert rows[4].endswith("| 0.800 | 1.000 | 1.000 | 0.600 | **below 0.95** |")
    assert "AP" not in next(iter(table([compared(tmp_path, None)], Limits())))


def test_memory_is_that_of_a_process_of_its_own(test_data: Path) -> None:
    held = np.ones(300_000_000, np.uint8)
    assert high_water_bytes() > held.nbytes
    assert 30e6 < peak_bytes(test_data / YOLOX) < held.nbytes


def test_a_model_that_does_not_open_has_no_memory(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match=r"absent\.onnx: its memory could not be measured"):
        peak_bytes(tmp_path / "absent.onnx")


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
