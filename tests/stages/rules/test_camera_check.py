"""Rules, zones and lines are for cameras that there are, and lie within their frames."""

from __future__ import annotations

import unicodedata

import pytest

from camgraph.stages.rules.camera_check import FrameSizes, unwatched
from camgraph.stages.rules.rule_set import examined_rules

CAMERAS: FrameSizes = {"room-3": (640, 360), "gate-1": None, "gate-2": (1920, 1080)}
ZONES = """\
zones:
  door: [[0.1, 0.1], [0.5, 0.1], [0.5, 0.9]]
  till: {room-3: [[100, 100], [200, 100], [200, 300]]}
lines:
  exit: {gate-1: {from: [10, 10], to: [20, 10]}}
"""


def mistakes_in(text: str, cameras: FrameSizes = CAMERAS) -> list[str]:
    return [str(problem).removeprefix("r:") for problem in examined_rules(text, "r", cameras)[1]]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (
            "{id: a, when: in door, cameras: [room3]}",
            "7:38: rules[0].cameras[0]: no camera of the graph is called `room3`; did you mean `room-3`? "
            "(one that comes later belongs under `other_cameras`)",
        ),
        (
            "{id: a, when: in door, cameras: [room-3, 'gta-*']}",
            "7:46: rules[0].cameras[1]: no camera of the graph fits `gta-*`; there is room-3, gate-1, gate-2 "
            "(one that comes later belongs under `other_cameras`)",
        ),
        (
            "{id: a, when: in till, cameras: [room-3, gate-2]}",
            "7:46: rules[0].cameras[1]: `gate-2` has no zone `till`, so this rule would never fire there: draw it",
        ),
        (
            "{id: a, when: in till, cameras: ['gate-*']}",
            "7:5: rules[0]: no camera has all the zones and lines that this rule uses, so it would never fire: "
            "draw them for one",
        ),
        ("{id: a, when: in till or crosses(exit)}", "7:5: rules[0]: no camera has all the zones and lines"),
    ],
)
def test_a_rule_that_no_camera_has_is_a_mistake(rule: str, expected: str) -> None:
    [line] = mistakes_in(f"{ZONES}rules:\n  - {rule}\n")
    assert line.startswith(expected)


@pytest.mark.parametrize(
    "rule",
    [
        "{id: a, when: in door}",
        "{id: a, when: in door, cameras: ['gate-*', room-3]}",
        "{id: a, when: in till, cameras: [room-3]}",
        "{id: a, when: crosses(exit)}",
    ],
)
def test_what_is_for_cameras_that_there_are_is_right(rule: str) -> None:
    assert mistakes_in(f"{ZONES}rules:\n  - {rule}\n") == []


def test_a_mistake_in_a_condition_hides_no_unknown_camera() -> None:
    found = mistakes_in("rules:\n  - {id: a, when: in dor, cameras: [room3]}\n  - {id: b, cameras: [gate3]}\n")
    assert sorted(line.split(": ")[1] for line in found) == [
        "rules[0].cameras[0]",
        "rules[0].when",
        "rules[1]",
        "rules[1].cameras[0]",
    ]


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        (
            "zones: {till: {rom-3: [[0, 0], [1, 0], [1, 1]], '*': [[0, 0], [1, 0], [1, 1]]}}",
            "1:23: zones.till.rom-3: no camera of the graph is called `rom-3`; did you mean `room-3`?",
        ),
        (
            "zones: {till: {'gate-*': [[0, 0], [1, 0], [1, 1]], '*': [[0, 0], [1, 0], [1, 1]]}}",
            '1:26: zones.till.gate-*: expected the name of one camera or "*" for every other, got the pattern `gate-*`',
        ),
        (
            "zones: {till: {room-3: [[0, 0], [640, 0], [640, 361]], '*': [[0, 0], [1, 0], [1, 1]]}}",
            "1:43: zones.till.room-3[2]: (640, 361) lies outside of the frames of `room-3`, which are 640 x 360",
        ),
        (
            "zones: {till: [[0, 0], [1000, 0], [1000, 1000]]}",
            "1:24: zones.till[1]: (1000, 0) lies outside of the frames of `room-3`, which are 640 x 360",
        ),
        (
            "lines: {till: {from: [0, 0], to: [700, 0]}}",
            "1:34: lines.till.to: (700, 0) lies outside of the frames of `room-3`, which are 640 x 360",
        ),
    ],
)
def test_zone_of_no_camera_or_outside_frame_is_mistake(shapes: str, expected: str) -> None:
    [line] = mistakes_in(f"{shapes}\nrules:\n  - {{id: a, when: score > 0.5}}\n")
    assert line.startswith(expected), line


def test_zone_may_fill_frame_or_be_of_unknown_size() -> None:
    shapes = "zones: {a: {room-3: [[0, 0], [640, 0], [640, 360]], gate-1: [[0, 0], [4000, 0], [4000, 3000]]}}"
    assert mistakes_in(f"{shapes}\nrules:\n  - {{id: a, when: in a}}\n") == []


def test_cameras_that_come_later_are_named() -> None:
    text = """\
zones: {hall: {hall-7: [[0, 0], [1, 0], [1, 1]]}}
other_cameras: [hall-7, "roof-*"]
rules:
  - {id: a, when: in hall}
  - {id: b, when: score > 0.5, cameras: [hall-7, roof-1, "roof-*", "hall-?"]}
  - {id: c, when: score > 0.5, cameras: [hall-8]}
"""
    assert [line.split(": ")[1] for line in mistakes_in(text)] == ["rules[2].cameras[0]"]


def test_a_camera_without_a_rule_is_remarked() -> None:
    rules, _ = examined_rules("rules:\n  - {id: a, when: score > 0.5, cameras: ['gate-*']}\n", "r")
    assert rules is not None
    assert list(unwatched(rules.file, rules.used, {"gate-1": None, "gat-2": None})) == [
        "no rule is for the camera gat-2; did you mean `gate-*`?"
    ]


def test_names_of_cameras_are_the_same_composed_and_decomposed() -> None:
    text = """\
zones: {door: {Süd: [[0, 0], [1, 0], [1, 1]], Ost: [[0, 0], [1, 0], [1, 1]]}}
other_cameras: [Öst]
rules:
  - {id: a, when: in door, cameras: [Süd]}
  - {id: b, when: score > 0.5, cameras: ["S?d", "*üd", "Ö*"]}
"""
    sizes: FrameSizes = {"Süd": (640, 360), "Ost": None}
    rules, problems = examined_rules(unicodedata.normalize("NFD", text), "r", sizes)
    assert problems == []
    assert rules is not None
    assert [ready.definition.id for ready in rules.of_camera("Süd")] == ["a", "b"]
    assert rules.surroundings("Süd", (640, 360)).zones.keys() == {"door"}
