"""Folds a YOLO's last steps into its graph: score, suppression of overlaps, the best k; rows as `yolo_end2end`.

    heads (B, R, A) -> boxes (B, 4, A) xyxy, best score (B, A), its class (B, A)
        -> NonMaxSuppression in each class -> scores of those kept, 0 for others (B, A) -> TopK
        -> rows (B, k, 6 + V * K): x1, y1, x2, y2, score, class, points;      unused rows are zeros

The steps of `decode`, in the same order and the same precision. Standard operators only, of opset 11.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from camgraph.stages.people.inference.model.node_writer import NodeWriter
from camgraph.stages.vision.decoding.yolo_heads import MAX_LOGARITHM, cells_as_rows
from camgraph.stages.vision.recognition import Format, Reading

LEAST_OPSET = 11
FOLDABLE: tuple[Format, ...] = ("yolo_pose", "yolo", "yolox", "yolo_objectness")
_BOX = 4


@dataclass(frozen=True)
class Suppression:
    """Which candidates are people: as the settings of `decode` with these names."""

    min_score: float = 0.1
    iou: float = 0.5
    most: int = 100


@dataclass(frozen=True)
class Candidates:
    """Names of values: ``boxes`` (B, 4, A) xyxy, ``scores`` (B, C, A), ``rows`` (B, R, A), the points last."""

    boxes: str
    scores: str
    rows: str
    first_point: int
    end: int


def fold_suppression(writer: NodeWriter, heads: str, reading: Reading, turned: bool, asked: Suppression) -> str:
    """Adds the nodes; the name of the rows. ``turned``: the heads are (B, A, R)."""
    rows = writer.add("Transpose", [heads], perm=[0, 2, 1]) if turned else heads
    found = _candidates(writer, rows, reading)
    best, kinds = _best_class(writer, found.scores, len(reading.classes))
    scores = best if kinds is None else _by_class(writer, best, kinds, len(reading.classes))
    kept = _kept(writer, best, _chosen(writer, found.boxes, scores, asked))
    return _rows(writer, found, kinds, kept, asked.most)


def columns(reading: Reading) -> int:
    """Of a row: 6 + V * K."""
    return 6 + reading.keypoints * reading.point_values


def _candidates(writer: NodeWriter, rows: str, reading: Reading) -> Candidates:
    objectness = reading.format in ("yolox", "yolo_objectness")
    first = _BOX + objectness
    end = first + len(reading.classes)
    scores = writer.slice(rows, 1, first, end)
    if objectness:
        scores = writer.add("Mul", [scores, writer.slice(rows, 1, _BOX, first)])
    centres, sizes = writer.slice(rows, 1, 0, 2), writer.slice(rows, 1, 2, _BOX)
    if reading.format == "yolox":
        assert reading.size is not None, "yolox is recognised by its cells"
        centres, sizes = _from_cells(writer, centres, sizes, cells_as_rows(*reading.size))
    half = writer.add("Mul", [sizes, writer.constant(np.array(0.5, np.float32))])
    corners = [writer.add(operator, [centres, half]) for operator in ("Sub", "Add")]
    return Candidates(writer.add("Concat", corners, axis=1), scores, rows, end, end + columns(reading) - 6)


def _from_cells(writer: NodeWriter, shifts: str, logarithms: str, cells: NDArray[np.float32]) -> tuple[str, str]:
    """YOLOX's shifts and logarithms in pixels; ``cells`` is (A, 3): x, y in cells, and the stride."""
    places, strides = (writer.constant(np.ascontiguousarray(part.T[None])) for part in (cells[:, :2], cells[:, 2:]))
    limit = writer.constant(np.array(MAX_LOGARITHM, np.float32))
    centres = writer.add("Add", [shifts, places])
    sizes = writer.add("Exp", [writer.add("Min", [logarithms, limit])])
    return writer.add("Mul", [centres, strides]), writer.add("Mul", [sizes, strides])


def _best_class(writer: NodeWriter, scores: str, classes: int) -> tuple[str, str | None]:
    """(B, 1, A) each: the highest score of each anchor, and its class; None if there is only one."""
    if classes == 1:
        return scores, None
    kinds = writer.add("TopK", [scores, writer.constant([1])], outputs=2, axis=1)
    return writer.nodes[-1].output[0], kinds


def _by_class(writer: NodeWriter, best: str, kinds: str, classes: int) -> str:
    """(B, C, A): of each anchor the score of its class alone, as `decode` has it: a box is of one class."""
    numbers = writer.constant(np.arange(classes, dtype=np.int64).reshape(1, classes, 1))
    nothing = writer.constant(np.array(0, np.float32))
    return writer.add("Where", [writer.add("Equal", [kinds, numbers]), best, nothing])


def _chosen(writer: NodeWriter, boxes: str, scores: str, asked: Suppression) -> str:
    """(n, 2): picture and anchor of those that stay."""
    # The operator asks for more than the least score, `decode` for no less.
    least = np.nextafter(np.float32(asked.min_score), np.float32(0))
    limits = [
        writer.constant([asked.most]),
        writer.constant(np.array([asked.iou], np.float32)),
        writer.constant(np.array([least], np.float32)),
    ]
    chosen = writer.add("NonMaxSuppression", [writer.add("Transpose", [boxes], perm=[0, 2, 1]), scores, *limits])
    return writer.add("Gather", [chosen, writer.constant([0, 2])], axis=1)


def _kept(writer: NodeWriter, best: str, places: str) -> str:
    """(B, A): the scores of the selected anchors, 0 for all others."""
    flat = writer.add("Reshape", [best, writer.constant([0, -1])])
    nothing = writer.add("ConstantOfShape", [writer.add("Shape", [flat])])
    return writer.add("ScatterND", [nothing, places, writer.add("GatherND", [flat, places])])


def _rows(writer: NodeWriter, found: Candidates, kinds: str | None, kept: str, most: int) -> str:
    # A picture of few anchors may have fewer than k.
    padded = writer.add("Pad", [kept, writer.constant([0, 0, 0, most])])
    places = writer.add("TopK", [padded, writer.constant([most])], outputs=2, axis=1)
    scores = writer.add("Reshape", [writer.nodes[-1].output[0], writer.constant([0, 1, -1])])
    nothing = writer.constant(np.array(0, np.float32))
    used = writer.add("Greater", [scores, nothing])
    places = writer.add("Reshape", [places, writer.constant([0, 1, -1])])
    places = writer.add("Where", [used, places, writer.constant(np.array(0, np.int64))])
    parts = [_taken(writer, found.boxes, places, _BOX), scores, _classes(writer, kinds, places, scores)]
    if found.end > found.first_point:
        rows = _taken(writer, found.rows, places, found.end)
        parts.append(writer.slice(rows, 1, found.first_point, found.end))
    rows = writer.add("Where", [used, writer.add("Concat", parts, axis=1), nothing])
    return writer.add("Transpose", [rows], perm=[0, 2, 1])


def _taken(writer: NodeWriter, values: str, places: str, count: int) -> str:
    """Of (B, count, A) those at ``places`` (B, 1, k): (B, count, k)."""
    shape = writer.constant([1, count, 1])
    return writer.add("GatherElements", [values, writer.add("Expand", [places, shape])], axis=2)


def _classes(writer: NodeWriter, kinds: str | None, places: str, scores: str) -> str:
    """(B, 1, k), as float32."""
    if kinds is None:
        return writer.add("Mul", [scores, writer.constant(np.array(0, np.float32))])
    return writer.add("Cast", [writer.add("GatherElements", [kinds, places], axis=2)], to=TensorProto.FLOAT)
