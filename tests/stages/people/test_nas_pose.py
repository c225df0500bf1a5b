"""YOLO-NAS and YOLO-NAS-Pose from picture to people, without weights: synthetic graphs; bright pixels are people.

They are built to the contract that super-gradients documents: pictures of uint8, overlaps suppressed inside.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from camgraph.pipeline.stage import Upstream
from camgraph.pipeline.testing import feed, opened, stamp
from camgraph.stages.messages import Frame, People
from camgraph.stages.people.decode import Decode, DecodeSettings
from camgraph.stages.people.infer import Infer, InferSettings
from camgraph.stages.people.preprocess import Preprocess

SIDE = 64
BRIGHT = helper.make_tensor("bright", TensorProto.UINT8, [], [200])


def save(path: Path, nodes: list[Any], outputs: dict[str, Any], constants: list[Any], batch: int | str = "n") -> Path:
    graph = helper.make_graph(
        nodes,
        "synthetic",
        [helper.make_tensor_value_info("input", TensorProto.UINT8, [batch, 3, SIDE, SIDE])],
        [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in outputs.items()],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)
    return path


def ints(name: str, values: list[int]) -> Any:
    return helper.make_tensor(name, TensorProto.INT64, [len(values)], values)


def person_of_pixel(columns: int) -> np.ndarray:
    """(5, columns): image, x, y, x + 4, y + 4, 0.75 of a pixel's (image, channel, y, x, 1); the rest is 0."""
    matrix = np.zeros((5, columns), np.float32)
    matrix[0, 0] = matrix[3, 1] = matrix[2, 2] = matrix[3, 3] = matrix[2, 4] = 1
    matrix[4, 3], matrix[4, 4], matrix[4, 5] = 4, 4, 0.75
    return matrix


def flat(path: Path) -> Path:
    """Each bright red pixel (x, y) is a person: rows of image, x, y, x + 4, y + 4, 0.75, 17 x (x, y, 0.5)."""
    matrix = person_of_pixel(57)
    for point in range(17):
        matrix[3, 6 + 3 * point] = matrix[2, 7 + 3 * point] = 1
        matrix[4, 8 + 3 * point] = 0.5
    return flat_rows(path, matrix)


def flat_boxes(path: Path) -> Path:
    """As `flat`, a detector's rows of image, x, y, x + 4, y + 4, 0.75, class 0."""
    return flat_rows(path, person_of_pixel(7))


