"""Nobody falls because a model puts the joints of somebody who is cut off, or hidden, in a wrong place."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.stages.rules.language.film import SECOND, SIZE, Pose, picture

from camgraph.stages.rules.language.crowd import Picture
from camgraph.tools.lab.action_trials import firings, rules_of

FPS = 10
SEEN_S, UNSEEN_S = 3.0, 3.0


def film(way: float, sinking: float, *, box_sinks: bool = False, box_turns: bool = False) -> list[Picture]:
    """Somebody who walks by `way` pixels a frame, and whose joints come down by `sinking` pixels in each of the last
    three frames in which they are seen. As in a real picture, the box ends at its border. `box_turns`: it becomes wide.
    """
    return list(_frames(way, sinking, box_sinks=box_sinks, box_turns=box_turns))


def _frames(way: float, sinking: float, *, box_sinks: bool, box_turns: bool) -> Iterator[Picture]:
    seen = round(SEEN_S * FPS)
    for i in range(seen + round(UNSEEN_S * FPS)):
        feet = (SIZE[0] - 5 - way * max(0, seen - 2 - i), 190.0) if way else (300.0, 190.0)
        one = picture(round(i * SECOND / FPS), [Pose({}, feet)] if i < seen else [])
        if i < seen:
            steps = max(0, i - (seen - 4))
            one.keypoints[0, :13, 1] += sinking * steps
            one.boxes[0, :3] += np.array([-20, 22, 20]) * steps * box_turns
            one.boxes[0, 3] = 190 if not box_sinks else one.keypoints[0, 5, 1] - 5
            one.boxes[0] = np.clip(one.boxes[0], 0, np.tile(SIZE, 2))
        yield one


@pytest.mark.parametrize("way", [8.0, 14.0])
def test_who_walks_out_at_a_side_has_not_fallen(way: float) -> None:
    """Of a body that the border cuts through, the shoulders seem to come down."""
    assert firings(rules_of(["fall"]), film(way, 7.0, box_sinks=False)) == []


def test_shoulders_below_the_box_are_of_somebody_else() -> None:
    """In a crowd a model gives somebody the joints of another one."""
    assert firings(rules_of(["fall"]), film(0.0, 14.0, box_sinks=True)) == []


def test_who_turns_wide_as_well_has_fallen() -> None:
    assert [one.rule for one in firings(rules_of(["fall"]), film(0.0, 14.0, box_turns=True))] == ["fall"]
