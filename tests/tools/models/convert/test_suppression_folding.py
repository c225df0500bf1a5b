"""Suppression in the graph against that of `decode`, on heads with many overlaps."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper

from camgraph.stages.people.inference.model.node_writer import NodeWriter
from camgraph.stages.vision.decoding.detections import Detections
from camgraph.stages.vision.decoding.formats import Asked, detections_of
from camgraph.stages.vision.recognition import Format, Reading
from camgraph.tools.models.convert.suppression_folding import Suppression, columns, fold_suppression

SIDE = 64
CELLS = 84
F32 = NDArray[np.float32]


def reading(format_name: Format, classes: int = 1, keypoints: int = 0, values: int = 3) -> Reading:
    names = tuple(f"class{number}" for number in range(classes))
    return Reading(format_name, "", ("heads",), names, keypoints, values, (SIDE, SIDE))


def session(of: Reading, turned: bool, asked: Suppression) -> ort.InferenceSession:
    """heads -> rows."""
    graph = helper.make_graph(
        [], "g", [helper.make_tensor_value_info("heads", TensorProto.FLOAT, ["n", None, None])], []
    )
    writer = NodeWriter(graph)
    rows = fold_suppression(writer, "heads", of, turned, asked)
    graph.node.extend(writer.nodes)
    graph.initializer.extend(writer.constants)
    shape = ["n", asked.most, columns(of)]
    graph.output.append(helper.make_tensor_value_info(rows, TensorProto.FLOAT, shape))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=6)
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def heads(of: Reading, pictures: int, seed: int = 0) -> F32:
    """(n, R, A): boxes that overlap, scores in [0, 1) of which some are equal; the last picture is empty."""
    rng = np.random.default_rng(seed)
    objectness = of.format in ("yolox", "yolo_objectness")
    boxes = np.concatenate(
        [rng.uniform(0, SIDE, (pictures, 2, CELLS)), rng.uniform(4, 30, (pictures, 2, CELLS))], axis=1
    )
    if of.format == "yolox":
        boxes = rng.normal(0, 1, boxes.shape)
    scores = np.round(rng.random((pictures, objectness + len(of.classes), CELLS)) ** 2, 2)
    scores[-1] = 0
    points = rng.uniform(0, SIDE, (pictures, of.keypoints * of.point_values, CELLS))
    return np.concatenate([boxes, scores, points], axis=1).astype(np.float32)


MODELS = {
    "yolo_pose": reading("yolo_pose", keypoints=5),
    "yolo_pose of three classes": reading("yolo_pose", 3, 4, 2),
    "yolo": reading("yolo", 7),
    "yolo of one class": reading("yolo"),
    "yolo_objectness": reading("yolo_objectness", 4),
    "yolox": reading("yolox", 4),
}


def both(name: str, asked: Suppression, seed: int = 0) -> list[tuple[Detections, Detections]]:
    """For each picture what `decode` makes of the heads, and of the rows."""
    of, rng_heads = MODELS[name], heads(MODELS[name], 4, seed)
    turned = of.format in ("yolox", "yolo_objectness")
    given = np.ascontiguousarray(rng_heads.transpose(0, 2, 1)) if turned else rng_heads
    [rows] = session(of, turned, asked).run(None, {"heads": given})
    rows = np.asarray(rows)
    assert rows.shape == (4, asked.most, columns(of))
    assert not rows[..., :][rows[..., 4] == 0].any(), "unused rows are zeros"
    wanted = Asked(
        classes=len(of.classes), keypoints=of.keypoints, point_values=of.point_values,
        min_score=asked.min_score, iou=asked.iou, most=asked.most,
    )  # fmt: skip

    def read(format_name: str, array: NDArray[Any]) -> Detections:
        return detections_of(format_name, [array], (SIDE, SIDE), wanted)

    return [(read(of.format, one), read("yolo_end2end", other)) for one, other in zip(given, rows, strict=True)]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("most", [100, 3])
def test_the_same_people_in_the_same_order(name: str, most: int) -> None:
    exact = MODELS[name].format != "yolox"
    for wanted, found in both(name, Suppression(0.2, 0.4, most)):
        assert len(wanted.scores) <= most
        np.testing.assert_array_equal(found.scores, wanted.scores)
        np.testing.assert_array_equal(found.classes, wanted.classes)
        np.testing.assert_array_equal(found.keypoints, wanted.keypoints)
        # Two libraries' exponentials may differ in the last bits.
        np.testing.assert_allclose(
            found.boxes_xyxy, wanted.boxes_xyxy, rtol=0 if exact else 1e-5, atol=0 if exact else 1e-4
        )


def test_reference_suppresses_some_boxes() -> None:
    counts = [len(found.scores) for _, found in both("yolo_pose", Suppression(0.2, 0.4, 100))]
    without = [len(found.scores) for _, found in both("yolo_pose", Suppression(0.2, 1.0, 100))]
    assert counts[-1] == without[-1] == 0
    assert all(0 < few < many for few, many in zip(counts[:-1], without[:-1], strict=True))


def test_a_score_that_is_just_enough_is_enough() -> None:
    of = MODELS["yolo of one class"]
    given = heads(of, 1)
    given[:, 4] = 0
    given[0, 4, :2] = np.float32(0.3), np.nextafter(np.float32(0.3), np.float32(0))
    [rows] = session(of, False, Suppression(0.3, 1.0, 5)).run(None, {"heads": given})
    assert np.asarray(rows)[0, :, 4].tolist() == [np.float32(0.3), 0, 0, 0, 0]
