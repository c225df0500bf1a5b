"""With how many rows a model is run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.vision.run_sizes import Run, buckets, engine_order, runs_of

SIZES = st.sets(st.integers(1, 40), min_size=1, max_size=5).map(sorted)


def test_a_run_is_filled_up_to_the_next_size() -> None:
    assert list(runs_of(3, most=32, sizes=[1, 2, 4, 8])) == [Run(0, 3, 4)]
    assert list(runs_of(11, most=32, sizes=[1, 2, 4, 8])) == [Run(0, 8, 8), Run(8, 3, 4)]
    assert list(runs_of(0, most=32, sizes=[4])) == []
    assert list(runs_of(70, most=32)) == [Run(0, 32, 32), Run(32, 32, 32), Run(64, 6, 6)]


@given(st.integers(0, 200), st.integers(1, 40), SIZES | st.just([]))
def test_every_picture_is_in_one_run_and_no_size_is_new(pictures: int, most: int, sizes: list[int]) -> None:
    runs = list(runs_of(pictures, most=most, sizes=sizes))
    assert [at for run in runs for at in range(run.first, run.first + run.own)] == list(range(pictures))
    for run in runs:
        assert 1 <= run.own <= run.rows
        assert run.rows in sizes if sizes else run.rows <= most
        assert not sizes or not any(run.own <= size < run.rows for size in sizes), "the smallest that is enough"


@pytest.mark.parametrize(
    ("most", "sizes"), [(1, (1,)), (2, (1, 2)), (3, (1, 3)), (8, (1, 2, 8)), (32, (1, 2, 8, 32)), (33, (1, 3, 9, 33))]
)
def test_buckets_are_few_and_the_largest_takes_a_whole_batch(most: int, sizes: tuple[int, ...]) -> None:
    assert buckets(most) == sizes


@pytest.mark.parametrize(("sizes", "order"), [((), (1,)), ((4,), (4,)), ((1, 2, 4, 8), (8, 1, 2, 4))])
def test_an_engine_for_a_range_is_built_for_its_ends_first(sizes: tuple[int, ...], order: tuple[int, ...]) -> None:
    assert engine_order(sizes) == order
