"""Rules that are different for some cameras."""

from __future__ import annotations

import pytest

from camgraph.stages.rules.rule_set import examined_rules, parse_rules

TEXT = """\
zones: {door: [[0, 0], [1, 0], [1, 1]]}
templates:
  stays:
    parameters: {zone: {kind: zone}, stay: 30s, pace: 0.2h/s}
    when: in {zone} and speed < {pace}
    for: "{stay}"
rules:
  - use: stays
    with: {zone: door, pace: 0.1h/s}
    hold: 3s
    per_camera:
      "f*": {with: {stay: 1s}}
      front: {with: {stay: 2min}, min_confidence: 0.2, severity: alarm}
      "fr*": {hold: 9s}
  - {id: up, when: left_wrist.y < nose.y, for: 1s, per_camera: {front: {for: 5s}}}
"""


def test_a_name_wins_over_patterns_and_then_the_first_pattern() -> None:
    rules = parse_rules(TEXT, "r")
    found = {
        camera: {
            ready.definition.id: (ready.definition.for_, ready.definition.hold, ready.definition.severity)
            for ready in rules.of_camera(camera)
        }
        for camera in ("front", "free", "back")
    }
    assert found == {
        "front": {"stays": ("2min", "3s", "alarm"), "up": ("5s", "0.5s", "warning")},
        "free": {"stays": ("1s", "3s", "warning"), "up": ("1s", "0.5s", "warning")},
        "back": {"stays": ("30s", "3s", "warning"), "up": ("1s", "0.5s", "warning")},
    }
    front = rules.of_camera("front")[0]
    assert front.rule.min_confidence == 0.2
    assert front.definition.when == "in door and speed < 0.1h/s"


def test_a_hash_is_that_of_the_rule_for_the_camera() -> None:
    """What another camera has by itself changes nothing."""
    before, after = (parse_rules(text, "r") for text in (TEXT, TEXT.replace("stay: 2min", "stay: 3min")))
    changed = [
        (camera, one.definition.id)
        for camera in ("front", "free", "back")
        for one, other in zip(before.of_camera(camera), after.of_camera(camera), strict=True)
        if one.hash != other.hash
    ]
    assert changed == [("front", "stays")]


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("{id: a, when: score > 0, per_camera: {front: {fro: ^1s}}}", "unknown key `fro`; did you mean `for`?"),
        ("{id: a, when: score > 0, per_camera: {front: {for: ^1}}}", "expected a time with its unit, such as 1s"),
        ("{use: loitering, with: {zone: door}, per_camera: {front: {with: {zone: ^dor}}}}", "did you mean `door`?"),
        ("{use: loitering, with: {zone: door}, per_camera: {front: {with: {say: ^1s}}}}", "did you mean `stay`?"),
        ("{id: a, when: score > 0, per_camera: {front: {with: ^{say: 1s}}}}", "name it under `use`"),
        ("{id: a, when: score > 0, per_camera: {frnot: ^{for: 1s}}}", "did you mean `front`?"),
        ("{id: a, when: score > 0, cameras: [back], per_camera: {front: ^{for: 1s}}}", "the rule is not for `front`"),
        ("{id: a, when: score > 0, per_camera: {front: {when: ^age > 1s}}}", "unknown key `when`"),
    ],
)
def test_mistakes(rule: str, words: str) -> None:
    """`^` marks the place; an unknown key is told at the key."""
    text = f"zones: {{door: [[0, 0], [1, 0], [1, 1]]}}\nrules:\n  - {rule.replace('^', '')}\n"
    sizes = {"front": (100, 100), "back": (100, 100)}
    [reported] = [str(problem) for problem in examined_rules(text, "r", sizes)[1]]
    column = rule.index("^") + 5
    if "unknown key" in words:
        column -= rule.index("^") - rule.rindex("{", 0, rule.index("^")) - 1
    assert reported.startswith(f"r:3:{column}: ")
    assert words in reported


def test_a_file_has_a_bounded_number_of_them() -> None:
    patterns = ", ".join(f"c{n}: {{}}" for n in range(100))
    rules = "".join(f"  - {{id: r{n}, when: score > 0, per_camera: {{{patterns}}}}}\n" for n in range(21))
    [problem] = examined_rules(f"rules:\n{rules}", "r")[1]
    assert "more than 2,000 cameras and patterns" in problem.text
