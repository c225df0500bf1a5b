from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from camgraph.tools.commands.watching.size import (
    LOOKS_EACH,
    MOST_CAMERAS,
    Sighting,
    choose,
    choose_sides,
    of_files,
    sightings,
)
from camgraph.tools.models.pose_estimators import Poses

pytestmark = [pytest.mark.slow, pytest.mark.processes]

TALL, SMALL = 400.0, 60.0


def person(*whole: float, height: float = TALL, agreed: bool = True) -> Sighting:
    return Sighting(height, whole, agreed)


def found(*rows: tuple[Sequence[float], float, int]) -> Poses:
    """Detections of (box, score, number of certain joints); joints lie at the same share of each box."""
    boxes = np.array([box for box, _, _ in rows], np.float32)
    keypoints = np.zeros((len(rows), 17, 3), np.float32)
    for row, (box, _, certain) in enumerate(rows):
        keypoints[row, :, 0] = (box[0] + box[2]) / 2
        keypoints[row, :, 1] = np.linspace(box[1], box[3], 17)
        keypoints[row, :certain, 2] = 0.9
    return Poses(boxes, np.array([score for _, score, _ in rows], np.float32), keypoints)


@pytest.mark.parametrize(
    ("people", "side"),
    [
        ([person(0.6, 0.5, 0.05, 0.0, 0.0)], 256),
        ([person(0.5, 0.6, 0.55, 0.1, 0.1)], 384),
        ([person(0.1, 0.2, 0.3, 0.4, 0.5, height=SMALL)] * 3, 768),
        ([person(0.58, 0.6, 0.5, 0.1, 0.1)], 256),
        ([], 384),
    ],
    ids=["fills the frame", "whole in a room", "a square", "nearly as good", "nobody"],
)
def test_the_smallest_that_is_nearly_as_good(people: list[Sighting], side: int) -> None:
    assert choose(people).side == side


def test_halves_and_bystanders_do_not_outvote_a_whole_person() -> None:
    man = person(0.5, 0.6, 0.3, 0.2, 0.2)
    bystander = person(0.0, 0.1, 0.2, 0.3, 0.3, height=SMALL)
    assert choose([man, bystander]).side == 384


def test_somebody_whom_only_one_size_shows_counts_half() -> None:
    people = [person(0.0, 0.4, 0.0, 0.0, 0.0), person(0.0, 0.0, 0.0, 0.0, 0.5, agreed=False)]
    assert choose(people).side == 384


def test_two_sizes_where_none_shows_all() -> None:
    near, far = person(0.6, 0.3, 0.0, 0.0, 0.0), person(0.0, 0.0, 0.2, 0.5, 0.6, height=SMALL)
    choice = choose([near, far, far, far])
    assert (choice.near, choice.side) == (256, 768)
    assert choose([near, near]).near is None


def test_the_reason_names_the_other_sizes() -> None:
    why = choose([person(0.3, 0.6, 0.48, 0.0, 0.0)]).why
    assert why == "people are most whole and certain at 384 (256: 50 %, 512: 80 %, 640: 0 %, 768: 0 % of that)"


def test_halves_are_one_person_poorly_seen() -> None:
    whole = ((100, 0, 300, 400), 0.7, 17)
    upper, lower = ((110, 0, 290, 190), 0.4, 6), ((110, 210, 290, 400), 0.4, 6)
    shown = found(whole, upper, lower)
    shown.keypoints[1] = shown.keypoints[0]
    shown.keypoints[1, 8:, 2] = 0
    shown.keypoints[2] = shown.keypoints[0]
    shown.keypoints[2, :9, 2] = 0
    [one] = sightings(shown, np.array([384, 640, 640]), longest=640)
    assert one.height == 400
    assert one.whole[1] == pytest.approx(0.7)
    assert 0 < one.whole[3] == one.whole[4] < 0.3
    assert one.whole[0] == one.whole[2] == 0


def test_somebody_in_front_of_a_large_person_is_another_one() -> None:
    shown = found(((0, 0, 300, 400), 0.7, 17), ((200, 250, 260, 390), 0.5, 17))
    assert len(sightings(shown, np.array([256, 768]), longest=1000)) == 2


def test_small_people_want_a_large_picture(pulled_model: Path, short_clip: Path) -> None:
    assert choose_sides(pulled_model, of_files({"a": short_clip}))["a"].side == 768


@pytest.mark.parametrize(
    ("clip", "sides"),
    [
        ("intel_asl_yes.mkv", {256}),
        ("intel_asl_walk.mkv", {256, 384}),
        ("intel_one-by-one-person-detection.mp4", {384}),
        ("opencv4nodejs_people.mp4", {512, 640}),
    ],
)
def test_each_clip_gets_the_size_that_shows_its_people(
    pulled_model: Path, test_data: Path, clip: str, sides: set[int]
) -> None:
    choice = choose_sides(pulled_model, of_files({"a": test_data / "videos" / clip}))["a"]
    assert choice.side in sides
    assert choice.near is None


