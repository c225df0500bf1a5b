"""Rules of a file that ask about the incidents of others, and when somebody counts as lost."""

from __future__ import annotations

import pytest

from camgraph.pipeline.errors import GraphError
from camgraph.stages.rules.camera_check import impossible_alone
from camgraph.stages.rules.rule_set import parse_rules


def problems(*rules: str) -> list[str]:
    with pytest.raises(GraphError) as caught:
        parse_rules("version: 1\nrules:\n" + "".join(f"  - {rule}\n" for rule in rules), "rules.yaml")
    return [f"{problem.line}:{problem.column} {problem.text}" for problem in caught.value.problems]


def test_a_circle_is_named_at_each_of_its_rules() -> None:
    found = problems(
        "{id: a, when: running(b)}",
        "{id: b, when: running(c) and age > 1s}",
        "{id: c, when: running(a)}",
        "{id: d, when: running(a)}",
        "{id: e, when: running(e)}",
    )
    assert [text.split(" ")[0] for text in found] == ["3:19", "4:19", "5:19", "7:19"]
    assert "in one direction only" in found[0]
    assert "a -> b -> c -> a" in found[0]
    assert "e -> e" in found[3]


def test_only_rules_of_the_file_can_be_asked_about() -> None:
    found = problems("{id: fallen, when: lean > 60deg}", "{id: help, when: running(fall)}")
    assert found == ["4:30 rules[1].when: there is no rule `fall`; did you mean `fallen`?"]


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("{when: fall}", "`fall` is an action: write `use: fall` in place of `when`"),
        ("{when: fal}", "`fal` is not known; did you mean `fall`? That is an action: write `use: fall`"),
        ("{when: age > 1s and liyng}", "`liyng` is not known; did you mean `lying`?"),
        ("{when: nos.y < feet.y}", "`nos.y` is not known; did you mean `nose`?"),
        ("{when: age > 1s and waving}", "`waving` is an action: write `use: waving`"),
        ("{scope: scene, when: crowd}", "`crowd` is an action: write `use: crowd`"),
        ("{scope: scene, when: count > 1, who: other}", "`other` is a rule: write running(other)"),
        ("{when: other for 5s}", "`other` is a rule: write running(other)"),
    ],
)
def test_the_name_of_an_action_or_a_rule_is_no_condition(rule: str, told: str) -> None:
    [found] = problems("{id: other, when: age > 1s}", rule.replace("{", "{id: mine, ", 1))
    assert told in found


def test_in_a_pair_a_and_b_are_people_whatever_is_called_so() -> None:
    found = problems('{id: a, scope: pair, when: "distance(a, b.feet) < 1h"}', "{id: b, when: a}")
    assert "`a` is a person: write what of them, such as a.feet" in found[0]
    assert "`a` is a rule: write running(a)" in found[1]


def test_ids_with_a_dash() -> None:
    rules = parse_rules(
        "version: 1\nrules: [{id: left-arm, when: age > 1s}, {id: b, when: running(left-arm)}]", "rules.yaml"
    )
    assert rules.rules["b"].rule.asks_about == {"left-arm"}


def test_ids_of_any_script() -> None:
    text = (
        "version: 1\nrules: [{id: Süd-Tür, when: age > 1s}, {id: 入口, when: running( Su\u0308d-Tu\u0308r )},\n"
        "  {id: 3d, when: running(入口) or running(not)}, {id: not, when: age > 2s}]"
    )
    rules = parse_rules(text, "rules.yaml").rules
    assert [rules[name].rule.asks_about for name in ("入口", "3d")] == [{"Süd-Tür"}, {"入口", "not"}]


def test_nobody_is_lost_for_as_long_as_a_rule_asks() -> None:
    found = problems(
        "{id: gone, when: lost, for: 15s}",
        "{use: lost_while_low, with: {unseen: 9s}}",
        "{use: lost_while_low, id: later, lost_after: 8s}",
        "{id: there, when: lost and age > 1s, per_camera: {front: {for: 10s}}}",
        "{id: never, when: lost, lost_after: 11s}",
        "{id: short, when: lost, for: 8s}",
        "{id: other, when: lost or lean > 60deg, for: 30s}",
    )
    assert [text.split(" ")[:2] for text in found] == [
        ["3:33", "rules[0].for:"],
        ["4:42", "rules[1].with.unseen:"],
        ["5:11", "rules[2].use:"],
        ["6:68", "rules[3].per_camera.front.for:"],
        ["7:23", "rules[4].when:"],
    ]
    assert "write a shorter time" in found[0]
    assert "write a shorter `lost_after`" in found[4]


def test_lost_after_is_a_key_of_the_rule() -> None:
    text = "version: 1\nrules: [{id: a, when: lost}, {id: b, when: lost, lost_after: 3s}]"
    rules = parse_rules(text, "rules.yaml").rules
    assert [rules[name].rule.when.at_most_ns / 1e9 for name in "ab"] == [9, 7], "until 10 s after they were seen"
    assert rules["a"].rule.when.about_lost


def test_a_word_may_be_about_joints_without_a_side() -> None:
    define = 'define: {raised: "above(wrist, shoulder) > 0.5bl"}\n'
    rules = parse_rules(f"version: 1\n{define}rules: [{{id: a, when: either(raised)}}]", "rules.yaml")
    assert [text for text, _ in rules.rules["a"].rule.when.parts] == ["raised (left)", "raised (right)"]
    with pytest.raises(GraphError, match="either"):
        parse_rules(f"version: 1\n{define}rules: [{{id: a, when: raised}}]", "rules.yaml")


def test_photographs_have_no_past() -> None:
    text = """\
version: 1
define: {fell: "drop(hips.y, 1s) > 0.5bl"}
rules:
  - {id: falls, when: fell}
  - {id: stays, when: in door for 5s}
  - {id: gone, when: lost, cameras: [film]}
  - {id: some, scope: scene, who: was in door within 2s, when: count > 2}
  - {id: lies, when: lean > 60deg}
zones: {door: [[0, 0], [1, 0], [1, 1]]}
"""
    rules = parse_rules(text, "rules.yaml")
    assert rules.looking_back == {"falls", "stays", "gone", "some"}
    remarks = list(impossible_alone(rules.file, ["photos"], rules.looking_back))
    assert [remark.split(" ")[2] for remark in remarks] == ["falls", "stays", "some"]
    assert remarks[0] == "the rule falls looks back in time, and nothing came before each of the photographs of photos"
