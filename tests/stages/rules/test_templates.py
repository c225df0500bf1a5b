"""Rules made of templates: what they become, and every mistake at the place where it was written."""

from __future__ import annotations

from typing import Any

import pytest

from camgraph.pipeline.errors import GraphError
from camgraph.stages.rules.language.condition import compile_condition
from camgraph.stages.rules.library import ACTIONS, WORDS, library, library_text
from camgraph.stages.rules.parameters import filled
from camgraph.stages.rules.rule_file import RuleDefinition
from camgraph.stages.rules.rule_set import examined_rules, parse_rules
from camgraph.stages.rules.templates import Template, trial_of

SHAPES = """\
zones: {door: [[0, 0], [1, 0], [1, 1]], till: [[0, 0], [1, 0], [1, 1]]}
lines: {gate: {from: [0, 0], to: [1, 1]}}
"""
WAITS = """\
templates:
  waits:
    about: Somebody stands in a zone.
    parameters:
      zone: {kind: zone, about: The zone}
      stay: 10s
      pace: {default: 0.2h/s}
      least: 0.5
    action: waiting
    when: in {zone} and speed < {pace} and score > {least} and age > {stay}
    for: "{stay}"
    hold: 2s
"""
BOOK = f"version: 1\n{SHAPES}{WAITS}"


def made(rules: str, book: str = BOOK) -> list[RuleDefinition]:
    return [ready.definition for ready in parse_rules(f"{book}rules:\n{rules}", "r").rules.values()]


def mistakes(text: str) -> list[str]:
    return [str(problem).removeprefix("r:") for problem in examined_rules(text, "r")[1]]


def test_a_rule_of_a_template() -> None:
    [rule] = made("  - {id: queue, use: waits, with: {zone: till, stay: 1.5min, least: 0.7}, hold: 3s}\n")
    assert rule.when == "in till and speed < 0.2h/s and score > 0.7 and age > 1.5min"
    assert (rule.id, rule.action, rule.for_, rule.hold, rule.use) == ("queue", "waiting", "1.5min", "3s", None)


def test_only_the_name_is_needed() -> None:
    simple = "templates: {up: {when: left_wrist.y < nose.y, once: true}}\n"
    [rule] = made("  - use: up\n", simple)
    assert (rule.id, rule.when, rule.once) == ("up", "left_wrist.y < nose.y", True)


SWITCHED = """\
templates:
  up:
    parameters: {also_lost: true}
    when: lean < 40deg or {also_lost} and (lost while lean < 40deg)
"""


def test_a_parameter_that_switches_a_part_on_and_off() -> None:
    on, off = made("  - {id: a, use: up}\n  - {id: b, use: up, with: {also_lost: false}}\n", SWITCHED)
    assert on.when == "lean < 40deg or (1 > 0) and (lost while lean < 40deg)"
    assert off.when == "lean < 40deg or (1 < 0) and (lost while lean < 40deg)"
    evidence = [text for text, _ in compile_condition(on.when, "person", zones=[], lines=[]).parts]
    assert evidence == ["lean < 40deg", "lost while lean < 40deg"]
    [wrong] = mistakes(f"{SWITCHED}rules:\n  - {{use: up, with: {{also_lost: 3}}}}\n")
    assert "expected true or false, got 3" in wrong


def test_the_rule_has_the_last_word() -> None:
    [rule] = made("  - {use: waits, with: {zone: door}, when: in till, for: 1s, action: stands, cameras: [a]}\n")
    assert (rule.when, rule.for_, rule.action, rule.cameras) == ("in till", "1s", "stands", ["a"])


def test_the_same_by_hand_or_by_template_is_the_same() -> None:
    by_hand = "  - {id: w, action: waiting, when: in door and speed < 0.2h/s and score > 0.5 and age > 10s, "
    rules = parse_rules(f"{BOOK}rules:\n  - {{id: w, use: waits, with: {{zone: door}}}}\n", "r").rules
    other = parse_rules(f"{SHAPES}rules:\n{by_hand}for: 10s, hold: 2s}}\n", "r").rules
    assert rules["w"].hash == other["w"].hash


