"""The list of actions, and each by itself."""

from __future__ import annotations

import json

import pytest
import yaml
from click.testing import CliRunner

from camgraph.stages.rules.library import library
from camgraph.tools.cli import main


def run(*arguments: str, columns: int = 80) -> tuple[int, str, str]:
    result = CliRunner(env={"COLUMNS": str(columns)}).invoke(main, ["actions", *arguments])
    return result.exit_code, result.stdout, result.stderr


def test_all_actions_are_listed_also_in_a_narrow_terminal() -> None:
    status, out, _ = run(columns=40)
    assert status == 0
    listed = [line.split()[0] for line in out.splitlines() if not line.startswith(" ")]
    assert listed == list(library().templates)
    assert max(map(len, out.splitlines())) <= 40


@pytest.mark.parametrize("name", library().templates)
def test_an_action_is_shown_with_its_definition(name: str) -> None:
    status, out, _ = run(name)
    definition = library().templates[name]
    assert status == 0
    assert f"- {{use: {name}" in out
    read = yaml.safe_load(out.partition("Its definition:\n")[2])
    assert list(read) == [name]
    assert read[name]["when"].strip() == definition.when.strip()
    assert all(parameter in out.partition("In a file")[0] for parameter in definition.parameters)


def test_a_parameter_without_a_default_stands_in_the_line() -> None:
    assert "- {use: loitering, with: {zone: my_zone}}\n" in run("loitering")[1]


def test_programs_get_json() -> None:
    described = json.loads(run("--json")[1])
    assert [one["name"] for one in described] == list(library().templates)
    alone = json.loads(run("fall", "--json")[1])
    assert alone == described[0]
    assert alone["parameters"]["low_for"]["default"] == "0.1s"


def test_an_action_that_is_often_wrong_says_so() -> None:
    assert "Do not rely on it: all 7 that it told of real clips were wrong" in " ".join(run("punching")[1].split())
    assert "Do not rely on it" not in run("fall")[1]
    cautions = {one["name"]: one["caution"] for one in json.loads(run("--json")[1])}
    assert cautions["kicking"] == "tried on animated people only"
    assert not cautions["fall"]


def test_a_mistyped_name_is_guessed() -> None:
    status, _, result = run("hands-up")
    assert status == 2
    assert "no action is called hands-up; did you mean `hands_up`?" in result
