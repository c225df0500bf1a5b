"""Folds a selection into a YOLO's graph: only its best candidates leave the GPU, in the layout that they had.

    heads (B, R, A), R = 4 + C + V * K     scores (B, 1, A): the best class ──TopK──> places (B, 1, k) ─┐
                                           heads ──────────────────────────────────> taken there (B, R, k), best first
    turned (B, A, R) -> (B, k, R)          with an objectness, a score is the product of both

`decode` drops all but a few hundred of 8400 candidates, and suppresses overlaps from the best one down. So of the best
k it makes the people that it makes of all A, as long as no more than k score enough (`Selection.full`). If they do, it
makes the best of them: the people left out score less than all k.

If a value is no number anywhere in the heads of a picture, all that is selected of it is none, so that the picture is
dropped as it would be without a selection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto

from camgraph.stages.people.inference.model.node_writer import NodeWriter, graphs_in, rename_reads
from camgraph.stages.vision.recognition import Format, Reading, Signature

LEAST_OPSET = 11
_AXES_AS_INPUT = {"ReduceSum": 13, "ReduceMax": 18}
"""The opset from which on the axes of an operator are an input."""
_BOX = 4
_SELECTABLE: tuple[Format, ...] = ("yolo_pose", "yolo", "yolo_objectness")
"""Formats whose candidates do not say by their place where they are, as those of YOLOX do."""


class CannotSelect(Exception):
    """All candidates of the model leave the GPU; the text says why."""


@dataclass(frozen=True)
class Selection:
    """Of the candidates in ``output`` the best ``most``.

    ``axis``: that of the candidates, 1 or 2; ``anchors``: how many there are; ``rows``: values of each, of which those
    from ``first_score`` to before ``end_score`` are scores of classes; ``objectness``: the place of what they are
    multiplied by.
    """

    output: str
    most: int
    anchors: int
    rows: int
    axis: int
    first_score: int
    end_score: int
    objectness: int | None

    def full(self, selected: NDArray[Any], min_score: float) -> int:
        """Pictures of which candidates may be missing that score at least ``min_score``: the last one does.

        ``selected`` is (n, rows, most), or (n, most, rows).
        """
        last = selected[:, :, -1] if self.axis == 2 else selected[:, -1]
        scores = last[:, self.first_score : self.end_score].max(axis=1)
        if self.objectness is not None:
            scores = scores * last[:, self.objectness]
        return int((scores >= min_score).sum())


def selection_of(signature: Signature, reading: Reading | None, most: int) -> Selection:
    """What to select of a model's outputs. Raises CannotSelect if that cannot be done, or leaves none out."""
    if reading is None or reading.format not in _SELECTABLE:
        raise CannotSelect(f"its format is {reading.format if reading else 'not known'}, not one of {_SELECTABLE}")
    port = next(port for port in signature.outputs if port.name == reading.outputs[0])
    if port.onnx_type != "tensor(float)":
        raise CannotSelect(f"its candidates are {port.onnx_type}, expected tensor(float)")
    has_objectness = reading.format == "yolo_objectness"
    first = _BOX + has_objectness
    end = first + len(reading.classes)
    rows = end + reading.keypoints * reading.point_values
    axis = 1 if has_objectness or port.shape[1] != rows else 2
    anchors = port.shape[axis]
    if port.shape[3 - axis] != rows or not isinstance(anchors, int):
        raise CannotSelect(f"its candidates are {list(port.shape)}: their number is only known when it runs")
    if anchors <= most:
        raise CannotSelect(f"it has {anchors} candidates, no more than the {most} that are wanted")
    if most == rows and axis == 1 and not has_objectness:  # `decode` tells the two layouts apart by this side alone
        raise CannotSelect(f"{most} are wanted, as many as each has values: set another `candidates: {{most}}`")
    return Selection(port.name, most, anchors, rows, axis, first, end, _BOX if has_objectness else None)


def fold_selection(model: ModelProto, selection: Selection) -> None:
    """Changes the graph; its output keeps its name. Raises CannotSelect."""
    graph = model.graph
    opset = next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 0)
    if opset < LEAST_OPSET:
        raise CannotSelect(f"its opset is {opset}, expected {LEAST_OPSET} or later")
    writer = NodeWriter(graph)
    heads = writer.name("heads")
    made = [node for node in graph.node if selection.output in node.output]
    if not made:
        raise CannotSelect("its candidates are made by no node of its graph")
    rename_reads(graph, selection.output, heads)
    made[0].output[:] = [heads if name == selection.output else name for name in made[0].output]
    places = _places(writer, heads, selection, opset)
    taken = writer.add("GatherElements", [heads, places], axis=selection.axis)
    writer.add("Add", [taken, _nothing(writer, heads, opset)])
    writer.nodes[-1].output[0] = selection.output
    graph.node.extend(writer.nodes)
    graph.initializer.extend(writer.constants)
    entry = next(entry for entry in graph.output if entry.name == selection.output)
    entry.type.tensor_type.shape.dim[selection.axis].dim_value = selection.most
    for inner in (graph, *graphs_in(graph)):  # what the exporter noted of its shape
        for noted in [value for value in inner.value_info if value.name == selection.output]:
            inner.value_info.remove(noted)


def _places(writer: NodeWriter, heads: str, selection: Selection, opset: int) -> str:
    """int64, of the shape of the selection: the candidate of each value."""
    axis, across = selection.axis, 3 - selection.axis
    scores = writer.slice(heads, across, selection.first_score, selection.end_score)
    if selection.end_score - selection.first_score > 1:
        scores = _reduced(writer, "ReduceMax", scores, [across], opset)
    if selection.objectness is not None:
        sure = writer.slice(heads, across, selection.objectness, selection.objectness + 1)
        scores = writer.add("Mul", [scores, sure])
    best = writer.add("TopK", [scores, writer.constant([selection.most])], outputs=2, axis=axis)
    shape = [1, 1, 1]
    shape[across] = selection.rows
    return writer.add("Expand", [best, writer.constant(shape)])


def _nothing(writer: NodeWriter, heads: str, opset: int) -> str:
    """(B, 1, 1): 0, and no number for a picture whose heads hold a value that is none."""
    zeros = writer.add("Mul", [heads, writer.constant(np.array(0, np.float32))])
    return _reduced(writer, "ReduceSum", zeros, [1, 2], opset)


def _reduced(writer: NodeWriter, operator: str, value: str, axes: list[int], opset: int) -> str:
    if opset >= _AXES_AS_INPUT[operator]:
        return writer.add(operator, [value, writer.constant(axes)], keepdims=1)
    return writer.add(operator, [value], axes=axes, keepdims=1)
