"""Files of rules: what they mean for a camera, and every mistake at its place."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import pytest

from camgraph.pipeline.errors import GraphError, UserError
from camgraph.stages.rules.rule_file import duration_ns
from camgraph.stages.rules.rule_set import examined_rules, parse_rules, read_rules
from camgraph.stages.video import dates

CONFIGS = Path(__file__).resolve().parents[3] / "configs"

GOOD = """\
version: 1
zones:
  door: [[0.1, 0.1], [0.5, 0.1], [0.5, 0.9]]
  till:
    front: [[100, 100], [200, 100], [200, 300]]
lines:
  gate: {from: [0, 0.5], to: [1, 0.5]}
  exit: {yard: {from: [10, 10], to: [20, 10]}}
rules:
  - {id: a, when: in door, for: 2s, cooldown: 1min}
  - {id: b, when: in till, cameras: [front, back]}
  - {id: c, when: crosses(gate) or crosses(exit)}
  - {id: d, action: raised, when: nose.y < 0.5fh, cameras: ["f*"], min_confidence: 0.6}
  - {id: e-f, scope: scene, who: in door, when: count >= 3}
"""


def test_camera_gets_rules_of_its_zones_and_lines() -> None:
    rules = parse_rules(GOOD, "rules.yaml")
    of = {name: [ready.definition.id for ready in rules.of_camera(name)] for name in ("front", "back", "yard")}
    assert of == {"front": ["a", "b", "d", "e-f"], "back": ["a", "e-f"], "yard": ["a", "c", "e-f"]}


def test_a_zone_to_the_border_has_who_is_cut_by_it() -> None:
    text = "{zones: {near: [[0, 0.5], [1, 0.5], [1, 1], [0, 1]]}, rules: [{id: a, when: in near, for: 1s}]}"
    rules = parse_rules(text, "rules.yaml")
    for near in (
        rules.surroundings("front", (640, 480)).zones["near"],
        rules.zones_of(rules.rules["a"], "front", (640, 480))["near"],
    ):
        assert near(320, 480)
        assert not near(320, 239)


def test_names_in_any_script() -> None:
    text = """\
        zones: {Küche: [[0, 0], [1, 0], [1, 1]], 厨房: [[0, 0], [1, 0], [1, 1]]}
        lines: {вход: {from: [0, 0], to: [1, 1]}}
        define: {müde: lean > 40deg}
        templates: {bleibt: {parameters: {длина: 2s, ort: {kind: zone}}, when: "in {ort}", for: "{длина}"}}
        rules:
          - {id: a, when: in Küche and müde or in 厨房 or crosses(вход)}
          - {use: bleibt, with: {ort: Küche}}
        """
    for written in (text, unicodedata.normalize("NFD", text)):
        rules = parse_rules(written, "rules.yaml").rules
        assert rules["a"].rule.when.zones == {"Küche", "厨房"}
        assert rules["bleibt"].rule.when.zones == {"Küche"}
        assert rules["bleibt"].rule.timing.for_ns == 2 * 10**9


def test_what_is_never_true_is_remarked_at_its_place() -> None:
    text = (
        "rules:\n - {id: a, when: age > 1s or score > 5}\n - {id: b, scope: scene, who: lean > 400deg, when: count > 1}"
    )
    told = parse_rules(text, "rules.yaml").remarks
    assert [one.partition(" is never")[0] for one in told] == [
        "rules.yaml:2:18: the rule a: `score > 5`",
        "rules.yaml:3:31: the rule b: `lean > 400deg`",
    ]


def test_a_zone_that_may_be_meant_as_percent_is_remarked() -> None:
    zones = "zones:\n  corner: [[10, 10], [50, 10], [50, 50]]\n  till: {front: [[0, 0], [80, 0], [80, 100]]}\n"
    others = "  door: [[0, 0], [1, 0], [1, 1]]\n  wide: [[10, 10], [500, 10], [500, 50]]\n"
    lines = "lines: {gate: {from: [20, 90], to: [80, 90]}}\n"
    rules = "rules: [{id: a, when: in corner or in till or in door or in wide or crosses(gate)}]\n"
    told = parse_rules(f"{zones}{others}{lines}{rules}", "r").remarks
    assert told[0] == (
        "r:2:11: the zone corner is in pixels, as numbers above 1 are: 40 x 40 pixels in the upper left corner; shares "
        "of the frame are from 0 to 1, so for percent write [0.1, 0.1] instead of [10, 10]"
    )
    assert [one.partition(" is in pixels")[0] for one in told[1:]] == ["r:3:17: the zone till", "r:6:15: the line gate"]


def test_a_schedule_from_a_time_to_the_same_is_remarked() -> None:
    day, night = "{from: '21:00', to: '21:00'}", "{from: '21:00', to: '06:00'}"
    rules = "rules: [{id: a, when: score > 0, during: night}]\n"
    begin = "time_zone: UTC\nschedules: "
    [told] = parse_rules(f"{begin}{{night: {day}}}\n{rules}", "r").remarks
    assert told == "r:2:20: the schedule night: from 21:00 to 21:00 is 24 hours, to the next day"
    [told] = parse_rules(f"{begin}{{night: [{night}, {day}]}}\n{rules}", "r").remarks
    assert told.startswith("r:2:51: ")
    assert not parse_rules(f"{begin}{{night: {night}}}\n{rules}", "r").remarks


@pytest.mark.parametrize("name", ["2nd", "a-b", "a b", "in", "²", "x" * 65])
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(GraphError, match=r"expected a name of letters of any script|is a word of the language"):
        parse_rules(f"zones: {{'{name}': [[0, 0], [1, 0], [1, 1]]}}\nrules: [{{id: a, when: age > 1s}}]", "rules.yaml")


def test_zones_in_pixels_and_fractions() -> None:
    rules = parse_rules(GOOD, "rules.yaml")
    around = rules.surroundings("front", (1000, 500))
    assert list(around.zones) == ["door", "till"]
    assert around.zones["door"](480, 80)
    assert around.zones["till"](190, 120)
    assert rules.surroundings("yard", (1000, 500)).lines["gate"].end == (1000, 250)


def test_what_a_rule_is_made_of() -> None:
    rules = parse_rules(GOOD, "rules.yaml").rules
    assert (rules["a"].rule.timing.for_ns, rules["a"].rule.timing.cooldown_ns) == (2 * 10**9, 60 * 10**9)
    assert (rules["a"].action, rules["d"].action) == ("a", "raised")
    assert (rules["a"].rule.min_confidence, rules["d"].rule.min_confidence) == (0.3, 0.6)


def test_the_hash_is_that_of_the_rule_and_what_it_uses() -> None:
    before = parse_rules(GOOD, "rules.yaml").rules
    after = parse_rules(GOOD.replace("[0.5, 0.9]", "[0.5, 0.8]"), "other.yaml").rules
    changed = [name for name in before if before[name].hash != after[name].hash]
    assert changed == ["a", "e-f"]


@pytest.mark.parametrize("rule_id", ["stürzt", "упал", "転倒", "-".join("abc"), "4th", "x" * 64])
def test_a_rule_is_called_in_any_script(rule_id: str) -> None:
    assert list(parse_rules(f"rules: [{{id: {rule_id}, when: score > 0}}]", "r").rules) == [rule_id]


def test_times() -> None:
    assert [duration_ns(text) for text in ("2s", "500ms", "1.5min", "0s")] == [2 * 10**9, 5 * 10**8, 9 * 10**10, 0]


MISTAKES = """\
version: 1
min_confidence: 1.5
zones:
  flat: [[0, 0], [0.5, 0.5], [1, 1]]
  two: [[0, 0], [1, 0]]
  mixed: [[0.1, 0.2], [300.5, 0.4], [0.1, 300]]
  in: [[0, 0], [1, 0], [1, 1]]
