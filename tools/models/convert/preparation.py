"""`camgraph model prepare`: a model that takes pixels as they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

from onnx import ModelProto, helper

from camgraph.pipeline.errors import UserError
from camgraph.stages.people.inference.contracts import pixel_doubts, reading_of
from camgraph.stages.people.inference.model.pixel_folding import Scaling, fold_pixels
from camgraph.stages.people.inference.signatures import signature_of_file
from camgraph.stages.vision.model_contract import InputContract
from camgraph.stages.vision.recognition import Reading
from camgraph.stages.vision.recognition.prepared import FORMAT, PICTURE
from camgraph.tools.models.convert.lighter import whole_model
from camgraph.tools.models.convert.model_output import save_model, written
from camgraph.tools.models.declaration import Declaration, DeclaredModel


def prepare(model: Path, out: Path, declaration: Declaration) -> list[str]:
    """Writes the model with the requested steps in its graph; reports the folded ones, a line each.

    Raises UserError if it is no model, or if something cannot be folded.
    """
    declared = DeclaredModel(model, declaration)
    contract, reading = declared.contract(), reading_of(declared.signature, declared.declaration.kind)
    if contract.takes_pixels_as_they_are:
        raise UserError(
            f"{model}: it takes uint8 RGB pictures as they are: there is nothing to fold", error_id="model-conversion"
        )
    check_known(declared, contract)
    made = whole_model(model)
    doubts = pixel_doubts(declared.signature, declaration.input, declaration.kind)
    remarks = [*(f"note: {doubt}" for doubt in doubts), _in_words(contract, fold_pixels(made.graph, contract))]
    helper.set_model_props(made, _metadata(made, reading))
    with written(model, out) as part:
        save_model(made, part)
    return remarks


def _in_words(contract: InputContract, scaling: Scaling) -> str:
    normalisation = contract.normalisation
    order = f", {contract.order}" if contract.order == "bgr" else ""
    normalised = "" if normalisation.changes_nothing else f", (value - {normalisation.mean}) / {normalisation.std}"
    return (
        f"input: uint8 RGB pictures (n, H, W, 3); in the graph pixels {scaling.in_words()}{normalised}, "
        f"as {contract.dtype} {contract.layout}{order}"
    )


def _metadata(made: ModelProto, reading: Reading | None) -> dict[str, str]:
    """The model's own metadata, and the new facts."""
    metadata = {entry.key: entry.value for entry in made.metadata_props}
    if reading is None:
        return {**metadata, PICTURE: str({"order": "rgb", "scale": 1.0})}
    place = reading.picture
    metadata[PICTURE] = str(asdict(replace(place, order="rgb", scale=1.0)))
    metadata[FORMAT] = reading.format
    metadata["names"] = str(dict(enumerate(reading.classes)))
    if reading.keypoints:
        metadata["kpt_shape"] = str([reading.keypoints, reading.point_values])
    return metadata


def prepared_lines(out: Path, remarks: list[str]) -> Iterator[str]:
    """The new model as camgraph reads it: opened, so that nothing is claimed of a file that does not load."""
    signature = signature_of_file(out)
    reading = reading_of(signature)
    yield from remarks
    yield f"written: {out}  {out.stat().st_size / 1e6:.1f} MB"
    if reading is not None:
        yield f"camgraph takes it for {reading.format}: {reading.why}"


# ---- the facts about a model's pixels, kept before they are folded into its graph, where nobody sees them again
#
# what it is shows, and with it order and scale    folded
# outputs that many kinds of models have           folded as a graph would give the pixels, with a note
# what it is does not show                         refused, until somebody says it


def check_known(declared: DeclaredModel, contract: InputContract) -> None:
    """Raise UserError if neither the model nor the user tells how the model wants its pixels."""
    if _is_declared(declared, contract):
        return
    try:
        declared.reading()
    except UserError as error:
        raise UserError(
            f"{error}; so nobody knows how it wants its pixels, and nothing is folded: say what it is (--format), or "
            "how it wants them (--order and --scale)",
            error_id="model-conversion",
        ) from None


def _is_declared(declared: DeclaredModel, contract: InputContract) -> bool:
    given = declared.declaration.input
    return given.order is not None and (given.scale is not None or not _is_scaled(contract))


def _is_scaled(contract: InputContract) -> bool:
    """Whether pixels become other numbers: a model that takes whole numbers takes 0 to 255."""
    return contract.dtype.startswith("float")