def test_each_camera_has_its_own(pulled_model: Path, short_clip: Path, test_data: Path) -> None:
    files = {"far": short_clip, "near": test_data / "videos" / "intel_asl_yes.mkv"}
    chosen = choose_sides(pulled_model, of_files(files))
    assert {camera: choice.side for camera, choice in chosen.items()} == {"far": 768, "near": 256}


def test_where_nobody_is_seen_the_size_is_what_suits_most(
    pulled_model: Path, tmp_path: Path, make_clip: Callable[..., Path]
) -> None:
    choice = choose_sides(pulled_model, of_files({"a": make_clip(tmp_path / "a.mp4")}))["a"]
    assert (choice.side, choice.why.startswith("nobody was seen")) == (384, True)


def multipose(path: Path, *, kind: int, joints: int = 17) -> Path:
    """Heads of MultiPose for pictures of any size; the brightest part is a person of 20 x 20 cells."""
    kinds = {"center": (1, 0.0), "kpt_heatmap": (joints, 0.8), "kpt_regress": (2 * joints, 0.0)}
    kinds |= {"kpt_offset": (2 * joints, 0.0), "box_scale": (2, 20.0), "box_offset": (2, 0.0)}
    nodes = [
        helper.make_node("Cast", ["images"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMax", ["floats"], ["grey"], axes=[3], keepdims=1),
        helper.make_node("Transpose", ["grey"], ["plane"], perm=[0, 3, 1, 2]),
        helper.make_node("AveragePool", ["plane"], ["cells"], kernel_shape=[4, 4], strides=[4, 4]),
    ]
    constants = []
    for name, (channels, bias) in kinds.items():
        weight = np.full((channels, 1, 1, 1), 0.9 / 255 if name == "center" else 0, np.float32)
        constants += [numpy_helper.from_array(weight, f"{name}_w")]
        constants += [numpy_helper.from_array(np.full(channels, bias, np.float32), f"{name}_b")]
        nodes += [helper.make_node("Conv", ["cells", f"{name}_w", f"{name}_b"], [f"{name}_f"])]
        nodes += [helper.make_node("Cast", [f"{name}_f"], [name], to=kind)]
    images = helper.make_tensor_value_info("images", TensorProto.UINT8, ["n", "h", "w", 3])
    heads = [helper.make_tensor_value_info(name, kind, ["n", None, None, None]) for name in kinds]
    graph = helper.make_graph(nodes, "g", [images], heads, constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def bright(count: int) -> list[np.ndarray]:
    """Frames with one bright square, on black."""
    frame = np.zeros((128, 192, 3), np.uint8)
    frame[60:68, 92:100] = 255
    return [frame] * count


def test_a_model_with_heads_in_float16_is_asked(tmp_path: Path) -> None:
    path = multipose(tmp_path / "half.onnx", kind=TensorProto.FLOAT16)
    choice = choose_sides(path, {"a": bright})["a"]
    assert choice.why.startswith("people are most whole and certain at ")


def test_a_model_that_cannot_be_asked_is_left_to_the_run(tmp_path: Path) -> None:
    """Whose outputs are of other shapes, whose input has another name, and one that needs operators of its own."""
    other = multipose(tmp_path / "other.onnx", kind=TensorProto.FLOAT, joints=16)
    renamed = onnx.load(other)
    renamed.graph.input[0].name = renamed.graph.node[0].input[0] = "picture"
    onnx.save(renamed, tmp_path / "renamed.onnx")
    renamed.graph.node[1].op_type = "Unheard"
    onnx.save(renamed, tmp_path / "unheard.onnx")
    for name, why in (("other", "kpt_heatmap must be"), ("renamed", "picture"), ("unheard", "Unheard")):
        choice = choose_sides(tmp_path / f"{name}.onnx", {"a": bright, "b": bright})["b"]
        assert choice.side == 384
        assert choice.why.startswith("the model could not be asked, and this suits most rooms: ")
        assert why in choice.why


def test_of_very_many_cameras_the_rest_get_the_usual_size(
    pulled_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def frames(path: Path, count: int, memory_mb: int) -> list[np.ndarray]:
        asked.append(count)
        return []

    monkeypatch.setattr("camgraph.stages.video.examiner.frames", frames)
    chosen = choose_sides(pulled_model, of_files({str(n): tmp_path / f"{n}.mp4" for n in range(MOST_CAMERAS + 5)}))
    assert asked == [LOOKS_EACH] * MOST_CAMERAS
    assert {choice.side for choice in chosen.values()} == {384}
    assert chosen[str(MOST_CAMERAS + 4)].why == "as for most of the other cameras"