lines:
  point: {from: [0.5, 0.5], to: [0.5, 0.5]}
rules:
  - id: one
    when: left_wrst.y < nose.y - 1
  - id: two
    when: "nose.y < left_hip.y - 0.1"
    for: 2
  - id: two
    wen: in flat
  - {id: four, when: in dor, hold: 2 seconds}
  - id: five
    when: >-
      nose.y < 0.5
    scope: persn
  - {id: six, when: in tow}
"""


def test_all_mistakes_at_once_each_at_its_place() -> None:
    with pytest.raises(GraphError) as caught:
        parse_rules(MISTAKES, "rules.yaml")
    lines = str(caught.value).splitlines()
    expected = [
        (2, 17, "min_confidence: expected 1 or less, got 1.5"),
        (4, 9, "the corners lie on one line"),
        (5, 8, "expected 3 or more corners, got 2"),
        (6, 10, "fractions and pixels are mixed"),
        (7, 3, "`in` is a word of the language"),
        (9, 33, "the line ends where it begins"),
        (12, 11, "rules[0].when: `left_wrst.y` is not known; did you mean `left_wrist`?"),
        (12, 25, "rules[0].when: `nose.y - 1`: a bare number"),
        (14, 21, "rules[1].when: `left_hip.y - 0.1`: a bare number"),
        (15, 10, "expected a time with its unit, such as 2s, got 2"),
        (16, 5, "`when` is missing"),
        (16, 9, "rules[2].id: a rule `two` stands above"),
        (17, 5, "unknown key `wen`; did you mean `when`?"),
        (18, 25, "rules[3].when: there is no zone `dor`"),
        (18, 36, "expected a time such as 2s, 500ms or 1min, got '2 seconds'"),
        (21, 7, "rules[4].when: `nose.y < 0.5`: a position"),
        (22, 12, "expected one of 'person', 'pair', 'scene' or 'group', got 'persn'; did you mean `person`?"),
        (23, 24, "rules[5].when: there is no zone `tow`; did you mean `two`?"),
    ]
    assert len(lines) == len(expected), lines
    for line, (row, column, words) in zip(lines, expected, strict=True):
        assert line.startswith(f"rules.yaml:{row}:{column}: "), (line, words)
        assert words in line


@pytest.mark.parametrize(("before", "after"), [("gate: ", ""), ("gate: {front: ", "}")])
def test_a_line_of_fractions_and_pixels(before: str, after: str) -> None:
    line = f"{before}{{from: [0.55, 0.3], to: [1.05, 0.42]}}{after}"
    [problem] = examined_rules(f"lines: {{{line}}}\nrules: [{{id: a, when: crosses(gate)}}]", "r")[1]
    assert (problem.line, problem.column) == (1, 9 + len(before))
    assert "fractions and pixels are mixed" in problem.text


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ('rules:\n  - {id: a, when: "in dor"}', "2:23", "there is no zone `dor`"),
        (
            "rules:\n  - id: a\n    when: nose.y < 1px\n  - id: a\n    when: nose.y < 2px",
            "4:9",
            "a rule `a` stands above",
        ),
        ("rules:\n  - {id: a, when: nose.y < 1px, who: nose.y < 1px}", "2:38", "`who` needs `scope: scene`"),
        ("rules:\n  - id: a\n    when: >-\n      nose.y <\n      1", "4:7", "a bare number"),
        ("rules: []", "1:8", "expected 1 or more items"),
        (
            "zones: {a: [[0, x], [1, 0], [1, 1]]}\nrules: [{id: a, when: in a}]",
            "1:17",
            "zones.a[0][1]: expected a number, got 'x'",
        ),
        (
            "zones: {a: [[0], [1, 0], [1, 1]]}\nrules: [{id: a, when: in a}]",
            "1:13",
            "zones.a[0]: expected a point [x, y], got a list of 1",
        ),
        ("[1, 2]", "1:1", "expected `key: value` lines"),
        ("rules: [", "2:1", "not YAML"),
        (
            'rules:\n  - {id: a, when: nose.y < 1px, action: "\\e]0;x"}',
            "2:41",
            "letters that can be seen, got '\\x1b]0;x'",
        ),
        ("rules:\n  - {id: a, when: nose.y < 1px, for: ١s}", "2:38", "got '١s'"),
        (
            "rules:\n  - {id: a b, when: nose.y < 1px}",
            "2:10",
            "rules[0].id: expected letters of any script, digits, `_` and `-` (at most 64 characters), got 'a b'; "
            "did you mean `a-b`?",
        ),
        (f"rules:\n  - {{id: {'ü' * 65}, when: nose.y < 1px}}", "2:10", "at most 64 characters"),
        ("rules:\n  - {id: Stürzt, when: score > 0}\n  - {id: Stu\u0308rzt, when: score > 0}", "3:10", "stands above"),
        ("rules:\n  - {id: a, when: nose.y < 1px}\n  - {id: b, when: yes}", "3:19", "quotes"),
        ("version: 2\nrules: [{id: a, when: nose.y < 1px}]", "1:10", "expected 1, got 2"),
    ],
)
def test_mistakes(text: str, place: str, words: str) -> None:
    with pytest.raises(GraphError) as caught:
        parse_rules(text, "r.yaml")
    assert str(caught.value.problems[0]).startswith(f"r.yaml:{place}: ")
    assert words in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no rules file"):
        read_rules(tmp_path / "none.yaml")
    with pytest.raises(UserError, match="is a folder: expected a file of rules"):
        read_rules(tmp_path)
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="is no text file"):
        read_rules(tmp_path / "binary.yaml")


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*_rules.yaml")), ids=lambda path: path.name)
def test_the_rules_that_come_along(path: Path) -> None:
    assert read_rules(path).of_camera("any")


def test_the_examples_of_the_documentation() -> None:
    """Every block of YAML in docs/rules.md is a file of rules, or a list of rules, that is right."""
    text = (CONFIGS.parent / "docs" / "rules.md").read_text()
    blocks = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 3
    for block in blocks:
        whole = block if "rules:" in block else f"rules:\n{block}"
        assert parse_rules(whole, "docs/rules.md").rules


def test_aliases_that_multiply_are_bounded_in_a_file_of_rules() -> None:
    levels = ["zones: {z: [[0, 0], [1, 0], [1, 1]]}", "x0: &x0 [1]"]
    levels += [f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 10)}]" for n in range(1, 10)]
    with pytest.raises(GraphError, match=r"^r:\d+:\d+: more than 100,000 values, aliases counted"):
        parse_rules("\n".join(levels), "r")


def test_rules_are_in_no_file_of_the_kernel() -> None:
    with pytest.raises(UserError, match="is a file of the kernel: expected a file of rules"):
        read_rules(Path("/proc/self/status"))


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("rules: [{id: a, when: score > 0, during: nihgt}]\n", "4:42", "no schedule `nihgt`; did you mean `night`?"),
        ("rules: [{id: a, when: score > 0, not_during: [x]}]\n", "4:46", "no schedule `x`; known: night"),
        ("holidays: [2026-02-30]\nrules: [{id: a, when: score > 0}]\n", "4:12", "there is no day 2026-02-30"),
        ("holidays: [soon]\nrules: [{id: a, when: score > 0}]\n", "4:12", "such as 2026-12-24, or 12-25"),
        (
            "rules: [{id: a, when: score > 0, severity: alert}]\n",
            "4:44",
            "one of 'info', 'warning' or 'alarm'",
        ),
        ("rules: [{id: a, when: score > 0}]\nother: 1", "5:1", "unknown key `other`"),
    ],
)
def test_mistakes_in_times_of_day(text: str, place: str, words: str) -> None:
    begin = 'version: 1\ntime_zone: Europe/Berlin\nschedules: {night: {from: "21:00", to: "06:00"}}\n'
    with pytest.raises(GraphError) as caught:
        parse_rules(begin + text, "r")
    assert str(caught.value.problems[0]).startswith(f"r:{place}: "), caught.value
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("schedules", "place", "words"),
    [
        ("{night: {from: '21:00', to: '6:00'}}", "2:40", "expected a time of day"),
        ("{night: {from: 21:00, to: '06:00'}}", "2:27", "with quotes"),
        ("{night: {from: '21:00'}}", "2:13", "`to` is missing"),
        ("{night: {from: '21:00', to: '06:00', days: [son]}}", "2:56", "did you mean `sun`?"),
        ("{night: {from: '21:00', to: '06:00', days: fry}}", "2:55", "did you mean `fri`?"),
        ("{night: {from: '21:00', to: '06:00', except: weekends}}", "2:57", "expected 'holidays'"),
    ],
)
def test_mistakes_in_schedules(schedules: str, place: str, words: str) -> None:
    rules = "rules: [{id: a, when: score > 0, during: night}]\n"
    with pytest.raises(GraphError) as caught:
        parse_rules(f"time_zone: UTC\nschedules: {schedules}\n{rules}", "r")
    [lines] = str(caught.value).splitlines()
    assert lines.startswith(f"r:{place}: "), lines
    assert words in lines


def test_schedules_need_a_zone() -> None:
    schedules = "schedules: {night: {from: '21:00', to: '06:00'}}\n"
    rules = "rules: [{id: a, when: score > 0, during: night}]\n"
    with pytest.raises(GraphError, match=r"^r:1:12: schedules: expected `time_zone` beside `schedules`"):
        parse_rules(schedules + rules, "r")


@pytest.mark.parametrize(
    ("zone", "message"),
    [
        ("Europe/Berln", "there is no time zone 'Europe/Berln'; did you mean `Europe/Berlin`?"),
        ("Berlin", "there is no time zone 'Berlin'; did you mean `Europe/Berlin`?"),
        ("new york", "there is no time zone 'new york'; did you mean `America/New_York`?"),
        ("nowhere at all", "there is no time zone 'nowhere at all': expected one such as Europe/Berlin, or +01:00"),
    ],
)
def test_a_wrong_time_zone_is_the_only_mistake(zone: str, message: str) -> None:
    schedules = "schedules: {night: {from: '21:00', to: '06:00'}}\n"
    rules = "rules: [{id: a, when: score > 0, during: night}]\n"
    with pytest.raises(GraphError) as caught:
        parse_rules(f"time_zone: {zone}\n{schedules}{rules}", "r")
    assert str(caught.value) == f"r:1:12: time_zone: {message}"


def test_a_machine_without_time_zones_is_told_from_a_wrong_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dates, "available_timezones", set)
    with pytest.raises(ValueError, match=r"this machine knows no time zones, .* `pip install tzdata`"):
        dates.zone_of("Europe/Berln")


@pytest.mark.parametrize(
    ("rule", "place", "words"),
    [
        ("for: 2 minutes", "2:38", "got '2 minutes'; did you mean `2min`?"),
        ("for: 2m", "2:38", "did you mean `2min`?"),
        ("for: 2 sec", "2:38", "did you mean `2s`?"),
        ("for: 1.5h", "2:38", "did you mean `90min`?"),
        ('for: "1,5 s"', "2:38", "did you mean `1.5s`?"),
        ("for: {stay}", "2:38", "expected a time with its unit such as 2s or 500ms, got `key: value` lines"),
        ("at: night", "2:33", "unknown key `at`; did you mean `during`?"),
        ("if: score > 1", "2:33", "unknown key `if`; did you mean `when`?"),
        (
            'not_during: "8:00-09:00"',
            "2:45",
            'write `schedules: {my_hours: {from: "08:00", to: "09:00"}}` beside `rules`, and `my_hours` here',
        ),
        ('during: {from: "20:00", to: "22:00"}', "2:41", 'my_hours: {from: "20:00", to: "22:00"}'),
    ],
)
def test_mistakes_that_people_make(rule: str, place: str, words: str) -> None:
    with pytest.raises(GraphError) as caught:
        parse_rules(f"version: 1\nrules: [{{id: a, when: age > 1s, {rule}}}]\n", "r")
    [line] = str(caught.value).splitlines()
    assert line.startswith(f"r:{place}: "), line
    assert words in line


@pytest.mark.parametrize(
    "when",
    ["{left_wrist.y < nose.y}", "{left_wrist.y < nose.y: 3}", "distance(left_wrist, nose) < 1h", "{a} > 3", "a: > 3s"],
)
def test_a_condition_that_yaml_reads_otherwise_stands_in_quotes(when: str) -> None:
    with pytest.raises(GraphError, match="quotes"):
        parse_rules(f"version: 1\nrules: [{{id: a, when: {when}}}]\n", "r")


def test_a_period_that_begins_at_its_end() -> None:
    with pytest.raises(GraphError, match=r'schedules\.night\.from: 24:00 is the end of a day.* write "00:00"'):
        parse_rules(
            'time_zone: UTC\nschedules: {night: {from: "24:00", to: "06:00"}}\nrules: [{id: a, when: age > 1s}]', "r"
        )


@pytest.mark.parametrize(
    ("when", "place", "caret"),
    [
        (">-\n      age > 1s\n      and nse.y < 3px", "5:11", "    and nse.y < 3px\n        ^"),
        ("|\n      age > 1s\n      and nse.y < 3px", "5:11", "    and nse.y < 3px\n        ^"),
        ("age > 1s\n      and nse.y < 3px", "4:11", "    and nse.y < 3px\n        ^"),
        ('"age > 1s and\n      nse.y < 3px"', "4:7", '    nse.y < 3px"\n    ^'),
        ('"age > 1s and \\\n      nse.y < 3px"', "3:11", '    when: "age > 1s and \\\n          ^'),
        ("age > 1s and nse.y < 3px", "3:24", "    when: age > 1s and nse.y < 3px\n                       ^"),
    ],
    ids=["folded", "literal", "plain", "quoted", "escaped", "one line"],
)
def test_the_caret_is_below_the_word(when: str, place: str, caret: str) -> None:
    with pytest.raises(GraphError) as caught:
        parse_rules(f"rules:\n  - id: a\n    when: {when}\n", "r")
    first, _, excerpt = caught.value.with_excerpts.partition("\n")
    assert first == str(caught.value) == f"r:{place}: rules[0].when: `nse.y` is not known; did you mean `nose`?"
    assert excerpt == caret


def test_the_hash_is_also_that_of_its_times() -> None:
    text = (
        "time_zone: UTC\nschedules: {night: {from: '21:00', to: '06:00'}, day: {from: '07:00', to: '09:00'}}\n"
        "rules: [{id: a, when: score > 0, during: night}, {id: b, when: score > 0}]\n"
    )
    before = parse_rules(text, "r").rules
    for change, changed in (("21:00", ["a"]), ("07:00", []), ("UTC", ["a"])):
        after = parse_rules(text.replace(change, {"UTC": "+01:00"}.get(change, "22:00")), "r").rules
        assert [name for name in before if before[name].hash != after[name].hash] == changed


@pytest.mark.parametrize(
    "rule",
    [
        "{id: a, when: enters(door), for: 1s}",
        "{id: a, when: enters(door) for 3s}",
        "{id: a, when: crosses(gate) and speed > 1h/s, for: 0.5s}",
        "{id: a, use: enters_zone, with: {zone: door}, for: 5s}",
        "{id: a, when: first enters(door) for 2s then in door}",
    ],
)
def test_a_moment_that_shall_last_is_a_mistake(rule: str) -> None:
    text = GOOD.partition("rules:")[0] + f"rules:\n  - {rule}\n"
    with pytest.raises(GraphError, match="true in one frame alone"):
        parse_rules(text, "rules.yaml")


@pytest.mark.parametrize(
    "when", ["was enters(door) within 5s", "first enters(door) then in door for 3s", "not enters(door)"]
)
def test_a_moment_may_be_remembered(when: str) -> None:
    text = GOOD.partition("rules:")[0] + f"rules:\n  - {{id: a, when: '{when}', for: 1s}}\n"
    assert list(parse_rules(text, "rules.yaml").rules) == ["a"]


@pytest.mark.slow
def test_a_file_looks_back_in_a_bounded_number_of_ways() -> None:
    """Its program is made when the first frame comes, and has a memory of each for each person."""
    many = "\n".join(
        f"  - {{id: r{n}, when: '{' or '.join(f'usual(nose.y, {n * 16 + k + 300}ms) > 0px' for k in range(16))}'}}"
        for n in range(130)
    )
    with pytest.raises(GraphError, match="2,080 different parts that look back in time: expected at most 2,000"):
        parse_rules(f"version: 1\nrules:\n{many}\n", "rules.yaml")
    same = re.sub(r"\d+ms", "1s", many)
    assert len(parse_rules(f"version: 1\nrules:\n{same}\n", "rules.yaml").rules) == 130


ZONE = "zones: {till: [[0, 0], [0, 1], [1, 1]]}\n"
COUNTS = "rules: [{id: a, scope: scene, when: c.inside > 3}]\n"


@pytest.mark.parametrize(
    ("text", "places"),
    [
        (
            "time_zone: UTC\nschedules: {night: {from: 9pm, to: 6 am}}\n"
            "rules: [{id: a, when: score > 0, during: night}]\n",
            ["2:27", "2:36"],
        ),
        (
            "time_zone: UTC\nschedules: {night: {from: 9pm, to: 6 am}}\n"
            "rules: [{id: a, when: score > 0, during: nihgt}]\n",
            ["2:27", "2:36", "3:42"],
        ),
        ("lines: {gate: {from: [0], to: [0]}}\nrules: [{id: a, when: crosses(gate)}]\n", ["1:22", "1:31"]),
        ("switches: {lit: maybe}\nrules: [{id: a, when: score > 0, while: lit}]\n", ["1:17"]),
        (f"{ZONE}counters: {{c: 3}}\n{COUNTS}", ["2:15"]),
        (f"{ZONE}counters: {{c: {{zone: tilll}}}}\n{COUNTS}", ["2:22"]),
        (f"zones: {{till: [[0, 0]]}}\ncounters: {{c: {{zone: till, report: 3}}}}\n{COUNTS}", ["1:15", "2:36"]),
        ("zones: [a]\nrules: [{id: a, when: in a}, {id: b, when: crosses(gate)}]\n", ["1:8", "2:52"]),
        ("zones: [a]\nrules: [{use: enters_zone, with: {zone: a}}]\n", ["1:8"]),
        ("switches: [lit]\nrules: [{id: a, when: score > 0, while: lit}]\n", ["1:11"]),
        ("schedules: [night]\nrules: [{id: a, when: score > 0, during: night}]\n", ["1:12"]),
    ],
)  # fmt: skip
def test_what_is_wrong_in_itself_is_there_by_name(text: str, places: list[str]) -> None:
    """A rule that names a schedule, a switch, a zone, a line or a counter with a mistake has none for that."""
    problems = examined_rules(text, "r")[1]
    assert sorted(f"{one.line}:{one.column}" for one in problems) == sorted(places), "\n".join(map(str, problems))


def test_a_rule_without_a_right_id_is_not_among_the_known() -> None:
    text = "rules: [{id: b c, when: score > 0}, {id: a, when: running(x)}]\n"
    told = str(examined_rules(text, "r")[1][1])
    assert told.endswith("there is no rule `x`; known: a")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("rules:\n  - {id: a, when: score > 0, cameras: room-3}\n", "expected a list, got 'room-3'; write [room-3]"),
        (
            "rules: [{id: a, scope: group, when: count > 2, near: 1 m}]\n",
            "such as 0.8h, got '1 m'; a picture has no metres: of somebody 1.7 m tall this is `0.59h`",
        ),
        ("rules:\n  - {use: [fall, lying]}\n", "r:2:11: rules[0].use: expected text, got a list of 2"),
        ("other_cameras: gate-*\nrules: [{id: a, when: score > 0}]\n", "got 'gate-*'; write [gate-*]"),
        (
            "time_zone: UTC\nschedules: {night: 21:00-06:00}\nrules: [{id: a, when: score > 0, during: night}]\n",
            """schedules.night: expected times of day such as {from: "21:00", to: "06:00"}, got '21:00-06:00'""",
        ),
        (
            "rules:\n  - {id: a, when: score > 0, about: a: b}\n",
            "r:2:38: not YAML: while parsing a flow mapping, did not find expected ',' or '}'; "
            "put text that holds `: ` in quotes",
        ),
    ],
)
def test_a_message_says_what_to_write(text: str, told: str) -> None:
    try:
        problems = examined_rules(text, "r")[1]
    except GraphError as error:
        problems = list(error.problems)
    [problem] = problems
    assert str(problem).endswith(told)
