"""How many cores there are, also where the system does not say which a process may use."""

from __future__ import annotations

import os

import pytest

from pipeline.cores import usable_cores


def test_only_those_that_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 5, 7})
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert usable_cores() == 3


@pytest.mark.parametrize(("counted", "cores"), [(64, 64), (None, 1)])
def test_all_of_the_machine_where_that_is_not_told(
    monkeypatch: pytest.MonkeyPatch, counted: int | None, cores: int
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: counted)
    assert usable_cores() == cores
