"""Whether a machine was quiet enough to judge what a fault costs others."""

from __future__ import annotations

import pytest

from camgraph.tools.measuring.load import Load, load_of, why_not_judged
from camgraph.tools.measuring.processor_time import CpuTime

QUIET = Load(1.0, 0.1, 2)


def test_what_was_taken_is_told_apart() -> None:
    load = load_of(CpuTime(10, 100, 50), CpuTime(20, 115, 60))
    assert (load.own, load.other) == (1.0, 0.5)
    assert Load(1.0, 0.5, 2).busy == 0.75


@pytest.mark.parametrize(
    ("before", "during", "why"),
    [
        (QUIET, QUIET, ""),
        (QUIET, Load(1.9, 0.1, 2), ""),
        (QUIET, Load(1.0, 0.4, 2), "other processes took 0.40 of 2 cores"),
        (Load(1.0, 0.4, 2), QUIET, "other processes took 0.40 of 2 cores"),
        (Load(1.5, 0.0, 2), QUIET, "the machine was 75% busy before any fault"),
    ],
)
def test_rates_are_judged_where_other_processes_take_little(before: Load, during: Load, why: str) -> None:
    found = why_not_judged(before, during)
    assert found.startswith(why)
    assert bool(found) == bool(why)


def test_you_may_judge_on_any_machine() -> None:
    assert why_not_judged(Load(1.0, 1.0, 2), Load(0.1, 1.9, 2), most_other=1.0) == ""
