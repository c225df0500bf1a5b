"""What a model is run on when it is measured: frames of one's own, or pictures that look a little like frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from pipeline.errors import UserError
from stages.inference.contracts import InputSettings, read_contract
from stages.inference.signatures import signature_of_file
from stages.vision.model_contract import Converter, InputContract, stated_size
from tools.models.chain import model_inputs

U8 = NDArray[np.uint8]
_USUAL_SIZE = (640, 640)
_COUNT = 16
_SEED = 20


@dataclass(frozen=True)
class Pictures:
    """``rows``: the model's input for each of some pictures of one size, ready to run; ``source``: what they show."""

    contract: InputContract
    rows: NDArray[Any]
    source: str

    @property
    def size(self) -> tuple[int, int]:
        """(width, height)"""
        height, width = self.rows.shape[2:] if self.contract.layout == "nchw" else self.rows.shape[1:3]
        return width, height


def pictures_of(model: Path, sources: Sequence[str], size: tuple[int, int] | None) -> Pictures:
    """Frames of these videos or pictures as `preprocess` makes them for the model, or random ones of this size.

    Raises UserError where the model takes no such pictures, or a source cannot be read.
    """
    signature = signature_of_file(model)
    contract = read_contract(signature, str(model), InputSettings())
    if sources:
        if size is not None:
            raise UserError("--size is for random pictures: frames come in the size that `preprocess` gives them")
        return Pictures(contract, _frames(model, sources, contract), ", ".join(Path(one).name for one in sources))
    size = size or signature.picture_size() or stated_size(signature.metadata) or _USUAL_SIZE
    if not contract.accepts(*size):
        wanted = f"{contract.width or 'any'}x{contract.height or 'any'}"
        raise UserError(f"--size {size[0]}x{size[1]}: {model} takes pictures of {wanted}")
    rows = Converter(contract).batch([random_pictures(_COUNT, size)])
    return Pictures(contract, rows, "random")


def _frames(model: Path, sources: Sequence[str], contract: InputContract) -> NDArray[Any]:
    """Those of the first one's size."""
    found = [inputs[contract.name] for inputs in islice(model_inputs(model, sources, _COUNT), _COUNT)]
    return np.concatenate([row for row in found if row.shape == found[0].shape])


def random_pictures(count: int, size: tuple[int, int]) -> U8:
    """(count, H, W, 3): coarse patches with a little noise. As in frames, neighbours resemble each other."""
    random = np.random.default_rng(_SEED)
    width, height = size
    coarse = random.integers(0, 256, (count, max(2, height // 32), max(2, width // 32), 3), np.uint8)
    smooth = np.stack([cv2.resize(one, size, interpolation=cv2.INTER_CUBIC) for one in coarse])
    noise = random.integers(-8, 9, (count, height, width, 3), np.int16)
    return np.asarray(np.clip(smooth + noise, 0, 255), np.uint8)
