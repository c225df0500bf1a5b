"""The picture that a model wants."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pydantic import Field

from pipeline.errors import SettingError, UserError
from pipeline.stage import Settings
from stages.inference.feeds import Feed, picture_input
from stages.vision.model_contract import (
    ContractError,
    InputContract,
    Layout,
    LayoutError,
    Order,
    Overrides,
    derive_contract,
)
from stages.vision.recognition import Declared, Reading, Signature, Unrecognised, recognise

NOTHING_ELSE: Mapping[str, Feed] = MappingProxyType({})
NOTHING_DECLARED = Declared()


class InputSettings(Settings):
    """The properties of the model's input that the model itself leaves open."""

    layout: Layout | None = Field(default=None, description="nchw or nhwc; by default by the place of the 3 channels")
    order: Order | None = Field(default=None, description="rgb or bgr; rgb by default")
    scale: float | None = Field(
        default=None,
        gt=0,
        description="The model's value of a pixel is pixel * scale; by default 1/255 for floats, else 1",
    )


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
    usual = reading_of(signature, kind)
    order, scale = (usual.picture.order, usual.picture.scale) if usual else (None, None)
    overrides = Overrides(
        declared.layout, declared.order or order, declared.scale if declared.scale is not None else scale
    )
    try:
        return derive_contract(*port, overrides)
    except LayoutError as error:
        raise SettingError(("input", "layout"), f"{model}: {error}") from None
    except ContractError as error:
        raise UserError(f"{model}: {error}") from None


def check_size(contract: InputContract, model: str, sender: str, size: tuple[int, int] | str) -> None:
    """Refuse, with a UserError, pictures of a stage that the model does not take."""
    if isinstance(size, str) or contract.accepts(*size):
        return
    wanted = f"{contract.width or 'any'} x {contract.height or 'any'}"
    raise UserError(
        f"{model} takes pictures of {wanted} (width x height), and `{sender}` makes {size[0]} x {size[1]}: "
        "remove its `size`, or choose another model"
    )


def mixed_output(signature: Signature, declared: Declared = NOTHING_DECLARED) -> str | None:
    """The output that holds the rows of all images of a batch, if there is one."""
    reading = reading_of(signature, declared)
    return reading.outputs[0] if reading is not None and reading.mixes_images else None


def reading_of(signature: Signature, declared: Declared = NOTHING_DECLARED) -> Reading | None:
    """The kind of the model, as far as it shows or is declared; inference itself needs no format."""
    try:
        return recognise(signature, declared)
    except Unrecognised:
        return None
