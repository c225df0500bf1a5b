"""The picture that a model wants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from pydantic import Field, FiniteFloat, field_validator

from camgraph.pipeline.errors import SettingError, UserError
from camgraph.pipeline.stage import Settings
from camgraph.stages.facts import PictureFact
from camgraph.stages.people.inference.feeds import Feed, picture_input
from camgraph.stages.vision.foreign_text import shown
from camgraph.stages.vision.model_contract import (
    NOTHING_NORMALISED,
    ContractError,
    InputContract,
    Layout,
    LayoutError,
    Normalisation,
    Order,
    Overrides,
    derive_contract,
)
from camgraph.stages.vision.recognition import Declared, Format, Port, Reading, Signature, Unrecognised, recognise
from camgraph.stages.vision.recognition.prepared import PICTURE
from camgraph.stages.vision.recognition.transformers import SIZES
from camgraph.stages.vision.window_contract import (
    WINDOW_LAYOUTS,
    WindowContract,
    WindowLayout,
    is_window,
    window_contract,
)

NOTHING_ELSE: Mapping[str, Feed] = MappingProxyType({})
NOTHING_DECLARED = Declared()
Triple = tuple[FiniteFloat, FiniteFloat, FiniteFloat]
_OF_MANY_KINDS = ("efficient_nms", "yolo_end2end")
_IMAGENET = "mean 0.485,0.456,0.406 and std 0.229,0.224,0.225"
_NORMALISED: Mapping[Format, tuple[str, str]] = {
    "classes": ("a classifier", f"those of torchvision want {_IMAGENET}"),
    "simcc": ("a model of this format", f"those of mmpose want {_IMAGENET}"),
    "heatmaps": ("a model of this format", f"most want {_IMAGENET}"),
    "detr": ("a model of this format", f"RF-DETR wants {_IMAGENET}"),
    "detr_softmax": ("a model of this format", f"DETR wants {_IMAGENET}"),
    "ppyoloe": ("a model of this format", f"older ones want {_IMAGENET}"),
    "ppyoloe_raw": ("a model of this format", f"older ones want {_IMAGENET}"),
    "nanodet": ("a model of this format", "most want mean 0.406,0.456,0.485 and std 0.225,0.224,0.229"),
    "picodet": ("a model of this format", f"those of PaddleDetection want {_IMAGENET}"),
    "scrfd": ("a model of this format", "those of InsightFace want mean 0.5,0.5,0.5 and std 0.502,0.502,0.502"),
}
"""Formats whose models were often trained with normalised pixels: what these are called, and which want what."""
_PADDLE_FEEDS: Mapping[str, Feed] = {"scale_factor": (1, 1), "im_shape": "picture_height_width"}
_USUAL_FEEDS: Mapping[Format, Mapping[str, Feed]] = {
    "rtdetr": {SIZES: "picture_width_height"},
    "ppyoloe": _PADDLE_FEEDS,
    "ppyoloe_raw": _PADDLE_FEEDS,
}
"""Of each format: inputs beside the picture, and what fills them so that its boxes are in pixels of the picture."""


class InputSettings(Settings):
    """The properties of the model's input that the model itself leaves open."""

    layout: Layout | WindowLayout | None = Field(
        default=None,
        description="Of pictures nchw or nhwc, by default by the place of the 3 channels; of windows of keypoints "
        "nctvm (ST-GCN), nmtvc (PYSKL), nctv or ntvc, by default by the place of x, y and score, if it has five axes",
    )
    order: Order | None = Field(default=None, description="rgb or bgr; rgb by default")
    scale: float | None = Field(
        default=None,
        gt=0,
        description="The model's value of a pixel is pixel * scale; by default 1/255 for floats, else 1",
    )
    mean: Triple | None = Field(
        default=None,
        description="Three numbers, in the model's order of channels: subtracted from the scaled values; 0 by default. "
        "Most classifiers were trained with [0.485, 0.456, 0.406]",
    )
    std: Triple | None = Field(
        default=None,
        description="Three numbers: what is left is divided by them; 1 by default. Most classifiers were trained with "
        "[0.229, 0.224, 0.225]",
    )

    @field_validator("std")
    @classmethod
    def _divides(cls, values: Triple | None) -> Triple | None:
        if values and 0 in values:
            raise ValueError("a channel cannot be divided by 0")
        return values

    @property
    def normalisation(self) -> Normalisation:
        """The arithmetic behind the scale."""
        usual = NOTHING_NORMALISED
        return Normalisation(self.mean or usual.mean, self.std or usual.std)


def read_contract(
    signature: Signature,
    model: str,
    declared: InputSettings,
    feeds: Mapping[str, Feed] = NOTHING_ELSE,
    kind: Declared = NOTHING_DECLARED,
) -> InputContract:
    """The picture that a model wants: by the settings, or else as usual for its kind. Raises UserError.

    ``kind``: facts about the model other than its input.
    """
    port = picture_input(signature, model, feeds)
    if is_window(port.shape, declared.layout):
        _check_no_pixels(declared, model)
        return _windows(port, model, _as_windows(declared.layout))
    usual = reading_of(signature, kind)
    order, scale = (usual.picture.order, usual.picture.scale) if usual else (None, None)
    scale = scale if declared.scale is None else declared.scale
    overrides = Overrides(_as_pictures(declared.layout), declared.order or order, scale, declared.normalisation)
    try:
        contract = derive_contract(*port, overrides)
    except LayoutError as error:
        raise SettingError(("input", "layout"), f"{model}: {error}") from None
    except ContractError as error:
        raise UserError(f"{model}: {error}", error_id="model-does-not-fit") from None
    return _for_one_picture(contract, model, usual) if usual is not None and usual.alone else contract


