"""The input for measuring a model: the user's frames, or pictures that look a little like frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from camgraph.stages.vision.model_contract import Converter, InputContract, declared_size
from camgraph.stages.vision.sample_pictures import sample_pictures
from camgraph.tools.models.chain import model_inputs
from camgraph.tools.models.declaration import DeclaredModel
from camgraph.tools.models.frames import source_name

_USUAL_SIZE = (640, 640)
_COUNT = 16


@dataclass(frozen=True)
class Pictures:
    """``rows``: the model's input for each of some pictures of one size, ready to run; ``source``: their origin."""

    contract: InputContract
    rows: NDArray[Any]
    source: str

    @property
    def size(self) -> tuple[int, int]:
        """(width, height)"""
        height, width = self.rows.shape[2:] if self.contract.layout == "nchw" else self.rows.shape[1:3]
        return width, height


def pictures_of(model: DeclaredModel, sources: Sequence[str]) -> Pictures:
    """Frames of these videos or pictures as `preprocess` makes them for the model, or random ones.

    Raises UserError if the model takes no such pictures, or a source cannot be read.
    """
    contract = model.contract()
    if sources:
        return Pictures(contract, _frames(model, sources, contract), ", ".join(map(source_name, sources)))
    signature = model.signature
    size = model.declaration.size or signature.picture_size() or declared_size(signature.metadata) or _USUAL_SIZE
    rows = Converter(contract).batch([sample_pictures(_COUNT, size)])
    return Pictures(contract, rows, "random")


def _frames(model: DeclaredModel, sources: Sequence[str], contract: InputContract) -> NDArray[Any]:
    """Those of the first one's size."""
    found = [inputs[contract.name] for inputs in islice(model_inputs(model, sources, _COUNT), _COUNT)]
    return np.concatenate([row for row in found if row.shape == found[0].shape])
