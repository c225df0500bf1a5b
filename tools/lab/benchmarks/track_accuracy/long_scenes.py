"""Scenes of minutes, through which people come and go: they cross, stop, hide behind pillars, leave and return.

Somebody new comes every few seconds. Each person has a way of their own; some have a companion beside them. Who
leaves may come back after seconds or half a minute, at the same side or another one, and is the same person then.
Even seeds may be looked at while the tracker is tuned, odd ones not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from camgraph.tools.lab.benchmarks.track_accuracy.measures import Labelled
from camgraph.tools.lab.benchmarks.track_accuracy.scenes import LOW, Place, sequence_of
from camgraph.tools.lab.benchmarks.track_accuracy.sequences import Sequence
from camgraph.tools.scenes.animator.camera import Camera
from camgraph.tools.scenes.animator.library import waiting
from camgraph.tools.scenes.animator.motion import Motion
from camgraph.tools.scenes.animator.scene import Actor, Scene
from camgraph.tools.scenes.animator.scenes import FRONT
from camgraph.tools.scenes.animator.silhouette import Block
from camgraph.tools.scenes.animator.walking import walk

_LATE_S, _WARM_UP_S = 4.0, 20.0
"""Nobody begins in the last seconds; those who come before the first frame are there when it begins."""
_BESIDE_M = 0.7
_BORDER_PX, _AWAY_NS = 2.0, 1_000_000_000
"""Who was last seen so near the border, and not for so long after that, has left the picture."""
_VISITS = 1000


@dataclass(frozen=True)
class Surroundings:
    """What people do in a place. Shares are in [0, 1], times and distances (least, most) in seconds and metres."""

    camera: Camera
    every_s: float
    """Somebody comes, on average."""
    depths_m: tuple[float, float]
    pillars: tuple[Block, ...] = ()
    places: tuple[int, int] = (1, 3)
    """Where somebody goes in one visit."""
    hides: float = 0.0
    """Of the places, those behind a pillar."""
    hides_s: tuple[float, float] = (0.5, 6.0)
    stops: float = 0.2
    stops_s: tuple[float, float] = (1.0, 10.0)
    returns: float = 0.35
    away_s: tuple[float, float] = (1.0, 30.0)
    in_pairs: float = 0.15


LONG_SCENES: Mapping[str, Surroundings] = {
    "hall": Surroundings(
        FRONT, 6.0, (5.0, 9.0), tuple(Block(x, 4.6, 0.6, 0.5, 3.2) for x in (-2.2, 0.0, 2.2)), hides=0.35
    ),
    "square": Surroundings(LOW, 4.0, (4.5, 11.0), in_pairs=0.3),
    "door": Surroundings(FRONT, 7.0, (4.5, 8.0), places=(1, 2), returns=0.7, away_s=(1.0, 12.0)),
}


def long_scene(name: str, seed: int, minutes: float) -> Sequence:
    """A scene by its name (`LONG_SCENES`). The same arguments give the same one."""
    surroundings = LONG_SCENES[name]
    random = np.random.default_rng([seed, 11, list(LONG_SCENES).index(name)])
    lasts_s, actors, comes_s = 60 * minutes, list[Actor](), -_WARM_UP_S
    while (comes_s := comes_s + float(random.exponential(surroundings.every_s))) < lasts_s - _LATE_S:
        actors += _visitors(random, surroundings, comes_s)
    made = Scene(name, _until_done(actors, seed), surroundings.pillars, lasts_s)
    return sequence_of(f"{name} {seed}", made, surroundings.camera, seed)


def _until_done(actors: list[Actor], seed: int) -> list[Actor]:
    """Each is out of the scene once they have done everything, so that nobody is animated who can never be seen."""
    takes = Scene("", actors).takes(seed)
    ends = [one.start_s + take.duration_s for one, (_, take) in zip(actors, takes, strict=True)]
    return [replace(one, appears_s=one.start_s, gone_s=end) for one, end in zip(actors, ends, strict=True)]


def _visitors(random: np.random.Generator, here: Surroundings, comes_s: float) -> Iterator[Actor]:
    """Somebody, or two who go the same way side by side."""
    side, speed, depth = (
        float(random.choice((-1, 1))),
        float(random.uniform(0.8, 1.5)),
        float(random.uniform(*here.depths_m)),
    )
    start, steps = _outside(side, depth), list(_way(random, here, side))
    for beside in (0.0, _BESIDE_M) if random.random() < here.in_pairs else (0.0,):
        motions = [_motion(step, speed, beside) for step in steps]
        yield Actor(motions, start[0], start[1] + beside, 90.0 + 90.0 * side, start_s=comes_s)


def _motion(step: Place | float, speed: float, beside: float) -> Motion:
    return waiting(step) if isinstance(step, float) else walk([(step[0], step[1] + beside)], speed)


def _way(random: np.random.Generator, here: Surroundings, side: float) -> Iterator[Place | float]:
    """Where somebody goes, and for how many seconds they wait there, until they are out and come no more."""
    while True:
        for _ in range(random.integers(*here.places, endpoint=True)):
            yield from _stop(random, here)
        if random.random() < 0.6:
            side = -side
        yield _outside(side, float(random.uniform(*here.depths_m)))
        if random.random() >= here.returns:
            return
        yield float(random.uniform(*here.away_s))


def _stop(random: np.random.Generator, here: Surroundings) -> Iterator[Place | float]:
    if random.random() < here.hides:
        pillar, farther = here.pillars[random.integers(len(here.pillars))], float(random.uniform(1.25, 1.7))
        yield pillar.x * farther, pillar.y * farther
        yield float(random.uniform(*here.hides_s))
        return
    depth = float(random.uniform(*here.depths_m))
    yield float(random.uniform(-0.5, 0.5)) * depth, depth
    if random.random() < here.stops:
        yield float(random.uniform(*here.stops_s))


def _outside(side: float, depth: float) -> Place:
    """A place beside the picture of cameras of 70 degrees."""
    return side * (0.75 * depth + 1.6), depth


def visits(scene: Sequence, width_px: int = 1280) -> list[Labelled]:
    """The true people of a scene, each with a new identity whenever they come back into the picture.

    So does MOTChallenge count; who was hidden is the same. Identities are person x 1000 + visit.
    """
    count, last_ns, at_border = dict[int, int](), dict[int, int](), dict[int, bool]()
    result = []
    for time_ns, (ids, boxes) in zip(scene.times_ns, scene.truths, strict=True):
        borders = (boxes[:, 0] <= _BORDER_PX) | (boxes[:, 2] >= width_px - _BORDER_PX)
        for one, border in zip(ids.tolist(), borders.tolist(), strict=True):
            if at_border.get(one) and time_ns - last_ns[one] > _AWAY_NS:
                count[one] = count.get(one, 0) + 1
            last_ns[one], at_border[one] = time_ns, border
        result.append((np.array([one * _VISITS + count.get(one, 0) for one in ids.tolist()], np.int64), boxes))
    return result
