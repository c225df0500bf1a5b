"""Conditions in Python as rules name them: which calls are accepted, and the messages about the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from camgraph.stages.rules import python_functions
from camgraph.stages.rules.python_functions import INSTALLED, watch_calls
from camgraph.stages.rules.rule_set import RuleSet, examined_rules, parse_rules


def rules_of(when: str) -> RuleSet:
    return parse_rules(f"rules:\n  - {{id: a, when: '{when}'}}\n", "rules.yaml")


@pytest.mark.parametrize(
    ("when", "column", "told"),
    [
        ("test_abovehead(nose)", 20, "there is no function `test_abovehead`; did you mean `test_above_head`?"),
        ("test_above_head(wrst)", 36, "`wrst` cannot be `joint` of test_above_head: expected one of nose, left_eye"),
        ("test_above_head()", 20, "expected test_above_head(joint, [by], [share]), where `joint` is a joint"),
        ("test_above_head(nose, 3deg)", 42, "`3deg` is an angle, and `by` of test_above_head is a length"),
        ("test_moved(z) > 1h", 31, "`z` cannot be `along` of test_moved: expected one of x, y"),
        ("test_moved(x) > 3", 20, "a length cannot be compared with a bare number"),
        ("test_moved(x)", 20, "`test_moved(x)` is a length: expected a comparison"),
        ("test_fails", 20, "`test_fails` is a condition in Python: write test_fails()"),
        ("test_undeclared()", 20, "is no condition: expected a function with `@condition(past_s=...)`"),
        ("test_missing_function()", 20, "(camgraph_test_stages.conditions:nowhere) cannot be loaded: AttributeError"),
        ("test_missing_module()", 20, "No module named 'camgraph_test_stages.no_such_module'"),
    ],
)  # fmt: skip
def test_a_wrong_call_is_a_mistake_at_its_place(when: str, column: int, told: str) -> None:
    _, [problem] = examined_rules(f"rules:\n  - {{id: a, when: '{when}'}}\n", "rules.yaml")
    assert (problem.line, problem.column) == (2, column)
    assert told in problem.text


def test_in_a_pair_a_word_says_of_whom() -> None:
    text = "rules:\n  - {id: a, scope: pair, when: test_fails()}\n"
    _, [problem] = examined_rules(text, "rules.yaml")
    assert "define a word by it" in problem.text
    assert parse_rules(
        "define: {w: test_fails()}\n" + text.replace("test_fails()", "a.w and not b.w"), "rules.yaml"
    ).rules


def test_names_of_the_language_stay_as_they_are() -> None:
    """The package registers `speed` as well."""
    assert "speed" not in INSTALLED.names()
    assert rules_of("speed(left_wrist) > 1h/s").rules["a"].rule.when.functions == {}


def test_the_hash_of_a_rule_covers_the_code_of_its_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    before = rules_of("test_fails() for 1s").rules["a"].hash
    function = INSTALLED.find("test_fails")
    assert function is not None
    assert rules_of("test_fails() for 1s").rules["a"].hash == before
    monkeypatch.setattr(function, "hash", "another")
    assert rules_of("test_fails() for 1s").rules["a"].hash != before


def test_what_looks_like_a_module_is_never_imported() -> None:
    _, [problem] = examined_rules("rules:\n  - {id: a, when: os.system() > 1}\n", "rules.yaml")
    assert (problem.line, problem.column) == (2, 28)
    text = "rules:\n  - {id: a, python: os.system, when: age > 1s}\n"
    assert "python" in str(examined_rules(text, "rules.yaml")[1][0])


def test_a_function_that_ends_two_processes_is_called_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    function = INSTALLED.find("test_fails")
    assert function is not None
    monkeypatch.setattr(function, "given_up", False)
    assert watch_calls(tmp_path, 0) == []
    python_functions._calls.enter("test_fails")
    assert watch_calls(tmp_path, 1) == [], "another process of the stage"
    assert watch_calls(tmp_path, 0) == []
    python_functions._calls.enter("test_fails")
    python_functions._calls.leave()
    assert watch_calls(tmp_path, 0) == [], "it ended elsewhere"
    python_functions._calls.enter("test_fails")
    assert watch_calls(tmp_path, 0) == ["test_fails"]
    assert function.given_up
    python_functions._calls.close()
