"""`camgraph model prepare`: a model that takes pixels as they are, and gives rows of people, as far as is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import onnx
from onnx import ModelProto, TensorProto, helper

from pipeline.errors import UserError
from stages.inference.contracts import reading_of
from stages.inference.model.node_writer import NodeWriter
from stages.inference.model.pixel_folding import NOTHING_NORMALISED, Normalisation, Scaling, fold_pixels
from stages.inference.signatures import signature_of_file
from stages.vision.model_contract import InputContract
from stages.vision.recognition import Reading, Signature
from stages.vision.recognition.prepared import FORMAT, PICTURE, SUPPRESSION
from stages.vision.recognition.reading import Picture
from tools.models.convert.lighter import whole_model
from tools.models.convert.model_output import save_model, written
from tools.models.convert.pixel_knowledge import check_known, doubts
from tools.models.convert.suppression_folding import FOLDABLE, LEAST_OPSET, Suppression, columns, fold_suppression
from tools.models.declaration import NOTHING_DECLARED, Declaration, DeclaredModel


@dataclass(frozen=True)
class Asked:
    """The steps to fold, and the model's reading. ``suppression`` is None if the outputs stay."""

    suppression: Suppression | None = None
    normalisation: Normalisation = NOTHING_NORMALISED
    declaration: Declaration = NOTHING_DECLARED


def prepare(model: Path, out: Path, asked: Asked) -> list[str]:
    """Writes the model with the requested steps in its graph; reports the folded ones, a line each.

    Raises UserError if it is no model, or if something cannot be folded.
    """
    declared = DeclaredModel(model, asked.declaration)
    signature, contract, reading = declared.signature, declared.contract(), _reading(declared)
    pixels = not contract.takes_pixels_as_they_are or not asked.normalisation.changes_nothing
    if not pixels and asked.suppression is None:
        raise UserError(
            f"{model}: it takes uint8 RGB pictures as they are: there is nothing to fold, except by --nms",
            error_id="model-conversion",
        )
    if pixels:
        check_known(declared, contract)
    made = whole_model(model)
    remarks = list(doubts(declared, contract, asked.normalisation)) if pixels else []
    if asked.suppression is not None:
        remarks.append(_fold_rows(model, made, _foldable(declared), asked.suppression))
    if pixels:
        remarks.append(_in_words(contract, fold_pixels(made.graph, contract, asked.normalisation), asked.normalisation))
    helper.set_model_props(made, _metadata(made, signature, reading, asked.suppression))
    with written(model, out) as part:
        save_model(made, part)
    return remarks


def _reading(declared: DeclaredModel) -> Reading | None:
    """The model's reading; None if it is not recognised."""
    return reading_of(declared.signature, declared.declaration.kind)


def _foldable(declared: DeclaredModel) -> Reading:
    """The model's reading, if its overlaps can be suppressed in the graph. Raises UserError."""
    reading = declared.reading()
    if reading.format not in FOLDABLE:
        raise UserError(
            f"{declared.path}: --nms: it is {reading.format} ({reading.why}), whose overlaps are not suppressed in the "
            f"graph; expected one of {', '.join(FOLDABLE)}: leave --nms out",
            error_id="model-conversion",
        )
    return reading


def _fold_rows(model: Path, made: ModelProto, reading: Reading, asked: Suppression) -> str:
    opset = next((entry.version for entry in made.opset_import if entry.domain in ("", "ai.onnx")), 0)
    if opset < LEAST_OPSET:
        raise UserError(
            f"{model}: --nms: its opset is {opset}; expected {LEAST_OPSET} or later: export the model again with one",
            error_id="model-conversion",
        )
    [output] = made.graph.output
    writer = NodeWriter(made.graph)
    heads = output.name
    if output.type.tensor_type.elem_type != TensorProto.FLOAT:
        heads = writer.add("Cast", [heads], to=TensorProto.FLOAT)
    rows = fold_suppression(writer, heads, reading, _is_turned(output, reading), asked)
    made.graph.node.extend(writer.nodes)
    made.graph.initializer.extend(writer.constants)
    batch = output.type.tensor_type.shape.dim[0]
    shape = [batch.dim_value or batch.dim_param or None, asked.most, columns(reading)]
    del made.graph.output[:]
    made.graph.output.append(helper.make_tensor_value_info(rows, TensorProto.FLOAT, shape))
    return (
        f"suppression: score >= {asked.min_score:g}, overlaps above {asked.iou:g} of one class, the best {asked.most}: "
        f"rows of {columns(reading)}"
    )


def _is_turned(output: onnx.ValueInfoProto, reading: Reading) -> bool:
    """Whether the heads are one row, and not one column, for each anchor."""
    if reading.format in ("yolox", "yolo_objectness"):
        return True
    rows = columns(reading) - 2 + len(reading.classes)
    sides = [side.dim_value for side in output.type.tensor_type.shape.dim]
    return bool(sides[1] != rows and sides[2] == rows)


def _in_words(contract: InputContract, scaling: Scaling, normalisation: Normalisation) -> str:
    order = f", {contract.order}" if contract.order == "bgr" else ""
    normalised = "" if normalisation.changes_nothing else f", (value - {normalisation.mean}) / {normalisation.std}"
    return (
        f"input: uint8 RGB pictures (n, H, W, 3); in the graph pixels {scaling.in_words()}{normalised}, "
        f"as {contract.dtype} {contract.layout}{order}"
    )


def _metadata(
    made: ModelProto, signature: Signature, reading: Reading | None, suppression: Suppression | None
) -> dict[str, str]:
    """The model's own metadata, and the new facts."""
    metadata = {entry.key: entry.value for entry in made.metadata_props}
    if reading is None:
        return {**metadata, PICTURE: str({"order": "rgb", "scale": 1.0})}
    place = reading.picture
    metadata[PICTURE] = str(asdict(Picture("rgb", 1.0, place.align, place.pad)))
    metadata[FORMAT] = reading.format if suppression is None else "yolo_end2end"
    metadata["names"] = str(dict(enumerate(reading.classes)))
    if reading.keypoints:
        metadata["kpt_shape"] = str([reading.keypoints, reading.point_values])
    if suppression is not None:
        metadata[SUPPRESSION] = str(asdict(suppression))
    return metadata


def prepared_lines(out: Path, remarks: list[str]) -> Iterator[str]:
    """The new model as camgraph reads it: opened, so that nothing is claimed of a file that does not load."""
    signature = signature_of_file(out)
    reading = reading_of(signature)
    yield from remarks
    yield f"written: {out}  {out.stat().st_size / 1e6:.1f} MB"
    if reading is not None:
        yield f"camgraph takes it for {reading.format}: {reading.why}"
