"""Models for a GPU: a copy takes uint8 pictures, for layout, order and scale are in its graph, and gives less away.

    the model's file, its sha256 ──> is a copy in the cache, and whole? ──yes──> the copy's file
                                       │ no
                                       └> folded, opened once ──> its file in the cache, or else its bytes in memory

    CACHE/folded/MODEL-WHAT-COPY.onnx      sha256 of the model's file, of what was folded, and of the copy itself

A copy gets the bits that `Converter` gives the model, and its outputs are the model's own, or a selection of them
(`candidate_selection`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import onnx
from onnx import ModelProto

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.pipeline.system.disk import write_whole
from camgraph.pipeline.system.paths import asset_folder
from camgraph.stages.people.inference.engines.engine import Source
from camgraph.stages.people.inference.engines.onnxruntime_engine import analyse
from camgraph.stages.people.inference.model.candidate_selection import CannotSelect, Selection, fold_selection
from camgraph.stages.people.inference.model.model_files import stored_bytes
from camgraph.stages.people.inference.model.pixel_folding import fold_pixels
from camgraph.stages.people.inference.signatures import signature_of_file, why_not_analysed
from camgraph.stages.vision.model_contract import NOTHING_NORMALISED, InputContract
from camgraph.stages.vision.recognition import Port
from camgraph.stages.vision.window_contract import WindowContract

_FOLDING = 1
"""Raise it when `fold_pixels` or `fold_selection` makes another graph of the same model: older copies are not taken
then.
"""
_MOST_BYTES = 512 * 1024**2
"""Folding holds a model several times in memory, and the pixels are little beside the work of a larger one."""
_DIGITS = 16


class CannotFold(Exception):
    """The model has to run as it is; the text says why."""


@dataclass(frozen=True)
class Folds:
    """The steps that are folded into a model that wants ``contract`` for its pictures: ``pixels``, its preprocessing,
    or not.
    """

    contract: InputContract
    pixels: bool = True
    selection: Selection | None = None


@dataclass(frozen=True)
class FoldedModel:
    """``kept``: the path of the copy, for people."""

    source: Source
    kept: str


def folded_contract(contract: InputContract) -> InputContract:
    """The input of the copy of a model that wants this."""
    return replace(contract, layout="nhwc", dtype="uint8", order="rgb", scale=1.0, normalisation=NOTHING_NORMALISED)


def why_no_pixels(contract: InputContract) -> str:
    """Why the preprocessing of a model that wants this is not folded; "" if it can be."""
    if isinstance(contract, WindowContract):
        return "it takes windows of keypoints"
    if contract.takes_pixels_as_they_are:
        return "it takes uint8 RGB pictures as they are"
    if not contract.dtype.startswith("float") and contract.scale != 1.0:
        return f"its input is {contract.dtype}, and scaled pixels are cut to whole numbers in other ways on a GPU"
    return ""


def folded_model(path: Path, sha256: str, folds: Folds) -> FoldedModel:
    """The copy of a model with this folded into it, made or found. ``sha256``: of the model, verified.

    Raises CannotFold, and UserError if it is no model.
    """
    if why := _why_as_it_is(path):
        raise CannotFold(why)
    try:
        folder = asset_folder().parent / "folded"
    except (UserError, EnvironmentProblem) as error:  # nothing that a copy in memory needs
        return FoldedModel(_folded(path, folds), f"in memory: {error}")
    begin = f"{sha256[:_DIGITS]}-{_digest(repr((_FOLDING, folds)).encode())[:_DIGITS]}-"
    if found := _kept(folder, begin):
        return FoldedModel(found, str(found))
    copy = _folded(path, folds)
    file = folder / f"{begin}{_digest(copy)}.onnx"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(file, copy)
    except OSError as error:
        return FoldedModel(copy, f"in memory: {folder} cannot be written: {error.strerror}")
    return FoldedModel(file, str(file))


def _why_as_it_is(path: Path) -> str:
    if why := why_not_analysed(path):
        return f"it is {why}"
    size = stored_bytes(path)
    if size > _MOST_BYTES:
        return f"it has {size / 1e6:.0f} MB, expected at most {_MOST_BYTES / 1e6:.0f} MB"
    return ""


def _kept(folder: Path, begin: str) -> Path | None:
    """A copy that is as it was written; a disk that was full, or lost its power, may have left another.

    None also if the folder cannot be read.
    """
    try:
        files = sorted(folder.glob(f"{begin}*.onnx"))
    except OSError:
        return None
    for file in files:
        with suppress(OSError), file.open("rb") as opened:
            if file.stem == begin + hashlib.file_digest(opened, "sha256").hexdigest():
                return file
    return None


def _folded(path: Path, folds: Folds) -> bytes:
    """The copy, which loads and has the model's outputs. Raises CannotFold."""
    model: ModelProto = onnx.load(str(path), format="protobuf")  # with its weights in other files, if it has such
    if folds.selection:
        try:
            fold_selection(model, folds.selection)
        except CannotSelect as error:
            raise CannotFold(f"its candidates cannot be selected: {error}") from None
    if folds.pixels:
        fold_pixels(model.graph, folds.contract)
    what = " and ".join(["its preprocessing"] * folds.pixels + ["a selection"] * bool(folds.selection))
    copy: bytes = model.SerializeToString()
    try:
        seen = analyse(copy)
    except UserError as error:
        raise CannotFold(f"with {what} in its graph it does not load: {error}") from None
    if _declared(seen.outputs) != _declared(signature_of_file(path).outputs):
        raise CannotFold(f"with {what} in its graph its outputs are others")
    return copy


def _declared(outputs: Sequence[Port]) -> list[tuple[str, str, int]]:
    """Sides without a number are called differently each time that a model is opened."""
    return [(port.name, port.onnx_type, len(port.shape)) for port in outputs]


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
