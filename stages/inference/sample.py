"""The input for trials of a provider."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.messages import Array
from stages.inference.feeds import Feeds
from stages.inference.model_inputs import black
from stages.vision.model_contract import Converter, InputContract
from stages.vision.sample_pictures import sample_pictures


def sample(contract: InputContract, feeds: Feeds, rows: int, size: tuple[int, int]) -> Mapping[str, Array]:
    """A model's inputs for so many pictures of this size (width, height), which look a little like frames."""
    picture = Converter(contract).batch([sample_pictures(rows, size)])
    return {**black(contract, feeds, rows, size), contract.name: picture}
