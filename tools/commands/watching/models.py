"""Finds the stages that a model needs by reading its inputs, outputs and metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.system.paths import ASSET_PREFIX, asset_folder, resolve
from camgraph.stages.people.preprocess import USUAL_MAX_SIDE
from camgraph.stages.vision.letterbox import FitName
from camgraph.tools.assets.catalogue import CATALOGUE

MULTIPOSE = "movenet-multipose.onnx"
YOLO_SIDE = 640


@dataclass(frozen=True, slots=True)
class PoseModel:
    """A model as a graph names it, and its picture.

    `size` is (width, height), or None if the model takes frames of any size; then `max_side` is their longest side, or
    camera -> longest side, and `why` gives the reason for it. `near`: the side of a second, smaller picture for people
    who are too large in the first.
    """

    model: str
    size: tuple[int, int] | None = None
    max_side: int | Mapping[str, int] = USUAL_MAX_SIDE
    near: int | None = None
    why: str = ""
    align: Literal["centre", "corner"] = "centre"
    pad: int = 114
    fit: FitName = "letterbox"


def named_model(text: str | None, folder: Path) -> str:
    """How a graph names the model that a person names: a file (relative ones start at `folder`), or an asset.

    Raises UserError if it is neither.
    """
    if text is None:
        return ASSET_PREFIX + MULTIPOSE
    path = resolve(text, folder)
    if path.is_file() and not text.startswith(ASSET_PREFIX):
        return str(path.absolute()).replace("${", "$${")
    models = [asset.name for asset in CATALOGUE if asset.name.endswith(".onnx")]
    name = text.removeprefix(ASSET_PREFIX)
    for known in models:
        if name in (known, known.removesuffix(".onnx")):
            return ASSET_PREFIX + known
    raise UserError(
        f"--model {text}: neither an ONNX file nor the name of an asset ({', '.join(models)})", error_id="model-missing"
    )


def model_file(model: str) -> Path:
    """The path of the model that a graph names so."""
    return resolve(model.replace("$${", "${"), asset_folder())


def pose_model(model: str, side: int | None) -> PoseModel:
    """The stages for the graph's `model`; `side` is the longest side of its picture, if the user chooses it.

    Raises UserError if it is no pose model.
    """
    if model == ASSET_PREFIX + MULTIPOSE:
        found = PoseModel(model)
    else:
        found = replace(_examined(model_file(model)), model=model)
    if side is None:
        return found
    if found.size is None:
        return replace(found, max_side=side, why="as asked for")
    raise UserError(
        f"--size {side}: {model} takes only pictures of {found.size[0]}x{found.size[1]}", error_id="model-does-not-fit"
    )


def _examined(path: Path) -> PoseModel:
    # ONNX Runtime takes a while to import, and the default model does without a look.
    from camgraph.stages.people.inference.signatures import read_model, signature_of_file  # noqa: PLC0415
    from camgraph.stages.vision.model_contract import declared_size  # noqa: PLC0415
    from camgraph.stages.vision.recognition import Declared  # noqa: PLC0415

    try:
        reading = read_model(path, Declared())
    except UserError as error:
        raise UserError(f"{error}.\n{EXPECTED}", error_id="model-does-not-fit") from None
    if not reading.keypoints:
        raise UserError(
            f"{path}: it finds no keypoints ({reading.format}: {reading.why}).\n{EXPECTED}",
            error_id="model-does-not-fit",
        )
    picture = reading.picture
    if reading.format == "movenet_multipose" and reading.size is None:
        return PoseModel(str(path))
    size = reading.size or declared_size(signature_of_file(path).metadata) or (YOLO_SIDE, YOLO_SIDE)
    return PoseModel(str(path), size, align=picture.align, pad=picture.pad, fit=picture.fit)


EXPECTED = (
    "Expected an ONNX model that finds people and their keypoints: MoveNet MultiPose cut at its heads, as `camgraph "
    "assets pull` makes it, YOLO-pose, YOLO-NAS-Pose or RTMO.\n"
    "For any other, write a graph with a decoder of your own; `--print-graph` shows one to begin with"
)
