"""The figures of the library of actions, and the page that keeps them."""

from __future__ import annotations

from click.testing import CliRunner

from camgraph.stages.rules.library import library
from camgraph.tools.lab.action_cases import CASES
from camgraph.tools.lab.benchmarks.actions import HEAD_IN_PART, Figures, main, renewed, table, trials
from camgraph.tools.scenes.animator.library import MOTIONS


def test_cases_name_actions_and_motions() -> None:
    named = {motion for case in CASES.values() for motion in (*case.fires, *case.may)}
    assert named <= MOTIONS.keys()
    assert CASES.keys() <= library().templates.keys()


def test_a_table_has_a_row_for_each_action() -> None:
    figures = Figures(delays_s=[2.0, 3.0, 7.0], silent=4)
    figures.found[25.0] = [True, True, False, False]
    figures.wrong["walking"] = 1
    row = table({"fall": figures}, (2.0, {"fall": 1})).splitlines()[2]
    assert row == "| `fall` | 50 % | - | - | - | - | 3.0 s | 1 of 4 (walking) | 0.5 an hour |"


def test_trials_are_the_same_each_time() -> None:
    assert list(trials("walking", 1)) == list(trials("walking", 1))
    assert len({trial.view.bearing_deg for trial in trials("walking", 1)}) == 30


def test_only_the_row_of_an_action_changes() -> None:
    standing = f"| `fall` | 1 |\n| `lying` | 2 |\n\n{HEAD_IN_PART}\n\nold"
    kept = standing.replace("| 2 |", "| 3 |")
    assert renewed(standing, "| `lying` | 3 |", ["lying"]) == kept
    fall = renewed(kept, f"| `fall` | 4 |\n\n{HEAD_IN_PART}\n\nnew", ["fall"])
    assert fall == kept.replace("| 1 |", "| 4 |").replace("old", "new")


def test_an_action_without_a_motion_is_refused() -> None:
    result = CliRunner().invoke(main, ["--action", "crowd"])
    assert result.exit_code == 2
    assert "known: fall" in result.output
