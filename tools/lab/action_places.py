"""Scenes of the actions about places, about several people, and about nobody: where each must fire, and where not.

People act before a camera that looks along y at the world's origin; x is to the right. The zone `middle` is the middle
third of the picture, and the line `middle` goes up through it, so that to walk to the right crosses it rightward.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from camgraph.stages.rules.library import library
from camgraph.stages.rules.parameters import kind_of
from camgraph.stages.rules.rule_set import RuleSet, parse_rules
from camgraph.tools.scenes.animator.camera import Camera
from camgraph.tools.scenes.animator.library import ON_BACK, crouch, lying, standing
from camgraph.tools.scenes.animator.scene import Actor
from camgraph.tools.scenes.animator.walking import turn_to, walk

Cast = Callable[[], Sequence[Actor]]

VALUES = {
    "loitering": "stay: 4s, pace: 0.05bh/s",
    "queue": "more_than: 2, wait: 2s",
    "crowd": "more_than: 2",
    "nobody_there": "empty: 3s",
}
"""Shorter times and fewer people than the actions have by themselves, so that scenes are short."""


def before(height_m: float = 3.0, distance_m: float = 7.0, aside_deg: float = 0.0) -> Camera:
    """A camera before the place where people act."""
    return Camera(height_m=height_m, heading_deg=90).at(distance_m, bearing_deg=-90.0 + aside_deg)


def rules(action: str, *, mirrored: bool = False) -> RuleSet:
    """One action; in a mirrored picture the line is walked along the other way."""
    ends = "{from: [0.5, 0], to: [0.5, 1]}" if mirrored else "{from: [0.5, 1], to: [0.5, 0]}"
    places = f"zones: {{middle: [[0.35, 0], [0.65, 0], [0.65, 1], [0.35, 1]]}}\nlines: {{middle: {ends}}}\n"
    parameters = library().templates[action].parameters
    needed = [name for name, one in parameters.items() if one.default is None]
    assert all(kind_of(parameters[name]) in ("zone", "line") for name in needed)
    values = [f"{name}: middle" for name in needed] + ([VALUES[action]] if action in VALUES else [])
    rule = f"{{use: {action}, with: {{{', '.join(values)}}}}}"
    return parse_rules(f"version: 1\n{places}rules:\n  - {rule}\n", "library")


def walker(start: float, end: float, *, speed: float = 1.2, start_s: float = 0.0, y: float = 0.0) -> Actor:
    """Somebody who walks along x and stops there."""
    motions = [walk([(end, y)], speed), standing(4.0)]
    return Actor(motions, start, y, 0.0 if end > start else 180.0, start_s=start_s, appears_s=start_s)


def stander(x: float, seconds: float = 14.0) -> Actor:
    """Somebody who stands and looks along x."""
    return Actor([standing(seconds)], x)


@dataclass(frozen=True)
class Place:
    """`shown`: the action, which must be told `within_s`. `others`: what looks a little like it, by name."""

    shown: Cast
    within_s: float
    others: Mapping[str, Cast]


def _together_then_apart() -> Sequence[Actor]:
    leaving = [standing(6.5), walk([(-3.0, 0.0)], 1.2), standing(2.0)]
    return [stander(0.3), Actor(leaving, -0.2, heading_deg=180.0)]


def _turning(to_rad: float) -> Cast:
    return lambda: [Actor([standing(1.0), turn_to(to_rad), standing(6.0)], heading_deg=-90.0)]


def _across() -> Sequence[Actor]:
    return [walker(-2.5, 2.5)]


def _back() -> Sequence[Actor]:
    return [walker(2.5, -2.5)]


def _passing() -> Sequence[Actor]:
    return [walker(-2.5, 2.5), walker(2.5, -2.5, y=0.8)]


def _standing() -> Sequence[Actor]:
    return [stander(0.0, 9.0)]


def _close() -> Sequence[Actor]:
    return [stander(0.0, 9.0), stander(0.5, 9.0)]


def _beside() -> Sequence[Actor]:
    return [stander(-2.2, 9.0)]


def _lies(x: float) -> Cast:
    return lambda: [Actor([lying("back", 9.0)], x, posture=ON_BACK)]


def _gone() -> Sequence[Actor]:
    return [Actor([standing(9.0)], gone_s=2.0)]


PLACES: Mapping[str, Place] = {
    "lost_while_low": Place(
        lambda: [Actor([standing(1.0), crouch(3.0), standing(6.0)], gone_s=3.0)],
        8.0,
        {"lost standing": _gone, "crouching": lambda: [Actor([standing(1.0), crouch(3.0), standing(6.0)])]},
    ),
    "standing_still": Place(_standing, 8.0, {"walking": _across}),
    "turned_away": Place(_turning(np.pi / 2), 7.5, {"facing": _turning(-np.pi / 2)}),
    "running": Place(lambda: [walker(-5.0, 5.0, speed=3.2)], 4.0, {"walking": _across, "standing": _standing}),
    "enters_zone": Place(lambda: [walker(-3.0, 0.0)], 4.0, {"going out": lambda: [walker(0.0, 3.0)]}),
    "leaves_zone": Place(lambda: [walker(0.0, 3.0)], 4.0, {"coming in": lambda: [walker(-3.0, 0.0)]}),
    "loitering": Place(
        lambda: [stander(0.1, 9.0)], 6.5, {"walking": _across, "beside it": lambda: [stander(2.4, 9.0)]}
    ),
    "crosses_line": Place(lambda: [walker(-2.0, 2.0)], 4.0, {"back": _back, "beside it": lambda: [walker(-3.0, -0.7)]}),
    "wrong_way": Place(lambda: [walker(2.0, -2.0)], 4.0, {"right way": _across}),
    "tailgating": Place(
        lambda: [walker(-2.0, 2.5), walker(-2.0, 1.2, start_s=1.2, y=0.4)],
        5.5,
        {"alone": _across, "from both sides": _passing},
    ),
    "queue": Place(
        lambda: [stander(-0.8, 16.0), stander(0.0, 16.0), stander(0.8, 16.0)],
        15.0,
        {"two": lambda: [stander(-0.5, 16.0), stander(0.5, 16.0)], "passing": _passing},
    ),
    "crowd": Place(
        lambda: [stander(-1.5, 9.0), stander(0.0, 9.0), stander(1.5, 9.0)], 7.0, {"two": _passing, "one": _standing}
    ),
    "too_close": Place(
        lambda: [stander(0.0, 7.0), stander(0.5, 7.0)],
        5.0,
        {"apart": lambda: [stander(-1.0, 7.0), stander(1.0, 7.0)], "passing": _passing},
    ),
    "approaching": Place(
        lambda: [stander(0.6, 9.0), walker(-2.6, 0.0)],
        7.5,
        {"passing": _passing, "standing": _close},
    ),
    "leaving_group": Place(
        _together_then_apart,
        12.0,
        {"passing": _passing, "staying": _close},
    ),
    "on_the_floor": Place(_lies(-2.2), 9.0, {"in bed": _lies(0.0), "standing": _beside}),
    "out_of_bed": Place(lambda: [walker(0.0, 3.0)], 4.0, {"into bed": lambda: [walker(-3.0, 0.0)]}),
    "somebody": Place(_standing, 3.0, {"for a moment": lambda: [Actor([standing(4.0)], gone_s=0.7)]}),
    "nobody_there": Place(_gone, 6.5, {"somebody": _standing}),
}
