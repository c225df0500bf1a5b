"""Top-down pose models on crops, without their weights: models that say where their picture is red."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from camgraph_test_stages.crops import SIZE, cropped, people
from onnx import TensorProto, helper, numpy_helper

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.stage import Upstream
from camgraph.pipeline.testing import feed, opened, stamp
from camgraph.stages.messages import Frame, People
from camgraph.stages.people.add_keypoints import AddKeypoints
from camgraph.stages.people.infer import Infer, InferSettings
from camgraph.stages.people.inference.outputs import OutputSettings

WIDTH, HEIGHT = 48, 64
POINTS = 17


def save(path: Path, nodes: list[Any], outputs: dict[str, list[int]], constants: dict[str, Any]) -> Path:
    infos = [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, HEIGHT, WIDTH])]
    said = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", *side]) for name, side in outputs.items()]
    initial = [numpy_helper.from_array(np.array(value), name) for name, value in constants.items()]
    first = helper.make_node("Slice", ["images", "zero", "one", "one"], ["red"])
    initial += [numpy_helper.from_array(np.array([number]), name) for name, number in (("zero", 0), ("one", 1))]
    graph = helper.make_graph([first, *nodes], "g", infos, said, initial)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)
    return path


def heatmaps(path: Path) -> Path:
    """The mean of red in cells of 4 x 4, for each of 17 points."""
    nodes = [
        helper.make_node("AveragePool", ["red"], ["cells"], kernel_shape=[4, 4], strides=[4, 4]),
        helper.make_node("Concat", ["cells"] * POINTS, ["heatmaps"], axis=1),
    ]
    return save(path, nodes, {"heatmaps": [POINTS, HEIGHT // 4, WIDTH // 4]}, {})


def simcc(path: Path) -> Path:
    """The highest red of each column and row, twice: two parts a pixel."""
    nodes: list[Any] = []
    for name, axis in (("simcc_x", 2), ("simcc_y", 3)):
        nodes += [
            helper.make_node("ReduceMax", ["red"], [f"{name}_red"], axes=[axis], keepdims=0),
            helper.make_node("Reshape", [f"{name}_red", f"{name}_each"], [f"{name}_one"]),
            helper.make_node("Concat", [f"{name}_one"] * 2, [f"{name}_two"], axis=3),
            helper.make_node("Reshape", [f"{name}_two", f"{name}_flat"], [f"{name}_row"]),
            helper.make_node("Concat", [f"{name}_row"] * POINTS, [name], axis=1),
        ]
    sides = {"simcc_x": WIDTH, "simcc_y": HEIGHT}
    constants = {f"{name}_each": [-1, 1, side, 1] for name, side in sides.items()}
    constants |= {f"{name}_flat": [-1, 1, 2 * side] for name, side in sides.items()}
    return save(path, nodes, {name: [POINTS, 2 * side] for name, side in sides.items()}, constants)


def spotted(seq: int, *spots: tuple[int, int]) -> Frame:
    """Black, with red squares of 8 pixels around these places."""
    pixels = np.zeros((SIZE[1], SIZE[0], 3), np.uint8)
    for x, y in spots:
        pixels[y - 4 : y + 4, x - 4 : x + 4, 2] = 255
    return Frame(stamp(seq), pixels, *SIZE)


def posed(path: Path, items: list[dict[str, Any]], **settings: Any) -> list[People]:
    folder = path.parent
    crops, _ = cropped(folder, items, size=[WIDTH, HEIGHT], margin=1.0)
    facts = Infer.describe(InferSettings(model=path.name))
    written = OutputSettings.model_validate(settings)
    followed = {**settings, **AddKeypoints.follow(written, folder, Upstream({"infer": facts}))}
    with (
        opened(Infer, {"model": path.name}, folder=folder) as infer,
        opened(AddKeypoints, followed, folder=folder) as stage,
    ):
        seen = feed(infer, crops, batch=len(crops))
        pairs = [{"people": item["people"], "crops": crop} for item, crop in zip(items, seen, strict=True)]
        return [made for made in feed(stage, pairs) if isinstance(made, People)]


@pytest.mark.parametrize(("write", "near", "sure"), [(heatmaps, 6.0, 0.1), (simcc, 4.5, 0.9)])
def test_each_person_has_the_points_of_its_own_crop(tmp_path: Path, write: Any, near: float, sure: float) -> None:
    """Crops have another scale each. A spot is found somewhere in it, since it is flat, and may be less than a cell."""
    path = write(tmp_path / "m.onnx")
    boxes, spots = [(20, 20, 80, 100), (200, 40, 260, 200)], [(60, 40), (220, 160)]
    items = [
        {"frames": spotted(0, *spots), "people": people(*boxes, seq=0)},
        {"frames": spotted(1), "people": people(seq=1)},
        {"frames": spotted(2, spots[0]), "people": people(boxes[0], seq=2)},
    ]
    first, second, third = posed(path, items)
    assert first.keypoints.shape == (2, POINTS, 3)
    for person, spot in zip(first.keypoints, spots, strict=True):
        np.testing.assert_allclose(person[:, :2], [spot] * POINTS, atol=near)
        assert (person[:, 2] > sure).all()
    assert second.keypoints.shape == (0, POINTS, 3)
    np.testing.assert_array_equal(third.keypoints[0], first.keypoints[0])
    assert first.skeleton == "coco-17"


def test_points_that_the_model_has_not_are_a_mistake(tmp_path: Path) -> None:
    path = heatmaps(tmp_path / "m.onnx")
    with pytest.raises(UserError, match=r"with 16 keypoints.*without `keypoints` they are read as heatmaps"):
        posed(path, [], keypoints=16, format="heatmaps")


@pytest.mark.parametrize(("given", "is_told"), [({}, True), ({"mean": [0, 0, 0]}, False)])
def test_check_doubts_plain_pixels(tmp_path: Path, given: dict[str, Any], is_told: bool) -> None:
    heatmaps(tmp_path / "m.onnx")
    settings = InferSettings.model_validate({"model": "m.onnx", "input": given})
    told = "m.onnx: a model of this format does not show how its pixels were normalised: taken to be 0 to 1; most want"
    assert any(told in one for one in Infer.remarks(settings, tmp_path, {})) == is_told