def test_conditions_as_parameters_stay_whole() -> None:
    book = "templates: {nope: {parameters: {that: {kind: condition}}, when: 'not {that} and age > 1s'}}\n"
    [rule] = made("  - {use: nope, with: {that: 'speed > 1h/s or lean > 60deg'}}\n", book)
    assert rule.when == "not (speed > 1h/s or lean > 60deg) and age > 1s"


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("{use: ^wait}", "there is no action or template `wait`; did you mean `waits`?"),
        ("^{use: waits}", "the template `waits` needs `with: {zone: ...}`, the name of a zone: the zone"),
        ("{use: waits, with: {zone: ^dor}}", "there is no zone `dor`; did you mean `door`?"),
        ("{use: waits, with: {zone: door, sty: ^5s}}", "no parameter `sty`; did you mean `stay`?"),
        ("{use: waits, with: {zone: door, stay: ^5h}}", "expected a time such as 2s, 500ms or 1min, got '5h'"),
        ("{use: waits, with: {zone: door, stay: ^5}}", "expected a time such as 2s, 500ms or 1min, got 5"),
        ("{use: waits, with: {zone: door, stay: ^900000min}}", "expected a time of at most 366 days"),
        ("{use: waits, with: {zone: door, pace: ^3s}}", "expected a speed such as 0.5h/s, got '3s'"),
        ("{use: waits, with: {zone: door, least: ^a}}", "expected a bare number, got 'a'"),
        ("{use: waits, with: {zone: door}, hold: ^2}", "expected a time with its unit, such as 2s, got 2"),
        ("{id: a, when: in door, with: ^{zone: door}}", "`with` has values for a template"),
        ("^{when: in door}", "`id` is missing: The rule's name"),
        ("^{id: a}", "`when` is missing: The condition"),
        (
            "{id: a, use: waits, with: {zone: ^[1]}}",
            "expected true or false or text or a whole number or a number, got a list of 1",
        ),
    ],
)
def test_mistakes_of_a_rule(rule: str, words: str) -> None:
    """`^` marks the place."""
    last = f"  - {rule}"
    whole = f"{BOOK}rules:\n{last.replace('^', '')}\n"
    reported = mistakes(whole)
    assert len(reported) == 1, reported
    assert reported[0].startswith(f"{len(whole.splitlines())}:{last.index('^') + 1}: ")
    assert words in reported[0]


@pytest.mark.parametrize(
    "rule",
    [
        "{use: ^waist, during: ^nigt, not_during: ^dya, while: ^armed}",
        "{use: waits, with: {zone: ^dor}, during: ^nigt}",
        "{use: waits, with: {zone: door, sty: ^5s}, while: ^armed, per_camera: {a: {with: {pace: ^3s}, for: ^2q}}}",
        "^{id: w, during: ^nigt, hold: ^2}",
        "{id: w, when: in ^dor, during: ^nigt, per_camera: {a: {for: ^2q}}}",
    ],
)
def test_no_mistake_of_a_rule_hides_another(rule: str) -> None:
    """`^` marks the places: whoever mends one hears of the others at the same time."""
    last = f"  - {rule}"
    night = 'time_zone: UTC\nschedules: {night: {from: "21:00", to: "06:00"}, day: {from: "06:00", to: "21:00"}}\n'
    whole = f"{BOOK}{night}rules:\n{last.replace('^', '')}\n"
    marked = [at + 1 - number for number, at in enumerate(at for at, letter in enumerate(last) if letter == "^")]
    reported = mistakes(whole)
    assert sorted(int(one.split(":")[1]) for one in reported) == marked, reported


def test_mistakes_with_a_template_name_its_line() -> None:
    [reported] = mistakes(f"{BOOK}rules:\n  - {{use: waits, with: {{zone: door, stay: 5h}}}}\n")
    assert reported.endswith("got '5h'; did you mean `300min`? (for the template `waits`); it stands in line 6")


def test_wrong_words_in_a_value_are_at_the_value() -> None:
    text = f"{SHAPES}rules:\n  - {{use: crosses_line, with: {{line: gate, direction: rightwards}}}}\n"
    [reported] = mistakes(text)
    assert reported.startswith("4:55: rules[0].with.direction: `rightwards` is no direction")
    assert "did you mean `rightward`? (in `when` of the action `crosses_line`)" in reported


