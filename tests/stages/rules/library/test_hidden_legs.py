"""People behind counters and desks, and cut off by the lower border: their box is that of the visible part."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from camgraph.stages.rules.language.crowd import Picture
from camgraph.stages.rules.rule_set import parse_rules
from camgraph.tools.lab.action_furniture import COUNTERS_M, before, behind_counter, desk, seen
from camgraph.tools.lab.action_trials import firings, rules_of
from camgraph.tools.scenes.animator import MULTIPOSE, YOLO11N, Actor, PoseModel
from camgraph.tools.scenes.animator.library import bend, crouch, duck, fall, standing
from camgraph.tools.scenes.animator.motion import Motion
from camgraph.tools.scenes.animator.walking import walk

pytestmark = pytest.mark.slow

SEEDS = (0, 1, 2)
WALK, RUN = 1.3, 3.2
RULES = rules_of(["running", "fall"])
MODELS = pytest.mark.parametrize("model", [YOLO11N, MULTIPOSE], ids=lambda model: model.name)


def walker(speed: float) -> Actor:
    return Actor([walk([(3.5, 0.0)], speed), standing(1.0)], -3.5)


def fired(frames: Sequence[Picture]) -> set[str]:
    return {one.rule for one in firings(RULES, frames)}


@MODELS
@pytest.mark.parametrize("height_m", COUNTERS_M)
def test_who_walks_behind_a_counter_does_not_run(height_m: float, model: PoseModel) -> None:
    found = [fired(behind_counter(walker(WALK), height_m, seed=seed, model=model)) for seed in SEEDS]
    assert found == [set()] * len(SEEDS)


@MODELS
@pytest.mark.parametrize("cut_m", [0.5, 0.9])
def test_who_walks_at_the_lower_border_does_not_run(cut_m: float, model: PoseModel) -> None:
    found = [fired(seen([walker(WALK)], (), before(seed, cut_m=cut_m), seed=seed, model=model)) for seed in SEEDS]
    assert found == [set()] * len(SEEDS)


def test_who_walks_past_a_desk_does_not_run() -> None:
    assert [fired(seen([walker(WALK)], [desk()], before(seed), seed=seed)) for seed in SEEDS] == [set()] * len(SEEDS)


@pytest.mark.parametrize("height_m", COUNTERS_M)
def test_who_runs_behind_a_counter_runs(height_m: float) -> None:
    found = [fired(behind_counter(walker(RUN), height_m, seed=seed)) for seed in SEEDS]
    assert found == [{"running"}] * len(SEEDS)


@pytest.mark.parametrize(
    ("motion", "most"), [(duck(0.4), 1), (crouch(3.0), 0), (bend(2.0), 2)], ids=["ducking", "crouching", "bending"]
)
def test_who_goes_down_behind_a_counter_has_seldom_fallen(motion: Motion, most: int) -> None:
    """At most so many of six: who bends over a counter is wider than tall, and models guess the hidden legs."""
    actors = [Actor([standing(2.0), motion, standing(2.0)], heading_deg=90.0 * seed) for seed in SEEDS]
    found = [
        fired(behind_counter(actor, height_m, seed=seed))
        for height_m in (0.95, 1.15)
        for seed, actor in enumerate(actors)
    ]
    assert sum("fall" in one for one in found) <= most
    assert not any("running" in one for one in found)


def test_falls_that_are_lost_can_be_left_out() -> None:
    """In the open, somebody who is lost while they go down has fallen, unless the rule says otherwise."""
    falls = [Actor([standing(2.0), fall("backward", 0.9)], heading_deg=90.0 * seed, gone_s=2.9) for seed in SEEDS]
    frames = [seen([actor], (), before(seed), seed=seed, duration_s=6.0) for seed, actor in enumerate(falls)]
    assert [fired(some) for some in frames] == [{"fall"}] * len(SEEDS)
    without = parse_rules("version: 1\nrules:\n  - {use: fall, with: {lost_falls: false}}\n", "r")
    assert [firings(without, some) for some in frames] == [[]] * len(SEEDS)
