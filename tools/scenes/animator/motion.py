"""Motions and how they follow each other: a motion begins at the pose in which the last one ended.

    motion.begin(body, start, rng) -> Take: how long it lasts, and the poses at any moments of it

A take is a function of time: no frame depends on the frame before it, so that every frame rate shows the same motion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from camgraph.tools.scenes.animator.body import Body
from camgraph.tools.scenes.animator.pose import COLUMN, FIELDS, Posture, columns, row_of

F64 = NDArray[np.float64]
Sample = Callable[[F64], F64]
"""From moments (T,) in seconds since the take began to poses (T, 32)."""
Adjust = Callable[[Body, F64, F64], None]
"""Changes poses (T, 32) at moments (T,) in place."""

BLEND_S = 0.35
_PLACE = columns("x", "y", "yaw")


@dataclass(frozen=True)
class Take:
    """A motion as one body makes it once."""

    duration_s: float
    sample: Sample

    def end(self) -> F64:
        """(32,) the pose in which it ends."""
        return np.asarray(self.sample(np.array([self.duration_s]))[0])


Begin = Callable[[Body, F64, np.random.Generator], Take]


@dataclass(frozen=True)
class Motion:
    """A motion by its name. ``begin``: from a body and the pose (32,) in which it starts."""

    name: str
    begin: Begin

    def with_arms(self, name: str, adjust: Adjust) -> Motion:
        """The same motion while the arms do something else."""

        def begin(body: Body, start: F64, rng: np.random.Generator) -> Take:
            take = self.begin(body, start, rng)

            def sample(t: F64) -> F64:
                poses = take.sample(t)
                adjust(body, t, poses)
                return poses

            return Take(take.duration_s, sample)

        return Motion(name, begin)


@dataclass(frozen=True)
class Key:
    """At ``at_s`` the body is in this posture, relative to where the motion began (x forward, y left).

    ``x`` and ``y`` are parts of the body's height.
    """

    at_s: float
    posture: Posture
    adjust: Adjust | None = None


def keyframed(
    name: str, keys: Sequence[Key], *, hurry: float = 1.0, vary: float = 0.08, carried: F64 | None = None
) -> Motion:
    """A motion through ``keys``, from whatever pose came before; smooth, without overshooting.

    ``hurry`` above 1 begins slowly and ends fast, as a fall does. ``vary``: how much duration and angles differ from
    one time to the next. ``carried`` (32,): how fast each number of the pose changes when the motion begins; it rests
    if that is not given.
    """

    def begin(body: Body, start: F64, rng: np.random.Generator) -> Take:
        pace = float(np.exp(rng.normal(0, vary))) if vary else 1.0
        times = np.array([0.0, *(key.at_s * pace for key in keys)])
        rows = [start, *(_placed(key, body, start, rng, vary) for key in keys)]
        values = np.array(rows)
        slopes = _slopes(times, values)
        if carried is not None:
            slopes[0] = carried

        def sample(t: F64) -> F64:
            return hermite(times, values, slopes, warped(t, times[-1], hurry))

        return Take(float(times[-1]), sample)

    return Motion(name, begin)


def _placed(key: Key, body: Body, start: F64, rng: np.random.Generator, vary: float) -> F64:
    row = row_of(key.posture)
    angles = np.ones(len(FIELDS))
    angles[: COLUMN["twist"] + 1] = 0
    row += angles * rng.normal(0, 0.35 * vary, len(FIELDS)) * np.minimum(np.abs(row), 0.6)
    if key.adjust is not None:
        rows = row[None].copy()
        key.adjust(body, np.zeros(1), rows)
        row = rows[0]
    cosine, sine = np.cos(start[COLUMN["yaw"]]), np.sin(start[COLUMN["yaw"]])
    x, y = row[COLUMN["x"]] * body.height, row[COLUMN["y"]] * body.height
    row[_PLACE] = start[_PLACE] + [cosine * x - sine * y, sine * x + cosine * y, row[COLUMN["yaw"]]]
    return row


def warped(t: F64, duration: float, hurry: float) -> F64:
    """Time that runs slowly first and fast later, from 0 to ``duration``."""
    share = np.clip(t / max(duration, 1e-9), 0, 1)
    return np.asarray(duration * share**hurry)


def _slopes(times: F64, values: F64) -> F64:
    """Slopes at the keys that let no value overshoot (Fritsch and Carlson, 1980); it rests at both ends."""
    steps = np.diff(times)[:, None]
    rates = np.diff(values, axis=0) / np.maximum(steps, 1e-9)
    slopes = np.zeros_like(values)
    if len(times) > 2:
        before, after = rates[:-1], rates[1:]
        same = before * after > 0
        first, last = 2 * steps[1:] + steps[:-1], steps[1:] + 2 * steps[:-1]
        safe = np.where(same, first / np.where(same, before, 1) + last / np.where(same, after, 1), 1)
        slopes[1:-1] = np.where(same, (first + last) / safe, 0)
    return slopes


def hermite(times: F64, values: F64, slopes: F64, t: F64) -> F64:
    """Cubic pieces through ``values`` (N, C) at ``times`` (N,) with ``slopes`` (N, C), at moments ``t``."""
    piece = np.clip(np.searchsorted(times, t, side="right") - 1, 0, len(times) - 2)
    step = np.maximum(times[piece + 1] - times[piece], 1e-9)
    u = np.clip((t - times[piece]) / step, 0, 1)[:, None]
    first, last = values[piece], values[piece + 1]
    leaving, coming = slopes[piece] * step[:, None], slopes[piece + 1] * step[:, None]
    square, cube = u * u, u * u * u
    return np.asarray(
        (2 * cube - 3 * square + 1) * first
        + (cube - 2 * square + u) * leaving
        + (3 * square - 2 * cube) * last
        + (cube - square) * coming
    )


def smooth(share: F64) -> F64:
    """0 to 1 with rest at both ends (the path of least jerk, Flash and Hogan 1985)."""
    u = np.clip(share, 0, 1)
    return np.asarray(u**3 * (10 - 15 * u + 6 * u * u))


def blended(start: F64, sample: Sample, over_s: float = BLEND_S, *, place: bool = False) -> Sample:
    """A sample whose angles begin as in ``start`` and are its own after ``over_s``; with ``place`` also where it is."""

    def mixed(t: F64) -> F64:
        poses = sample(t)
        share = smooth(t / over_s)[:, None]
        kept = poses[:, _PLACE].copy()
        poses = start + (poses - start) * share
        if not place:
            poses[:, _PLACE] = kept
        return poses

    return mixed


@dataclass(frozen=True)
class Wander:
    """Slow aimless movement: for each of C columns a sum of four sines of random period and phase, about 1 in size."""

    rates: F64
    phases: F64

    @classmethod
    def of(cls, rng: np.random.Generator, count: int, slowest_s: float = 9.0, fastest_s: float = 1.8) -> Wander:
        periods = np.exp(rng.uniform(np.log(fastest_s), np.log(slowest_s), (4, count)))
        return cls(2 * np.pi / periods, rng.uniform(0, 2 * np.pi, (4, count)))

    def at(self, t: F64) -> F64:
        """(T, C)"""
        return np.asarray(np.sin(t[:, None, None] * self.rates + self.phases).sum(axis=1) * 0.6)


SWAY_DEG = {
    **{"pitch": 0.5, "roll": 0.6, "bend": 0.8, "lean": 0.9, "turn": 1.5, "nod": 3.0, "tilt": 1.2, "look": 6.0},
    **{"arm_forward": 1.6, "arm_outward": 0.8, "elbow": 3.0},
}
"""How far somebody who keeps a posture moves, one standard deviation."""


def kept(
    name: str, posture: Posture | None, duration_s: float, *, sway: float = 1.0, into_s: float = BLEND_S
) -> Motion:
    """A posture that is kept, with small movements; None keeps the one in which the last motion ended."""

    def begin(body: Body, start: F64, rng: np.random.Generator) -> Take:
        row = start.copy() if posture is None else row_of(posture)
        row[_PLACE] = start[_PLACE]
        moving = columns(*SWAY_DEG)
        size = np.zeros(len(FIELDS))
        for field, degrees in SWAY_DEG.items():
            size[columns(field)] = np.radians(degrees)
        wander = Wander.of(rng, len(moving))

        def sample(t: F64) -> F64:
            poses = np.repeat(row[None], len(t), axis=0)
            easing_in = smooth(t / 1.5)[:, None]
            poses[:, moving] += wander.at(t) * size[moving] * sway * easing_in
            return poses

        return Take(duration_s, blended(start, sample, into_s, place=True))

    return Motion(name, begin)


def played(motions: Sequence[Motion], body: Body, start: F64, rng: np.random.Generator) -> Take:
    """All motions, one after the other."""
    takes: list[Take] = []
    for motion in motions:
        takes.append(motion.begin(body, start, rng))
        start = takes[-1].end()
    ends = np.cumsum([take.duration_s for take in takes])

    def sample(t: F64) -> F64:
        poses = np.empty((len(t), len(FIELDS)))
        which = np.minimum(np.searchsorted(ends, t, side="right"), len(takes) - 1)
        for number in np.unique(which):
            rows = which == number
            began = ends[number] - takes[number].duration_s
            poses[rows] = takes[number].sample(np.minimum(t[rows] - began, takes[number].duration_s))
        return poses

    return Take(float(ends[-1]), sample)


def sequence(name: str, motions: Sequence[Motion]) -> Motion:
    """Several motions as one."""
    return Motion(name, lambda body, start, rng: played(motions, body, start, rng))


def renamed(motion: Motion, name: str) -> Motion:
    return replace(motion, name=name)
