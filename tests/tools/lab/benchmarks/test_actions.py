"""The figures of the library of actions, and the page that keeps them."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from camgraph.stages.rules.library import library
from camgraph.tools.lab.action_cases import CASES
from camgraph.tools.lab.benchmarks.actions import BEGIN, END, HEAD_IN_PART, Figures, main, table, trials, write_into
from camgraph.tools.scenes.animator.library import MOTIONS

PAGE = Path(__file__).parents[4] / "docs/actions.md"


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


def test_only_the_figures_of_a_page_change(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nbehind\n", encoding="utf-8")
    write_into(page, "new")
    assert page.read_text(encoding="utf-8") == f"before\n{BEGIN}\n\nnew\n\n{END}\nbehind\n"


def test_only_the_row_of_an_action_changes(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{BEGIN}\n\n| `fall` | 1 |\n| `lying` | 2 |\n\n{HEAD_IN_PART}\n\nold\n\n{END}\n", encoding="utf-8")
    write_into(page, "| `lying` | 3 |", ["lying"])
    kept = f"{BEGIN}\n\n| `fall` | 1 |\n| `lying` | 3 |\n\n{HEAD_IN_PART}\n\nold\n\n{END}\n"
    assert page.read_text(encoding="utf-8") == kept
    write_into(page, f"| `fall` | 4 |\n\n{HEAD_IN_PART}\n\nnew", ["fall"])
    assert page.read_text(encoding="utf-8") == kept.replace("| 1 |", "| 4 |").replace("old", "new")


def test_an_action_without_a_motion_is_refused() -> None:
    result = CliRunner().invoke(main, ["--action", "crowd"])
    assert result.exit_code == 2
    assert "known: fall" in result.output


def test_every_action_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in library().templates if f"`{name}`" not in text] == []
