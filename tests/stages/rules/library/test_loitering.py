"""Who loiters: somebody who stays in a zone, whether they stand or pace; not who passes through, however often."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from camgraph.stages.rules.onlooker import picture_of
from camgraph.stages.rules.rule_set import parse_rules
from camgraph.tools.lab.action_trials import Firing, firings
from camgraph.tools.scenes.animator import YOLO11N, Actor, Camera, Scene, scenes
from camgraph.tools.scenes.animator.library import standing
from camgraph.tools.scenes.animator.messages import tracks
from camgraph.tools.scenes.animator.walking import walk

pytestmark = pytest.mark.slow

AHEAD = Camera(height_m=3.5, heading_deg=90, tilt_deg=18)
"""Stands at the world's origin, as the scenes want it."""
ZONE = "zones: {place: [[0.3, 0], [0.75, 0], [0.75, 1], [0.3, 1]]}\n"


def told(scene: Scene, *values: str, fps: float = 5.0) -> list[Firing]:
    given = ", ".join(("zone: place", *values))
    rules = parse_rules(f"version: 1\n{ZONE}rules:\n  - {{use: loitering, with: {{{given}}}}}\n", "r")
    return firings(rules, [picture_of(item) for item in tracks(scene.frames(fps, 0, AHEAD, YOLO11N))])


def of(*actors: Actor) -> Scene:
    return Scene("a place", actors)


@pytest.mark.parametrize("fps", [12.5, 5.0, 3.0])
def test_who_paces_in_the_zone_loiters_once(fps: float) -> None:
    """And the passer-by of that scene does not."""
    [one] = told(scenes.loitering(), fps=fps)
    assert one.ids == (1,)
    assert 30 < one.at_s < 34


def test_who_stands_and_takes_a_step_now_and_then_loiters() -> None:
    """With `pace`, only who stands loiters; a step does not begin the time anew."""
    steps = [motion for number in range(5) for motion in (standing(8.0), walk([(0.4 * ((number + 1) % 2), 6.0)], 0.7))]
    stands = of(Actor([*steps, standing(8.0)], 0.0, 6.0))
    assert len(told(stands)) == 1
    assert len(told(stands, "pace: 0.05bh/s")) == 1
    assert told(scenes.loitering(), "pace: 0.05bh/s") == []


def _crossings(times: int, every_s: float) -> Sequence[Actor]:
    motions = []
    for number in range(times):
        motions += [walk([(6.0 if number % 2 == 0 else -6.0, 7.0)], 1.3), standing(every_s)]
    return [Actor(motions, -6.0, 7.0)]


def test_five_crossings_in_ten_minutes_are_no_loitering() -> None:
    assert told(of(*_crossings(5, 110.0)), fps=3.0) == []


def test_who_comes_back_soon_goes_on_loitering() -> None:
    """With `out`, a stay goes on over exits of this length."""
    crossings = of(*_crossings(7, 1.0))
    assert told(crossings) == []
    assert told(crossings, "out: 15s")
