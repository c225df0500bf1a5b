"""What a classifier gives, as labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from camgraph.pipeline.errors import BadItem
from camgraph.pipeline.testing import feed, opened, stamp
from camgraph.stages.messages import Tensor
from camgraph.stages.people.classify import Classify

SIZE = (320, 240)


def test_names_that_are_too_few(tmp_path: Path) -> None:
    item = Tensor(stamp(), {"logits": np.zeros((1, 2), np.float32)}, np.ones((1, 4), np.float32), SIZE, (64, 64))
    with (
        opened(Classify, {"class_names": ["a", "b", "c"]}, folder=tmp_path, stage="kinds") as stage,
        pytest.raises(BadItem, match="shape: the model gives 2 scores, and there are 3 names of classes"),
    ):
        feed(stage, [item])


@pytest.mark.parametrize("shape", [(2,), (1, 2, 1), (1, 0), (2, 2)])
def test_scores_of_another_shape_cost_their_frame(tmp_path: Path, shape: tuple[int, ...]) -> None:
    item = Tensor(stamp(), {"logits": np.zeros(shape, np.float32)}, np.ones((1, 4), np.float32), SIZE, (64, 64))
    with opened(Classify, {}, folder=tmp_path) as stage, pytest.raises(BadItem, match="expected an output `logits`"):
        feed(stage, [item])