def test_a_condition_that_does_not_fit_the_rule() -> None:
    """The template is right by itself; the scope of the rule is not its own."""
    [reported] = mistakes(
        f"{BOOK}rules:\n  - {{use: waits, with: {{zone: door}}, scope: scene}}\n".replace("in {zone} and", "")
    )
    assert "the parameter `zone` stands in no key" in reported
    [reported, *_] = mistakes(f"{BOOK}rules:\n  - {{use: waits, with: {{zone: door}}, scope: scene}}\n")
    assert reported.startswith(
        "17:11: rules[0].use: whose feet? write it under `who` (in `when` of the template `waits`)"
    )
    assert reported.endswith("it stands in line 6")


OWN_MISTAKES = """\
templates:
  one:
    parameters: {a: 5s, b: 3, pace: 1h/s, unused: 2s, bad: {kind: time, default: 5h}, none: {about: x}}
    when: speed < {pase} and age > {b}
    for: {a}
  two:
    parameters: {low: 0.3}
    when: score > {low} and noes.y < 0.5fh and hips.y < {low}
  three:
    parameters: {far: 0.5h}
    when: speed < {far}
    for: "{far}"
  four: {wen: in door}
rules:
  - use: one
  - use: two
  - {use: three, with: {far: 1h}}
"""


def test_mistakes_of_templates_are_told_once_at_theirs() -> None:
    expected = [
        ("3:93", "expected `default` or `kind`, such as `kind: zone`"),
        ("5:10", 'write "{a}" with quotes'),
        ("8:29", "`noes.y` is not known; did you mean `nose`?"),
        ("8:48", "`hips.y < 0.3`"),
        ("12:10", "`far` is a length, and `for` takes a time"),
        ("13:3", "`when` is missing"),
        ("13:10", "unknown key `wen`; did you mean `when`?"),
    ]
    reported = mistakes(OWN_MISTAKES)
    for place, words in expected:
        assert any(line.startswith(f"{place}: ") and words in line for line in reported), (place, words, reported)


def test_parameters_of_templates_are_looked_at() -> None:
    text = OWN_MISTAKES.replace(", none: {about: x}", "").replace("{a}", '"{a}"')
    message = "\n".join(mistakes(text))
    assert "3:60: templates.one.parameters.bad: expected a time such as 2s, 500ms or 1min, got '5h'" in message
    assert "4:19: templates.one.when: there is no parameter `pase`; did you mean `pace`?" in message
    assert "the parameter `unused` stands in no key of `one`: write {unused} there, or remove it" in message


def test_places_in_a_filled_text() -> None:
    text = filled("a {x} b {y} c", {"x": ("number", "12345"), "y": ("condition", "q")})
    assert text.text == "a 12345 b (q) c"
    assert [text.raw(at) for at in (0, 2, 6, 8, 10, 14)] == [0, 2, 2, 6, 8, 12]
    assert text.parameter_at(3) == ("x", 1)
    assert text.parameter_at(1) is None


def test_own_templates_come_before_those_of_the_library() -> None:
    [rule] = made("  - use: loitering\n", "templates: {loitering: {when: score > 0}}\n")
    assert rule.when == "score > 0"


def test_the_library_is_right() -> None:
    """Each of its templates is checked as one of a file would be."""
    for name, definition in library().templates.items():
        trial, faults = trial_of(Template(name, definition, ("templates", name)))
        assert trial is not None, (name, faults)
    together = {"version: 1": None, "templates:": None}
    text = library_text(ACTIONS)
    assert all(line in text for line in together)
    assert examined_rules(f"{text}\nrules: [{{id: a, when: score > 0}}]\n", ACTIONS)[1] == []
    assert library_text(WORDS)


def test_every_action_says_what_it_finds_and_takes() -> None:
    for name, template in library().templates.items():
        assert template.about.endswith("."), name
        assert all(parameter.about for parameter in template.parameters.values()), name


@pytest.mark.parametrize("value", [True, None, [1], {"a": 1}])
def test_a_value_is_a_text_or_a_number(value: Any) -> None:
    with pytest.raises(GraphError):
        parse_rules(f"{BOOK}rules: [{{use: waits, with: {{zone: {value!r}}}}}]\n".replace("'", '"'), "r")


