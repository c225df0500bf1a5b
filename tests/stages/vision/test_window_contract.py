"""The windows of keypoints that a model wants, by its input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from camgraph.stages.vision.model_contract import ContractError, LayoutError
from camgraph.stages.vision.window_contract import WindowContract, converter_of, window_contract

FLOAT = "tensor(float)"


def of(*shape: Any, kind: str = FLOAT, layout: Any = None) -> WindowContract:
    return window_contract("x", shape, kind, layout)


@pytest.mark.parametrize(
    ("shape", "axes", "steps", "joints", "bodies", "values"),
    [
        (("n", 3, 100, 17, 1), "nctvm", 100, 17, 1, 3),
        ((1, 3, 300, 18, 2), "nctvm", 300, 18, 2, 3),
        (("n", 1, 48, 17, 3), "nmtvc", 48, 17, 1, 3),
        (("n", 2, "t", 17, 3), "nmtvc", None, 17, 2, 3),
        (("n", 2, 64, 17, 1), "nctvm", 64, 17, 1, 2),
    ],
)
def test_the_layout_is_seen_by_the_values_of_a_joint(
    shape: Any, axes: str, steps: int | None, joints: int, bodies: int, values: int
) -> None:
    found = of(*shape)
    assert (found.axes, found.height, found.width, found.bodies, found.values) == (axes, steps, joints, bodies, values)
    assert found.coordinates == ("centred" if axes == "nctvm" else "signed")
    assert found.skeleton == ("openpose-18" if joints == 18 else "coco-17")


NO_WINDOWS = [("n", 17, 48, 56, 56), ("n", 3, "t", "v", 3), ("n", 3, 16, 112, 112), (1, None, 9, 9, None)]


@pytest.mark.parametrize("shape", NO_WINDOWS)
def test_what_may_be_something_else_is_asked_for(shape: Any) -> None:
    with pytest.raises(ContractError, match="for windows of keypoints, that"):
        of(*shape)


def test_a_layout_overrides() -> None:
    assert of("n", 3, "t", "v", 3, layout="nmtvc").bodies == 3
    assert of("n", 3, 100, 17, layout="nctv").shape(2, 100, 17) == (2, 3, 100, 17)
    with pytest.raises(LayoutError, match="the layout nctv has 4 axes"):
        of("n", 3, 100, 17, 1, layout="nctv")
    with pytest.raises(LayoutError, match="its axis c is 2 or 3"):
        of("n", 17, 48, 56, 56, layout="nctvm")
    with pytest.raises(ContractError, match="float32 or float16"):
        of("n", 3, 100, 17, 1, kind="tensor(uint8)")


@pytest.mark.parametrize("shape", [("n", 3, 4, 17, 1), ("n", 3, 4, 17, 2), ("n", 2, 4, 17, 3), ("n", 2, 4, 17, 1)])
def test_windows_of_several_items_become_one_batch(shape: Any) -> None:
    windows = np.random.default_rng(0).normal(size=(3, 4, 17, 3)).astype(np.float32)
    contract = of(*shape)
    batch = converter_of(contract).batch([windows[:1], windows[1:]])
    assert batch.shape == contract.shape(3, 4, 17)
    nctvm = batch if contract.axes == "nctvm" else batch.transpose(0, 4, 2, 3, 1)
    for row, value, step, joint in np.ndindex(3, contract.values, 4, 17):
        assert nctvm[row, value, step, joint, 0] == windows[row, step, joint, value]
    assert (nctvm[..., 1:] == 0).all(), "nobody else is in the window"
