from __future__ import annotations

import sys

import pytest

from camgraph.tools.lab.benchmarks.idle_run import Idle, measure, table


def test_the_table_has_the_means_of_each_side() -> None:
    found = [
        ("this checkout", Idle({"supervisor": 1.0, "log": 0.5, "alarm": 0.5}, 300.0, 3)),
        ("the other", Idle({"supervisor": 2.0, "log": 1.0, "alarm": 1.0}, 400.0, 3)),
        ("this checkout", Idle({"supervisor": 0.5, "log": 0.3, "alarm": 0.2}, 310.0, 3)),
    ]
    assert table(found).splitlines()[2:] == [
        "| this checkout | 1.50 | 0.75 | 0.38 | 305 | 3 |",
        "| the other | 4.00 | 2.00 | 1.00 | 400 | 3 |",
    ]


@pytest.mark.processes
def test_a_run_at_rest_is_measured() -> None:
    idle = measure(sys.executable, seconds=3.0, rest_s=1.0)
    assert {"supervisor", "capture", "model", "alarm"} <= idle.percents.keys()
    assert idle.percent > 0
    assert idle.memory_mb > 50