@pytest.mark.parametrize("value", ["score > 0) or (score > 1", "score > 0)", "(score > 0"])
def test_a_condition_stays_between_its_parentheses(value: str) -> None:
    template = 'templates: {asks: {parameters: {what: {kind: condition}}, when: "not {what}"}}'
    with pytest.raises(GraphError, match=r"as many `\(` as `\)`"):
        parse_rules(f'version: 1\n{template}\nrules: [{{id: a, use: asks, with: {{what: "{value}"}}}}]\n', "r")


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (
            "{use: fall, low_for: 5s}",
            "2:17: rules[0]: unknown key `low_for`: it is a parameter of `fall`: write `with: {low_for: 5s}`",
        ),
        (
            "{use: fall, low_fr: 5s}",
            "2:17: rules[0]: unknown key `low_fr`: `fall` has a parameter `low_for`: write `with: {low_for: 5s}`",
        ),
        (
            "{use: fall, lost_falls: false}",
            "2:17: rules[0]: unknown key `lost_falls`: it is a parameter of `fall`: write `with: {lost_falls: false}`",
        ),
        (
            "{use: fall, zone: bed}",
            "2:17: rules[0]: unknown key `zone`: a rule has no such key, and `fall` has no such parameter; "
            "its parameters, which stand under `with`, are low_for, lost_falls",
        ),
        (
            "{use: crosses_line, with: {lin: door}}",
            "2:37: rules[0].with.lin: the action `crosses_line` has no parameter `lin`; did you mean `line`?",
        ),
        ("{use: fall, coldown: 5s}", "2:17: rules[0]: unknown key `coldown`; did you mean `cooldown`?"),
        (
            "{use: fall, tempo: 5s}",
            "2:17: rules[0]: unknown key `tempo`: a rule has no such key, and `fall` has no such parameter; "
            "its parameters, which stand under `with`, are low_for, lost_falls",
        ),
        (
            "{use: fall, with: {cooldown: 5s}}",
            "2:34: rules[0].with.cooldown: `cooldown` is a key of the rule: write it beside `with`, not under it",
        ),
    ],
)
def test_a_parameter_beside_use_and_a_key_under_with(rule: str, told: str) -> None:
    assert mistakes(f"rules:\n  - {rule}\n") == [told]


def test_a_needed_parameter_beside_use_is_one_mistake() -> None:
    rule = "rules:\n  - {use: waits, zone: door}\n"
    [told] = mistakes(f"{BOOK}{rule}")
    assert told.endswith("rules[0]: unknown key `zone`: it is a parameter of `waits`: write `with: {zone: door}`")


@pytest.mark.parametrize(
    ("use", "meant"),
    [
        ("somebody_falls", "fall"),
        ("somebody falls", "fall"),
        ("FALL", "fall"),
        ("person-lying-down", "lying"),
        ("jump_over_fence", "jumping"),
        ("crosses line", "crosses_line"),
        ("fallen", "fall"),
        ("sombody", "somebody"),
    ],
)
def test_an_action_is_guessed_from_parts_of_a_name(use: str, meant: str) -> None:
    [told] = mistakes(f"rules:\n  - {{use: {use}}}\n")
    guess = f"; did you mean `{meant}`? (`camgraph actions` lists the actions)"
    assert told == f"2:11: rules[0].use: there is no action or template `{use}`{guess}"


def test_an_unknown_action_is_told_where_all_are_listed() -> None:
    [told] = mistakes("rules:\n  - {use: Sturz}\n")
    assert told.endswith("there is no action or template `Sturz`: `camgraph actions` lists the actions")
    [told] = mistakes(f"{BOOK}rules:\n  - {{use: Sturz}}\n")
    listed = "; templates of this file: waits; `camgraph actions` lists the actions"
    assert told.endswith(f"there is no action or template `Sturz`{listed}")


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (
            "pace: 3 m/s",
            "expected a speed such as 0.5h/s, got '3 m/s'; a picture has no metres: of somebody 1.7 m tall",
        ),
        ("stay: 5", "got 5; did you mean `5s`?"),
        ("stay: 2 minutes", "got '2 minutes'; did you mean `2min`?"),
        ("pace: 0.3h", "got '0.3h'; did you mean `0.3h/s`?"),
    ],
)
def test_a_unit_of_a_parameter_is_guessed(value: str, told: str) -> None:
    [found] = mistakes(f"{BOOK}rules:\n  - {{use: waits, with: {{zone: door, {value}}}}}\n")
    assert told in found
