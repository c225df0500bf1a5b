from __future__ import annotations

from pathlib import Path

import pytest

from camgraph.tools.lab.benchmarks.many_files import Ran, bare_loop, graph_run, table, write_files


def test_ratios_are_of_one_round() -> None:
    bare = [Ran(10.0, 5.0, 100.0, 1), Ran(20.0, 9.0, 110.0, 1)]
    ways = {"by default": [Ran(9.0, 6.0, 300.0, 10), Ran(20.0, 8.0, 290.0, 11)]}
    assert table(bare, ways).splitlines()[2:] == [
        "| bare loop, one thread | 1.00 | 15.0 | 7.0 | 110 | 1 |",
        "| by default | 0.95 | 14.5 | 7.0 | 300 | 11 |",
    ]


@pytest.mark.processes
def test_all_files_are_judged_both_ways(tmp_path: Path) -> None:
    write_files(tmp_path, 10, 2)
    bare, found = bare_loop(tmp_path, 10), graph_run(tmp_path, 10, "")
    assert 1 <= bare.processes < found.processes
    assert min(bare.cpu_s, found.cpu_s, bare.memory_mb, found.memory_mb) > 0