def flat_rows(path: Path, matrix: np.ndarray) -> Path:
    """A row for each bright red pixel: its (image, channel, y, x, 1) times ``matrix``."""
    columns = matrix.shape[1]
    constants = [
        BRIGHT,
        ints("zero", [0]),
        ints("one", [1]),
        helper.make_tensor("matrix", TensorProto.FLOAT, [5, columns], matrix.ravel()),
    ]
    nodes = [
        helper.make_node("Slice", ["input", "zero", "one", "one"], ["red"]),
        helper.make_node("Greater", ["red", "bright"], ["shines"]),
        helper.make_node("NonZero", ["shines"], ["found"]),
        helper.make_node("Transpose", ["found"], ["places"]),
        helper.make_node("Cast", ["places"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("Pad", ["floats", "behind", "unit"], ["padded"]),
        helper.make_node("MatMul", ["padded", "matrix"], ["rows"]),
    ]
    constants += [ints("behind", [0, 0, 0, 1]), helper.make_tensor("unit", TensorProto.FLOAT, [], [1.0])]
    return save(path, nodes, {"rows": (TensorProto.FLOAT, ["rows_of_all", columns])}, constants)


def counted(path: Path) -> Path:
    """As many people as the first row of red has bright pixels, of eight that are the same in every picture."""
    boxes = np.array([[8 * n, 8, 8 * n + 4, 12] for n in range(8)], np.float32)
    joints = np.repeat(np.append(boxes[:, :2], np.full((8, 1), 0.5), axis=1)[:, None], 17, axis=1)
    given = {"boxes": boxes, "scores": np.full(8, 0.75), "joints": joints}
    constants = [BRIGHT, ints("zeros", [0, 0]), ints("ones", [1, 1]), ints("axes", [1, 2]), ints("over", [1, 2, 3])]
    constants += [
        helper.make_tensor(f"{name}_one", TensorProto.FLOAT, [1, *value.shape], value.ravel())
        for name, value in given.items()
    ]
    nodes = [
        helper.make_node("Slice", ["input", "zeros", "ones", "axes"], ["row"]),
        helper.make_node("Greater", ["row", "bright"], ["shines"]),
        helper.make_node("Cast", ["shines"], ["numbers"], to=TensorProto.INT64),
        helper.make_node("ReduceSum", ["numbers", "over"], ["sums"], keepdims=0),
        helper.make_node("Unsqueeze", ["sums", "last"], ["num_predictions"]),
        helper.make_node("Shape", ["num_predictions"], ["batch"], end=1),
    ]
    constants.append(ints("last", [1]))
    for name, value in given.items():
        constants.append(ints(f"{name}_axes", [1] * value.ndim))
        nodes.append(helper.make_node("Concat", ["batch", f"{name}_axes"], [f"{name}_times"], axis=0))
        nodes.append(helper.make_node("Tile", [f"{name}_one", f"{name}_times"], [name]))
    outputs: dict[str, Any] = {"num_predictions": (TensorProto.INT64, ["n", 1])}
    outputs |= {name: (TensorProto.FLOAT, ["n", *value.shape]) for name, value in given.items()}
    return save(path, nodes, outputs, constants)


def frame(seq: int, *bright: tuple[int, int]) -> Frame:
    """Of 64 x 48: it lies in the upper left corner of the picture."""
    pixels = np.zeros((48, SIDE, 3), np.uint8)
    for x, y in bright:
        pixels[y, x, 2] = 255
    return Frame(stamp(seq), pixels, SIDE, 48)


def people(model: Path, frames: list[Frame], batch: int) -> list[People]:
    folder = model.parent
    facts = Infer.describe(InferSettings(model=model.name))
    settings = dict(Decode.follow(DecodeSettings(), folder, Upstream({"infer": facts})))
    prepare = {"size": [SIDE, SIDE], "align": "corner", "pad": 127}
    with (
        opened(Preprocess, prepare, folder=folder) as first,
        opened(Infer, {"model": model.name}, folder=folder) as infer,
        opened(Decode, settings, folder=folder) as last,
    ):
        return [out for out in feed(last, feed(infer, feed(first, frames), batch=batch)) if isinstance(out, People)]


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_the_rows_of_all_images_find_their_frames(tmp_path: Path, batch: int) -> None:
    shown: list[list[tuple[int, int]]] = [[(5, 7)], [], [(1, 1), (30, 40), (50, 2)], [(63, 47)], []]
    found = people(flat(tmp_path / "flat.onnx"), [frame(seq, *bright) for seq, bright in enumerate(shown)], batch)
    assert [each.boxes[:, :2].tolist() for each in found] == [
        [list(map(float, at)) for at in sorted(bright, key=lambda at: at[1])] for bright in shown
    ]
    assert found[0].boxes.tolist() == [[5, 7, 9, 11]]
    assert found[0].keypoints.tolist() == [[[5, 7, 0.5]] * 17]
    assert found[3].boxes.tolist() == [[63, 47, 64, 48]], "clipped to the frame, which is lower than the picture"
    assert {each.skeleton for each in found} == {"coco-17"}


@pytest.mark.parametrize("batch", [1, 3])
def test_a_detector_has_rows_of_all_images_too(tmp_path: Path, batch: int) -> None:
    shown: list[list[tuple[int, int]]] = [[(5, 7)], [], [(1, 1), (30, 40)]]
    frames = [frame(seq, *bright) for seq, bright in enumerate(shown)]
    found = people(flat_boxes(tmp_path / "flat.onnx"), frames, batch)
    assert [each.boxes.tolist() for each in found] == [[[5, 7, 9, 11]], [], [[1, 1, 5, 5], [30, 40, 34, 44]]]
    assert found[2].scores.tolist() == [0.75, 0.75]
    assert found[2].keypoints.shape == (2, 0, 3)


@pytest.mark.parametrize("batch", [1, 2, 4])
def test_a_count_says_how_many_rows_are_used(tmp_path: Path, batch: int) -> None:
    shown = [[(x, 0) for x in range(count)] for count in (3, 0, 8, 1)]
    found = people(counted(tmp_path / "batch.onnx"), [frame(seq, *bright) for seq, bright in enumerate(shown)], batch)
    assert [len(each) for each in found] == [3, 0, 8, 1]
    assert found[0].boxes.tolist() == [[0, 8, 4, 12], [8, 8, 12, 12], [16, 8, 20, 12]]
    assert found[0].keypoints[2].tolist() == [[16, 8, 0.5]] * 17
