"""Which stages a model needs, read from the model: its inputs, its outputs, and what its metadata says."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pipeline.errors import UserError
from pipeline.paths import ASSET_PREFIX, asset_folder, resolve
from tools.assets.catalogue import CATALOGUE

MULTIPOSE = "movenet-multipose.onnx"
MULTIPOSE_SIDE = 768
"""The most for the longer side of MultiPose's picture, where nobody asks for more: time grows with its area."""
YOLO_SIDE = 640

Shape = Sequence[int | str | None]
Decoder = Literal["decode_movenet_multipose", "decode_yolo_pose"]


@dataclass(frozen=True, slots=True)
class PoseModel:
    """A model as a graph names it, the stage that reads its outputs, and its picture.

    `size` is (width, height), or None where the model takes frames of any size; then `max_side` is the longest side
    that they may have, and `why` says where that comes from.
    """

    model: str
    decoder: Decoder
    size: tuple[int, int] | None = None
    max_side: int = MULTIPOSE_SIDE
    why: str = ""


class NotAPoseModel(ValueError):
    """The model says that it is something else, or nothing that could be known."""


def named_model(text: str | None, folder: Path) -> str:
    """How a graph names the model that a person names: a file (relative ones start at `folder`), or an asset.

    Raises UserError where it is neither.
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
    raise UserError(f"--model {text}: neither an ONNX file nor the name of an asset ({', '.join(models)})")


def model_file(model: str) -> Path:
    """Where the model lies that a graph names so."""
    return resolve(model.replace("$${", "${"), asset_folder())


def pose_model(model: str, side: int | None) -> PoseModel:
    """What the graph's `model` needs; `side` is the longest side of its picture, where a person chooses it.

    Raises UserError where it is no pose model.
    """
    if model == ASSET_PREFIX + MULTIPOSE:
        found = PoseModel(model, "decode_movenet_multipose")
    else:
        found = replace(_look_into(model_file(model)), model=model)
    if side is None:
        return found
    if found.size is None:
        return replace(found, max_side=side, why="as asked for")
    raise UserError(f"--size {side}: {model} takes pictures of {found.size[0]}x{found.size[1]} and no others")


def _look_into(path: Path) -> PoseModel:
    # ONNX Runtime takes a while to import, and the default model does without a look.
    from stages.inference.sessions import inspect_model, model_inputs  # noqa: PLC0415
    from stages.vision.model_contract import ContractError, Overrides, derive_contract, stated_size  # noqa: PLC0415

    session = inspect_model(path)
    inputs = model_inputs(session)
    outputs = {entry.name: tuple(entry.shape) for entry in session.get_outputs()}
    metadata = session.get_modelmeta().custom_metadata_map
    try:
        decoder = decoder_of(outputs, metadata)
        if len(inputs) != 1:
            raise NotAPoseModel(f"it has {len(inputs)} inputs, expected one: a picture")
        contract = derive_contract(*inputs[0], Overrides())
    except (NotAPoseModel, ContractError) as error:
        raise UserError(f"{path}: cannot be watched with: {error}.\n{EXPECTED}") from None
    sides = contract.width, contract.height
    if decoder == "decode_movenet_multipose" and None in sides:
        return PoseModel(str(path), decoder)
    stated = stated_size(metadata) or (YOLO_SIDE, YOLO_SIDE)
    return PoseModel(str(path), decoder, (sides[0] or stated[0], sides[1] or stated[1]))


EXPECTED = (
    "Expected an ONNX model that finds people and their keypoints: MoveNet MultiPose cut at its heads, as `camgraph "
    "assets pull` makes it, or YOLO-pose with one output of 5 + 3 x keypoints rows, such as [1, 56, 8400].\n"
    "For any other, write a graph with a decoder of your own; `--print-graph` shows one to begin with"
)


def decoder_of(outputs: Mapping[str, Shape], metadata: Mapping[str, str]) -> Decoder:
    """The stage that reads these outputs (name -> shape). Raises NotAPoseModel."""
    from stages.vision.movenet import HEAD_CHANNELS  # noqa: PLC0415 - with it comes OpenCV

    if set(HEAD_CHANNELS) <= set(outputs):
        return "decode_movenet_multipose"
    task = metadata.get("task", "pose")
    if task != "pose":
        raise NotAPoseModel(f"its metadata says that it is made for `{task}`")
    shown = ", ".join(f"{name} {list(shape)}" for name, shape in outputs.items())
    if len(outputs) != 1:
        raise NotAPoseModel(f"its outputs are {shown}")
    [shape] = outputs.values()
    rows = _rows(metadata)
    sides = [side if isinstance(side, int) and side > 0 else None for side in shape[1:]]
    # Without a word in the metadata, a shape must speak for itself: 56 rows are 17 keypoints.
    if len(shape) != 3 or not (rows in sides or ("kpt_shape" in metadata and None in sides)):
        raise NotAPoseModel(f"its output is {shown}, and neither side is {rows} (5 + 3 x keypoints)")
    return "decode_yolo_pose"


def _rows(metadata: Mapping[str, str]) -> int:
    """5 + 3 x keypoints, by the metadata that Ultralytics writes (`kpt_shape`, "[17, 3]"), else for 17."""
    try:
        keypoints, values = ast.literal_eval(metadata.get("kpt_shape", "[17, 3]"))
    except (ValueError, SyntaxError, TypeError):
        raise NotAPoseModel(f"its metadata says kpt_shape {metadata['kpt_shape']!r}, expected [keypoints, 3]") from None
    if values != 3:
        raise NotAPoseModel(f"its keypoints have {values} values each, expected x, y and visibility")
    return 5 + 3 * int(keypoints)
