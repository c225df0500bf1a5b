"""Words of a file's own: rules and templates that use them, and their mistakes."""

from __future__ import annotations

import pytest

from camgraph.stages.rules import library as shipped
from camgraph.stages.rules.library import Library, hiding, library
from camgraph.stages.rules.rule_file import WordDefinition
from camgraph.stages.rules.rule_set import examined_rules, parse_rules

OWN = """\
define:
  folded: distance(shoulders, knees) < far
  far: {means: 0.8bl, about: Nearly as long as the torso}
  crowded: count > 3
rules:
  - {id: bends, when: folded and age > 1s}
  - {id: two, scope: pair, when: a.folded and b.folded}
  - {id: many, scope: scene, who: folded, when: crowded}
"""


def mistakes(text: str) -> list[str]:
    return [str(problem).removeprefix("r:") for problem in examined_rules(text, "r")[1]]


def test_rules_use_words() -> None:
    rules = parse_rules(OWN, "r").rules
    assert list(rules) == ["bends", "two", "many"]
    assert [text for text, _ in rules["bends"].rule.when.parts] == ["folded", "age > 1s"]


def test_the_hash_is_also_that_of_the_words() -> None:
    """Directly used or by another word; words that a rule does not use are nothing to it."""
    before = parse_rules(OWN, "r").rules
    after = parse_rules(OWN.replace("0.8bl", "0.9bl"), "r").rules
    assert [before[name].hash == after[name].hash for name in before] == [False, False, False]
    after = parse_rules(OWN.replace("count > 3", "count > 4"), "r").rules
    assert [before[name].hash == after[name].hash for name in before] == [True, True, False]


@pytest.mark.parametrize(
    ("define", "when", "expected"),
    [
        ("{low: nose.y < 3s}", "low", ["1:15: define.low: `nose.y < 3s`"]),
        ("{low: {means: nose.y < 3s}}", "low", ["1:23: define.low.means: `nose.y < 3s`"]),
        ("{low: noes.y}", "low < 3px", ["1:15: define.low: `noes.y` is not known; did you mean `nose`?"]),
        ("{low: nose.y}", "low", ["2:23: rules[0].when: `low` is a position"]),
        ("{low: nose.y}", "lwo < 3px", ["2:23: rules[0].when: `lwo` is not known"]),
        (
            "{hen: egg, egg: hen}",
            "hen",
            ["1:15: define.hen: `hen` is defined by itself", "1:25: define.egg: `egg` is defined by itself"],
        ),
        ("{speed: 3s}", "age > 1s", ["1:10: define: `speed` is a word of the language"]),
        ("{in: 3s}", "age > 1s", ["1:10: define: `in` is a word of the language"]),
        ("{low: 3}", "low", ["1:15: define.low: expected"]),
        ("{low: noes.y}", "low < 3px and age > 3", ["1:15: ", "2:37: rules[0].when: `age > 3`"]),
    ],
)
def test_mistakes_are_at_the_definition(define: str, when: str, expected: list[str]) -> None:
    reported = mistakes(f"define: {define}\nrules: [{{id: a, when: {when}}}]\n")
    assert len(reported) >= len(expected), reported
    for words in expected:
        assert any(words in line for line in reported), reported
    assert sum("rules[0]" in line for line in reported) == sum("rules[0]" in words for words in expected), reported


def test_a_word_of_the_library_may_be_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """The remark names it; the file's own definition is the one that counts."""
    words = {**library().words, "low": WordDefinition(means="nose.y > 1px")}
    monkeypatch.setattr("camgraph.stages.rules.library.library", lambda: Library(words, library().templates))
    rules = parse_rules("define: {low: nose.y > 9px}\nrules: [{id: a, when: low}]\n", "r")
    assert shipped.library().words["low"].means == "nose.y > 1px"
    assert list(hiding(rules.file)) == ["`low` of this file is used instead of the word `low` of the library"]


def test_words_of_the_library_are_right() -> None:
    """Each is used by a file of rules, in which all mistakes of definitions are told."""
    own = "".join(f"  {name}_: {{means: {word.means!r}}}\n" for name, word in library().words.items())
    assert mistakes(f"define:\n{own or '  x: age'}\nrules: [{{id: a, when: score > 0}}]\n") == []
