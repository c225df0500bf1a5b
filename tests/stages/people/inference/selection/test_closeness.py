"""How near two outputs are: rounding is near, and what a broken provider gives is not."""

from __future__ import annotations

import numpy as np
import pytest

from camgraph.stages.people.inference.selection.closeness import Closeness, chooses, closeness, worse_numbers

RNG = np.random.default_rng(0)


def heads() -> np.ndarray:
    """(1, 8, 500): boxes of hundreds of pixels beside scores of thousandths, as YOLO has them."""
    scales = np.array([300, 300, 80, 80, 0.001, 0.002, 0.5, 0.1])
    return (RNG.lognormal(0, 0.5, (1, 8, 500)) * scales[:, None]).astype(np.float32)


def to_bf16(values: np.ndarray) -> np.ndarray:
    """Only the eight bits of mantissa that bf16 keeps."""
    return (values.view(np.uint32) & 0xFFFF0000).view(np.float32)


def test_rounding_is_near() -> None:
    values = heads()
    assert closeness(values, values) == Closeness(0, 0)
    assert closeness(values.astype(np.float16), values).worst < 0.01
    assert 0 < closeness(to_bf16(values), values).worst < 0.05


@pytest.mark.parametrize("chosen", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_one_wrong_channel_shows_beside_large_ones(turned: bool, chosen: bool) -> None:
    values, broken = heads(), heads()
    broken[:] = values
    broken[:, 4] = 0
    if turned:
        values, broken = values.transpose(0, 2, 1), broken.transpose(0, 2, 1)
    assert not closeness(broken, values, chosen=chosen).is_near
    assert closeness(broken, values, chosen=chosen).typical == 0


@pytest.mark.parametrize("break_it", [np.zeros_like, lambda v: np.full_like(v, v.mean()), lambda v: v * 2.5])
def test_what_has_nothing_to_do_with_it_is_far(break_it: object) -> None:
    values = heads()
    assert not closeness(break_it(values), values).is_near  # type: ignore[operator]
    assert not closeness(values[..., RNG.permutation(500)], values).is_near
    assert not closeness(RNG.normal(0, 100, values.shape), values).is_near


def test_what_is_chosen_may_come_in_another_order_and_number() -> None:
    rows = heads()[0].T
    other = rows[RNG.permutation(len(rows))][:-20]
    assert closeness(other, rows, chosen=True).is_near
    assert not closeness(other * 3, rows, chosen=True).is_near
    assert closeness(rows[:3], rows, chosen=True).is_near, "too few to say"


@pytest.mark.parametrize("values", [[0.3], [[0.1, 0.7, 0.2]], 5.0])
def test_of_a_few_values_it_counts_how_large_they_are(values: object) -> None:
    array = np.array(values, np.float32)
    assert closeness(array * 1.01, array).is_near
    assert not closeness(array * 0, array).is_near
    assert closeness(array, array).worst == 0


def test_nothing_is_near_nothing_and_zeros_zeros() -> None:
    nothing, zeros = np.empty((0, 7), np.float32), np.zeros((1, 100, 6), np.float32)
    assert closeness(nothing, nothing).is_near
    assert closeness(zeros, zeros).is_near
    assert not closeness(zeros + 1, zeros).is_near
    assert not worse_numbers(nothing, nothing)


def test_values_that_are_no_numbers_count_where_the_cpu_has_some() -> None:
    good, bad = np.ones(50, np.float32), np.ones(50, np.float32)
    bad[7] = np.nan
    worse = np.where(np.arange(50) < 9, np.inf, good)
    assert worse_numbers(bad, good)
    assert worse_numbers(worse, bad)
    assert not worse_numbers(bad, bad)
    assert closeness(bad, bad).worst == 0


def test_operators_that_choose() -> None:
    assert chooses(["Conv", "NonMaxSuppression"])
    assert not chooses(["Conv", "Sigmoid", "Reshape"])
