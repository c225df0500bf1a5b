"""The benchmark of rules runs, and its rules are judged."""

from __future__ import annotations

from click.testing import CliRunner

from camgraph.stages.rules.language.geometry import Surroundings
from camgraph.stages.rules.language.judge import Judge
from camgraph.tools.lab.benchmarks.rules import LOOKING_BACK, PLAIN, ZONES, crowd, main, rules


def test_a_table_for_people_and_rules() -> None:
    chosen = ["--people", "2", "--rules", "3", "--rules", "12", "--frames", "3", "--rounds", "1"]
    result = CliRunner().invoke(main, chosen, catch_exceptions=False)
    rows = [line for line in result.output.splitlines() if line.startswith("| 2 |")]
    *judged, looks = rows
    assert [row.split("|")[2].strip() for row in judged] == ["3", "12", "`fall`", "20"]
    assert all(float(cell) > 0 for row in judged for cell in row.split("|")[3:-1])
    assert len([float(cell) for cell in looks.split("|")[2:-1]]) == 2


def test_all_its_rules_have_an_answer() -> None:
    every = rules(12, PLAIN + LOOKING_BACK)
    judge = Judge(every, lambda size: Surroundings(*size, ZONES))
    for seq in range(30):
        list(judge.judge(crowd(20, seq)))
    assert judge.judged == {rule.id for rule in every}
