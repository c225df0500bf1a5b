"""From the outputs of any model to people: formats, classes, crops, and the messages about unknown models."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from structlog.testing import capture_logs

from camgraph.pipeline.errors import BadItem, UserError
from camgraph.pipeline.stage import Upstream
from camgraph.pipeline.testing import feed, opened, reports_of, stamp
from camgraph.stages.messages import Frame, People, Tensor
from camgraph.stages.people.decode import Decode, DecodeSettings
from camgraph.stages.people.decode_movenet_multipose import DecodeMovenetMultipose
from camgraph.stages.people.decode_yolo_pose import DecodeYoloPose
from camgraph.stages.people.infer import Infer, InferSettings
from camgraph.stages.people.preprocess import Preprocess
from camgraph.stages.vision.decoding.nms import overlaps

FIT = np.array([[0.5, 0.5, 0, 140]], np.float32)
POSE = {"format": "yolo_pose", "outputs": ["output0"], "class_names": ["person"], "keypoints": 17, "point_values": 3}


def person(cx: float, cy: float, w: float, h: float, score: float) -> list[float]:
    return [cx, cy, w, h, score] + [cx, cy, 0.8] * 17


def tensor(*people: list[float], rows: int = 1) -> Tensor:
    heads = np.zeros((rows, 56, 21), np.float32)
    for index, column in enumerate(people):
        heads[:, :, index] = column
    fit = FIT.repeat(rows, 0)
    return Tensor(stamp(), {"output0": heads}, fit, (1280, 720), (640, 640), np.arange(rows) - (rows == 1))


def decoded(item: Tensor, folder: Path, **settings: Any) -> People:
    with opened(Decode, settings, folder=folder, stage="people") as stage:
        [people] = feed(stage, [item])
    assert isinstance(people, People)
    return people


def test_people_lie_in_the_frame(tmp_path: Path) -> None:
    people = decoded(tensor(person(100, 340, 50, 100, 0.875), person(0, 340, 50, 100, 0.5)), tmp_path, **POSE)
    assert people.boxes.tolist() == [[150, 300, 250, 500], [0, 300, 50, 500]]
    assert people.keypoints[0, 0].tolist() == [200, 400, pytest.approx(0.8)]
    assert (people.skeleton, people.frame_size, people.stamp) == ("coco-17", (1280, 720), stamp())
    assert len(decoded(tensor(person(300, 60, 50, 100, 0.9)), tmp_path, **POSE)) == 0


def test_who_is_nowhere_is_left_out_and_counted(tmp_path: Path) -> None:
    """The outputs are finite, but the boxes made of them are not, or lie far outside the picture."""
    far = person(500, 340, 50, 100, 0.7)
    far[5] = 1e9
    item = tensor(person(100, 340, 50, 100, 0.9), person(3e38, 340, 3e38, 100, 0.8), far)
    with opened(Decode, POSE, folder=tmp_path, stage="people") as stage:
        [people] = feed(stage, [item])
        counts = dict(reports_of(stage).counts)
    assert isinstance(people, People)
    assert people.scores.tolist() == [pytest.approx(0.9)]
    assert counts == {("skipped.nonfinite", "cam"): 2}


def test_scores_and_confidences_are_never_above_one(tmp_path: Path) -> None:
    people = decoded(tensor([*person(100, 340, 50, 100, 1.5)[:5], *([100, 340, 7.0] * 17)]), tmp_path, **POSE)
    assert people.scores.tolist() == [1]
    assert people.keypoints[0, :, 2].tolist() == [1] * 17


@pytest.mark.parametrize("rows", [0, 1])
def test_nobody_is_a_message_too(tmp_path: Path, rows: int) -> None:
    people = decoded(tensor(rows=rows), tmp_path, **POSE)
    assert people.keypoints.shape == (0, 17, 3)
    People.build(people.stamp, people.fields(), people.arrays())


def test_people_of_several_crops_are_one_message(tmp_path: Path) -> None:
    assert len(decoded(tensor(person(100, 340, 50, 100, 0.9), rows=3), tmp_path, **POSE)) == 3


def test_a_frame_of_several_pictures_has_no_more_people_than_one(tmp_path: Path) -> None:
    item = tensor(person(100, 340, 50, 100, 0.9), person(500, 340, 50, 100, 0.5), rows=3)
    assert decoded(item, tmp_path, **POSE, max_people=4).scores.tolist() == pytest.approx([0.9, 0.9, 0.9, 0.5])


def things(tmp_path: Path, **settings: Any) -> list[int]:
    rows = np.zeros((1, 3, 6), np.float32)
    for kind in range(3):
        rows[0, kind] = [10 + 100 * kind, 150, 60 + 100 * kind, 250, 0.5 + kind / 10, kind]
    item = Tensor(stamp(), {"rows": rows}, FIT, (1280, 720), (640, 640))
    given = {"format": "yolo_end2end", "class_names": ["dog", "person", "cat"], **settings}
    return decoded(item, tmp_path, **given).classes.tolist()


def test_people_are_kept_where_the_model_knows_them(tmp_path: Path) -> None:
    assert things(tmp_path) == [1]
    assert things(tmp_path, classes="all") == [2, 1, 0]
    assert things(tmp_path, classes=["cat", "dog"]) == [2, 0]
    assert things(tmp_path, class_names=["dog", "worker", "cat"]) == [2, 1, 0]
    with pytest.raises(UserError, match=r"the model knows no class bird; it knows dog, person, cat$"):
        things(tmp_path, classes=["bird"])
    with pytest.raises(UserError, match=r"no class dg; it knows dog, person, cat; did you mean `dog`\?"):
        things(tmp_path, classes=["dg"])


def test_what_is_said_of_outputs_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(BadItem, match=r"shape: these are no outputs of format yolo_pose: expected \(57, anchors\)"):
        decoded(tensor(), tmp_path, **POSE | {"class_names": ["a", "b"]})
    with pytest.raises(UserError, match="the model has no output heads; it has: output0"):
        decoded(tensor(), tmp_path, **POSE | {"outputs": ["heads"]})
    with pytest.raises(UserError, match="there is no model before this stage: write its `format`"):
        decoded(tensor(), tmp_path)


def counted(count: list[int], scores: list[float]) -> Tensor:
    """What a YOLO-NAS-Pose says of a picture."""
    rows = {
        "num": np.array([[number] for number in count], np.int64),
        "boxes": np.zeros((len(count), 5, 4), np.float32),
        "scores": np.array([scores] * len(count), np.float32),
        "joints": np.zeros((len(count), 5, 17, 3), np.float32),
    }
    return Tensor(stamp(), rows, FIT, (1280, 720), (640, 640))


def test_outputs_of_a_wrong_shape_are_told_once_for_each_of_them(tmp_path: Path) -> None:
    settings = {"format": "nas_pose_batch", "outputs": ["num", "boxes", "scores", "joints"], "keypoints": 17}
    good = counted([5], [0.1] * 5)
    wrong = [counted([9], [0.1] * 5), counted([-1], [0.1] * 5), counted([5], [0.1] * 4)]
    with opened(Decode, settings, folder=tmp_path, stage="people") as stage, capture_logs() as logs:
        for item in [*wrong, *wrong]:
            with pytest.raises(BadItem) as caught:
                feed(stage, [item])
            assert (caught.value.reason, caught.value.logged) == ("shape", True)
        assert len(feed(stage, [good])) == 1
    assert [line["event"] for line in logs] == ["wrong_shape"] * 2
    assert [line["output"] for line in logs] == ["num", "boxes"]
    assert "expected a count from 0 to the 5 rows there are, got 9" in logs[0]["error"]


def test_what_has_no_row_for_each_picture_is_dropped(tmp_path: Path) -> None:
    for heads in (np.zeros((2, 56, 21), np.float32), np.float32(0)):
        item = replace(tensor(), arrays_by_name={"output0": heads})
        with pytest.raises(BadItem, match=r"shape: output `output0` is .* for 1 pictures: no axis for them"):
            decoded(item, tmp_path, **POSE)


def test_a_class_that_is_no_number_is_left_out_and_counted(tmp_path: Path) -> None:
    rows = np.array([[[10, 150, 60, 250, 0.5, np.nan], [110, 150, 160, 250, 0.5, 0]]], np.float32)
    item = Tensor(stamp(), {"rows": rows}, FIT, (1280, 720), (640, 640))
    with opened(Decode, {"format": "yolo_end2end", "classes": "all"}, folder=tmp_path, stage="people") as stage:
        [people] = feed(stage, [item])
        assert dict(reports_of(stage).counts) == {("skipped.nonfinite", "cam"): 1}
    assert isinstance(people, People)
    assert people.classes.tolist() == [0]


SHOWN: dict[str, tuple[tuple[int, ...], int]] = {
    "yolo": ((84, 8400), 0),
    "yolo_pose": ((8400, 20), 5),
    "yolo_end2end": ((300, 6 + 3 * 17), 17),
    "nas_pose_flat": ((2, 6 + 3 * 20), 20),
    "yolo_v7_rows": ((9, 7), 0),
    "movenet_people": ((6, 56), 17),
}


@pytest.mark.parametrize("name", SHOWN)
def test_first_item_gives_shape_if_no_model_precedes(tmp_path: Path, name: str) -> None:
    shape, points = SHOWN[name]
    item = Tensor(stamp(), {"o": np.zeros((1, *shape), np.float32)}, FIT, (1280, 720), (640, 640))
    with opened(Decode, {"format": name, "min_score": 0.5}, folder=tmp_path, stage="people") as stage:
        [people] = feed(stage, [item])
        with pytest.raises(BadItem, match=f"shape: these are no outputs of format {name}"):
            feed(stage, [replace(item, arrays_by_name={"o": np.zeros((1, 4, 9), np.float32)})])
    assert isinstance(people, People)
    assert people.keypoints.shape == (0, points, 3)


def test_names_that_do_not_fit_the_first_item_are_refused(tmp_path: Path) -> None:
    item = Tensor(stamp(), {"o": np.zeros((1, 84, 8400), np.float32)}, FIT, (1280, 720), (640, 640))
    with pytest.raises(UserError, match=r"stage people: .*`class_names` has 2 names, and the model 80 classes"):
        decoded(item, tmp_path, format="yolo", class_names=["a", "b"])


def test_numbers_that_are_none_cost_the_frame(tmp_path: Path) -> None:
    names = {"center": 1, "kpt_heatmap": 17, "kpt_regress": 34, "kpt_offset": 34, "box_scale": 2, "box_offset": 2}
    heads = {name: np.full((1, channels, 4, 4), np.inf, np.float32) for name, channels in names.items()}
    item = Tensor(stamp(), heads, FIT, (1280, 720), (16, 16))
    with pytest.raises(BadItem, match="finite"):
        decoded(item, tmp_path, format="movenet_multipose", outputs=list(names), keypoints=17)


# --- with real models


def followed(data: Path, model: str, **settings: Any) -> dict[str, Any]:
    facts = Infer.describe(InferSettings(model=model))
    return {**settings, **Decode.follow(DecodeSettings(**settings), data, Upstream({"infer": facts}))}


def found(data: Path, model: str, picture: Path, prepare: dict[str, Any], **settings: Any) -> People:
    bgr = cv2.imread(str(picture))
    frame = Frame(stamp(), bgr, bgr.shape[1], bgr.shape[0])
    with opened(Preprocess, prepare, folder=data) as first, opened(Infer, {"model": model}, folder=data) as infer:
        [item] = feed(infer, feed(first, [frame]))
    assert isinstance(item, Tensor)
    decoder = settings.pop("decoder", Decode)
    with opened(decoder, settings, folder=data) as stage:
        [people] = feed(stage, [item])
    assert isinstance(people, People)
    return people


@pytest.mark.parametrize(
    ("model", "prepare", "decoder"),
    [
        ("models/yolo11n-pose_640.onnx", {}, DecodeYoloPose),
        ("models/multipose_heads.onnx", {"size": "native"}, DecodeMovenetMultipose),
    ],
)
@pytest.mark.slow
def test_a_model_is_read_as_by_its_own_stage(
    test_data: Path, model: str, prepare: dict[str, Any], decoder: type[Any]
) -> None:
    picture = sorted((test_data / "images/coco").glob("*.jpg"))[0]
    asked = {"min_score": 0.25, "iou": 0.6}
    by_reading = found(test_data, model, picture, prepare, **followed(test_data, model, **asked))
    by_name = found(test_data, model, picture, prepare, decoder=decoder, **asked)
    assert len(by_reading) > 0
    for name, array in by_name.arrays().items():
        np.testing.assert_array_equal(by_reading.arrays()[name], array)


def test_yolox_finds_the_people_of_labelled_pictures(test_data: Path) -> None:
    """With nothing said but the model: BGR, 0 to 255 and its cells are read off."""
    model = "models/yolox_nano_bigisland.onnx"
    settings = followed(test_data, model, min_score=0.3)
    labels = json.loads((test_data / "images/coco/test_coco.json").read_text())
    names = {image["id"]: image["file_name"] for image in labels["images"]}
    large = [note for note in labels["annotations"] if note["bbox"][2] * note["bbox"][3] > 96 * 96]
    hits = 0
    for note in large:
        picture = next((test_data / "images/coco").rglob(Path(names[note["image_id"]]).name))
        people = found(test_data, model, picture, {"size": [416, 416], "align": "corner"}, **settings)
        x, y, w, h = note["bbox"]
        hits += overlaps(np.array([[x, y, x + w, y + h]], np.float32), people.boxes, iou=0.5).any()
        assert set(people.classes.tolist()) <= {0}
    assert len(large) >= 5
    assert hits >= 0.8 * len(large)


def test_what_no_stage_decodes_is_said_before_the_run(test_data: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such model file"):
        followed(tmp_path, "yolo_nas.onnx")
    with pytest.raises(UserError, match=r"yolox_nano_bigisland.onnx: .* not those of `format: rtmo`"):
        followed(test_data, "models/yolox_nano_bigisland.onnx", format="rtmo")
