"""What a model's input says, and pictures written as it wants them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.vision.model_contract import (
    ContractError,
    Converter,
    InputContract,
    Overrides,
    declared_size,
    derive_contract,
)


def derived(shape: list[Any], onnx_type: str = "tensor(float)", **overrides: Any) -> InputContract:
    return derive_contract("images", shape, onnx_type, Overrides(**overrides))


def test_yolo() -> None:
    contract = derived(["batch", 3, 640, 480])
    assert contract == InputContract("images", "nchw", "float32", "rgb", 1 / 255, None, 480, 640)
    assert contract.accepts(480, 640)
    assert not contract.accepts(640, 480)


def test_multipose() -> None:
    contract = derived(["batch", "height", "width", 3], "tensor(uint8)")
    assert contract == InputContract("images", "nhwc", "uint8", "rgb", 1.0, None, None, None)
    assert contract.takes_pixels_as_they_are
    assert contract.accepts(33, 1000)


def test_what_does_not_show_is_overridden() -> None:
    contract = derived([1, 3, 416, 416], order="bgr", scale=1.0)
    assert (contract.order, contract.scale, contract.batch) == ("bgr", 1.0, 1)


@pytest.mark.parametrize("free", [None, "n", -1, 0])
def test_any_batch(free: Any) -> None:
    assert derived([free, 3, 64, 64]).batch is None


@pytest.mark.parametrize(
    ("shape", "onnx_type", "text"),
    [
        ([1, 3, 640, 640], "tensor(double)", "expected one of"),
        ([1, 1000], "tensor(float)", "expected four axes"),
        ([1, 1, 64, 64], "tensor(float)", "neither the second nor the last axis is 3"),
        ([1, 3, 64, 3], "tensor(float)", "both the second and the last axis are 3"),
        (["n", "c", "h", "w"], "tensor(float)", "say `input: {layout: nchw}`"),
    ],
)
def test_what_is_refused(shape: list[Any], onnx_type: str, text: str) -> None:
    with pytest.raises(ContractError) as caught:
        derived(shape, onnx_type)
    assert text in str(caught.value)
    assert "`images`" in str(caught.value)


def test_a_layout_settles_what_is_unclear() -> None:
    assert derived(["n", "c", "h", "w"], layout="nchw").layout == "nchw"
    assert derived([1, 3, 64, 3], layout="nhwc").width == 64
    with pytest.raises(ContractError, match="not the layout nhwc"):
        derived([1, 3, 64, 64], layout="nhwc")


@pytest.mark.parametrize(
    ("metadata", "size"),
    [
        ({"imgsz": "[480, 640]"}, (640, 480)),
        ({}, None),
        ({"imgsz": "640"}, None),
        ({"imgsz": "[1, 2, 3]"}, None),
        ({"imgsz": "__import__('os')"}, None),
    ],
)
def test_the_size_that_metadata_state(metadata: dict[str, str], size: tuple[int, int] | None) -> None:
    assert declared_size(metadata) == size


def contract(layout: Any, dtype: str, order: Any, scale: float) -> InputContract:
    return InputContract("x", layout, dtype, order, scale, None, None, None)


def slow_batch(want: InputContract, pictures: list[np.ndarray]) -> np.ndarray:
    stacked = np.concatenate(pictures)
    if want.order == "bgr":
        stacked = stacked[..., ::-1]
    if want.layout == "nchw":
        stacked = stacked.transpose(0, 3, 1, 2)
    return (stacked * want.scale).astype(np.float32).astype(want.dtype)


@given(
    st.sampled_from(["nchw", "nhwc"]),
    st.sampled_from([("float32", 1 / 255), ("float16", 1 / 255), ("float32", 1.0), ("uint8", 1.0), ("int32", 1.0)]),
    st.sampled_from(["rgb", "bgr"]),
    st.lists(st.integers(0, 3), min_size=1, max_size=4),
)
def test_pictures_as_the_model_wants_them(layout: Any, kind: tuple[str, float], order: Any, rows: list[int]) -> None:
    want = contract(layout, kind[0], order, kind[1])
    rng = np.random.default_rng(sum(rows))
    pictures = [rng.integers(0, 256, (n, 5, 7, 3), dtype=np.uint8) for n in rows]
    batch = Converter(want).batch(pictures)
    assert batch.dtype == want.dtype
    assert np.array_equal(batch, slow_batch(want, pictures))


def test_floats_are_those_of_a_division_by_255() -> None:
    ramp = np.arange(256, dtype=np.uint8).reshape(1, 16, 16, 1).repeat(3, 3)
    batch = Converter(contract("nchw", "float32", "rgb", 1 / 255)).batch([ramp])
    assert np.array_equal(batch[0, 0].ravel(), np.arange(256, dtype=np.float32) / np.float32(255))


def test_a_picture_that_is_the_input_is_not_copied() -> None:
    picture = np.zeros((1, 4, 4, 3), np.uint8)
    assert Converter(contract("nhwc", "uint8", "rgb", 1.0)).batch([picture]) is picture


def test_a_picture_goes_where_a_gpu_reads_it() -> None:
    picture = np.arange(48, dtype=np.uint8).reshape(1, 4, 4, 3)
    locked = np.zeros(48, np.uint8)
    converter = Converter(contract("nhwc", "uint8", "rgb", 1.0), lambda size, _: locked[:size], in_place=False)
    assert np.shares_memory(converter.batch([picture]), locked)
    assert np.array_equal(converter.batch([picture]), picture)


def test_the_buffer_is_kept_and_grows_only() -> None:
    converter = Converter(contract("nchw", "float32", "rgb", 1.0))
    large = converter.batch([np.zeros((2, 8, 8, 3), np.uint8)])
    small = converter.batch([np.ones((1, 4, 4, 3), np.uint8)])
    assert np.shares_memory(large, small)
    assert small.flags.c_contiguous
    assert (small == 1).all()
