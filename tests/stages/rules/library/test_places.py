"""Actions about places and several people, with walkers over a floor."""

from __future__ import annotations

import pytest

from camgraph.stages.rules.onlooker import picture_of
from camgraph.stages.rules.rule_set import parse_rules
from camgraph.tools.lab.action_trials import Firing, firings
from camgraph.tools.scenes.animator import PERFECT, YOLO11N, Actor, Camera, Scene
from camgraph.tools.scenes.animator.library import standing
from camgraph.tools.scenes.animator.messages import tracks
from camgraph.tools.scenes.animator.walking import walk

pytestmark = pytest.mark.slow

ABOVE = Camera(height_m=3.0, heading_deg=90).at(7.0, bearing_deg=-90.0)
"""Looks along y at the origin; x is to the right."""
PLACES = """\
version: 1
zones: {left_half: [[0, 0], [0.5, 0], [0.5, 1], [0, 1]]}
lines: {middle: {from: [0.5, 1.0], to: [0.5, 0.0]}}
rules:
"""


def found(actors: list[Actor], rules: str, *, duration_s: float | None = None, fps: float = 12.5) -> list[Firing]:
    frames = Scene("places", actors, duration_s=duration_s).frames(fps, 0, ABOVE, YOLO11N)
    return firings(parse_rules(PLACES + rules, "r"), [picture_of(item) for item in tracks(frames)])


def walker(start: float, end: float, *, y: float = 0.0, start_s: float = 0.0) -> Actor:
    return Actor(
        [walk([(end, y)], 1.2), standing(2.0)],
        start,
        y,
        0.0 if end > start else 180.0,
        start_s=start_s,
        appears_s=start_s,
    )


@pytest.mark.parametrize("fps", [25.0, 8.0, 3.0])
def test_zones_and_lines(fps: float) -> None:
    rules = """\
  - {use: enters_zone, with: {zone: left_half}}
  - {use: leaves_zone, with: {zone: left_half}}
  - {use: crosses_line, with: {line: middle}}
  - {use: wrong_way, with: {line: middle}}
"""
    to_the_left = {one.rule for one in found([walker(2.0, -2.0)], rules, fps=fps)}
    to_the_right = {one.rule for one in found([walker(-2.0, 2.0)], rules, fps=fps)}
    assert to_the_left == {"enters_zone", "wrong_way"}
    assert to_the_right == {"leaves_zone", "crosses_line"}


def test_running_and_walking() -> None:
    rules = "  - {use: running}\n  - {use: walking}\n"
    runs = Actor([walk([(5.0, 1.0)], 3.2, name="running")], -5.0, 1.0)
    assert {one.rule for one in found([runs], rules)} >= {"running"}
    assert [one.rule for one in found([walker(-3.0, 3.0)], rules)] == ["walking"]


def test_loitering() -> None:
    rules = "  - {use: loitering, with: {zone: left_half, stay: 5s}}\n"
    stays = Actor([standing(9.0)], -1.5)
    assert [one.rule for one in found([stays, walker(2.0, -2.0)], rules, duration_s=6.5)] == ["loitering"]


def test_how_many_are_there() -> None:
    rules = "  - {use: crowd, with: {more_than: 2}}\n  - {use: nobody_there, with: {empty: 3s}}\n"
    three = [Actor([standing(8.0)], x, gone_s=8.0) for x in (-1.5, 0.0, 1.5)]
    assert [one.rule for one in found(three, rules, duration_s=13.0)] == ["crowd", "nobody_there"]
    assert found(three[:2], rules, duration_s=7.0) == []


@pytest.mark.parametrize("fps", [25.0, 8.0, 3.0])
@pytest.mark.parametrize(("behind_s", "fires"), [(0.0, 1), (1.6, 1), (5.0, 0)])
def test_tailgating(fps: float, behind_s: float, fires: int) -> None:
    rules = "  - {use: tailgating, with: {line: middle}}\n"
    two = [walker(-2.0, 2.0), walker(-2.0, 2.0, y=0.6, start_s=behind_s)]
    assert len(found(two, rules, fps=fps)) == fires
    assert found([walker(-2.0, 2.0), walker(2.0, -2.0, y=0.6)], rules, fps=fps) == []


def test_tailgating_of_one_who_has_left_the_picture() -> None:
    """The first is gone when the second comes; and of five who follow each other, four fire it."""
    rules = "  - {use: tailgating, with: {line: middle}}\n"

    def gone(start_s: float) -> Actor:
        return Actor([walk([(2.0, 0.0)], 1.2)], -2.0, 0.0, start_s=start_s, appears_s=start_s, gone_s=start_s + 2.2)

    assert len(found([gone(0.0), gone(2.5)], rules)) == 1
    assert len(found([gone(2.1 * number) for number in range(5)], rules)) == 4


def test_a_queue() -> None:
    rules = "  - {use: queue, with: {zone: left_half, more_than: 1, wait: 3s}, for: 2s}\n"
    two = [Actor([standing(9.0)], x) for x in (-1.9, -1.0)]
    assert [one.rule for one in found(two, rules, duration_s=8.0)] == ["queue"]
    assert found([two[0], walker(-3.0, 3.0)], rules, duration_s=8.0) == []


def test_two_people() -> None:
    rules = "  - {use: too_close}\n  - {use: approaching}\n"
    meeting = [Actor([standing(9.0)], 0.0), walker(-2.5, -0.5)]
    assert {one.rule for one in found(meeting, rules)} == {"too_close", "approaching"}
    assert found([Actor([standing(8.0)], -1.0), Actor([standing(8.0)], 1.0)], rules) == []


def test_leaving_a_group() -> None:
    rules = "  - {use: leaving_group, with: {together: 3s}}\n"
    leaves = Actor([standing(4.5), walk([(3.0, 0.0)], 1.2)], 0.5)
    assert [one.rule for one in found([Actor([standing(10.0)], 0.0), leaves], rules)] == ["leaving_group"]
    assert found([Actor([standing(8.0)], 0.0), walker(-2.5, 2.5, y=0.3)], rules) == []


def test_a_perfect_model_changes_nothing() -> None:
    frames = Scene("one", [walker(2.0, -2.0)]).frames(12.5, 0, ABOVE, PERFECT)
    rules = parse_rules(PLACES + "  - {use: wrong_way, with: {line: middle}}\n", "r")
    assert len(firings(rules, [picture_of(item) for item in tracks(frames)])) == 1
