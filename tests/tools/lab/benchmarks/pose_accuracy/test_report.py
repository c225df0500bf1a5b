"""The part of docs/accuracy.md."""

from __future__ import annotations

from camgraph.tools.lab.benchmarks.pose_accuracy.report import table


def test_a_table_is_markdown() -> None:
    assert table(("a", "b"), [(1, "x")]) == "| a | b |\n| --- | --- |\n| 1 | x |"
