"""With how many rows a model is run."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stages.vision.batching import Run, runs_of

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