def _for_one_picture(contract: InputContract, model: str, reading: Reading) -> InputContract:
    """The contract of a model whose outputs do not tell the pictures of a batch apart. Raises UserError."""
    if contract.batch not in (None, 1):
        outputs = ", ".join(map(shown, reading.outputs))
        raise UserError(
            f"{model} takes {contract.batch} pictures at once, and its outputs ({outputs}) "
            "have no axis for them: export it for one picture",
            error_id="model-does-not-fit",
        )
    return replace(contract, batch=1)


def _as_windows(layout: Layout | WindowLayout | None) -> WindowLayout | None:
    return next((one for one in WINDOW_LAYOUTS if one == layout), None)


def _as_pictures(layout: Layout | WindowLayout | None) -> Layout | None:
    pictures: tuple[Layout, ...] = ("nchw", "nhwc")
    return next((one for one in pictures if one == layout), None)


def _windows(port: Port, model: str, layout: WindowLayout | None) -> WindowContract:
    """The windows of keypoints that a model wants. Raises UserError."""
    try:
        return window_contract(*port, layout)
    except LayoutError as error:
        raise SettingError(("input", "layout"), f"{model}: {error}") from None
    except ContractError as error:
        raise UserError(f"{model}: {error}", error_id="model-does-not-fit") from None


def _check_no_pixels(declared: InputSettings, model: str) -> None:
    """Raise SettingError if something is said about the pixels of a model that takes none."""
    for name in ("order", "scale", "mean", "std"):
        if getattr(declared, name) is not None:
            raise SettingError(("input", name), f"{model} takes windows of keypoints, which have no pixels: remove it")


def pixel_doubts(signature: Signature, declared: InputSettings, kind: Declared) -> Iterator[str]:
    """Facts about the pixels that do not show in a model of this kind, and are taken to be as usual."""
    reading, port = reading_of(signature, kind), signature.picture_port()
    is_written = signature.task is not None or PICTURE in signature.metadata
    if reading is None or port is None or "float" not in port.onnx_type or is_written:
        return
    if max(declared.mean or (0.0,)) > 1 and declared.scale is None:
        yield "`mean` is above 1, and pixels are scaled to 0 to 1 before: for means of pixels, write `scale: 1`"
    if reading.format in _OF_MANY_KINDS and not (declared.order or declared.scale):
        yield (
            f"many kinds of models have outputs as these ({reading.format}), which do not show how it wants its "
            f"pixels: taken to be {reading.picture.order}, 0 to 1; one that wants them as YOLOX does needs order bgr "
            "and scale 1"
        )
    if reading.format in _NORMALISED and not (declared.scale or declared.mean or declared.std):
        kind_of_model, usual = _NORMALISED[reading.format]
        yield f"{kind_of_model} does not show how its pixels were normalised: taken to be 0 to 1; {usual}"


def check_kind(contract: InputContract, model: str, sender: str, fact: PictureFact) -> None:
    """Refuse, with a UserError, pictures for a model of keypoints, and the other way round."""
    wants_windows = isinstance(contract, WindowContract)
    if wants_windows != fact.get("keypoints", False):
        wanted, given, way = (
            ("windows of keypoints", "pictures", "`keypoint_windows`, behind `track`,")
            if wants_windows
            else ("pictures", "windows of keypoints", "`preprocess`")
        )
        raise UserError(
            f"{model} takes {wanted}, and `{sender}` makes {given}: put {way} before it", error_id="model-does-not-fit"
        )


def check_size(contract: InputContract, model: str, sender: str, size: tuple[int, int] | str) -> None:
    """Refuse, with a UserError, pictures of a stage that the model does not take."""
    if isinstance(size, str) or contract.accepts(*size):
        return
    wanted = f"{contract.width or 'any'} x {contract.height or 'any'}"
    if isinstance(contract, WindowContract):
        raise UserError(
            f"{model} takes windows of {contract.height or 'any'} steps and {contract.width or 'any'} joints, and "
            f"`{sender}` makes {size[1]} steps and {size[0]} joints: remove its `steps` and `skeleton`, or choose "
            "another model",
            error_id="model-does-not-fit",
        )
    raise UserError(
        f"{model} takes pictures of {wanted} (width x height), and `{sender}` makes {size[0]} x {size[1]}: "
        "remove its `size`, or choose another model",
        error_id="model-does-not-fit",
    )


def reading_of(signature: Signature, declared: Declared = NOTHING_DECLARED) -> Reading | None:
    """The kind of the model, as far as it shows or is declared; inference itself needs no format."""
    try:
        return recognise(signature, declared)
    except Unrecognised:
        return None


def usual_feeds(signature: Signature, declared: Declared = NOTHING_DECLARED) -> Mapping[str, Feed]:
    """What fills the model's further inputs, if its format says that."""
    reading = reading_of(signature, declared)
    known = _USUAL_FEEDS.get(reading.format, {}) if reading is not None else {}
    return {port.name: known[port.name] for port in signature.inputs if port.name in known}
