"""Walking and running along a path, and turning on the spot: feet are planted in the world and the legs follow them.

Steps are counted by u, which grows by 1 with each step. The foot of step m (the left one if m is even) carries the body
from u = m - duty to m + duty; a walker has a foot down for 62 % of two steps (Perry and Burnfield, "Gait Analysis", 2nd
edition), a runner for about 35 %. The rate of steps grows with the square root of the speed (Grieve and Gear 1966,
Ergonomics 9: step length as speed to the power of 0.42), 1.87 a second at 1.35 m/s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from camgraph.tools.scenes.animator.body import Body, Side
from camgraph.tools.scenes.animator.kinematics import ANKLE_RANGE, about_y, about_z, pelvis_rotation, solve_limb
from camgraph.tools.scenes.animator.motion import Motion, Sample, Take, blended, smooth
from camgraph.tools.scenes.animator.pose import COLUMN, SIDES, row_of

F64 = NDArray[np.float64]

PLACE_M = 0.02
"""Paths are kept as points this far apart."""
STEP_WIDTH = 0.06
"""Half the distance between the feet's tracks, parts of the height."""


@dataclass(frozen=True)
class Gait:
    """How feet and arms go at one speed. Angles in degrees."""

    duty: float
    step_m: float
    seconds_a_step: float
    toe_off: float
    clearance: float
    arm_swing: float
    elbow: float
    lean: float
    flight_m: float = 0.0
    crouch: float = 0.0

    @classmethod
    def at(cls, speed: float, body: Body) -> Gait:
        """Walking up to 2.1 m/s, running above."""
        size = body.leg / 0.93
        if speed <= 2.1:
            step = 0.72 * size * (speed / 1.35) ** 0.45
            brisk = min(1.4, speed / 1.35)
            return cls(0.62, step, step / speed, 25 + 20 * brisk, 0.015, 22 * brisk, 16 + 8 * brisk, 2 + brisk)
        step = 0.98 * size * (speed / 2.8) ** 0.6
        return cls(0.34, step, step / speed, 65, 0.12, 38, 85, 8, flight_m=0.05, crouch=0.045)


@dataclass(frozen=True)
class Path:
    """Points (N, 2) 2 cm apart and the direction at each."""

    points: F64
    headings: F64

    @classmethod
    def through(cls, waypoints: Sequence[tuple[float, float]], round_m: float = 0.5) -> Path:
        """Straight lines between ``waypoints`` with corners rounded over about ``round_m``."""
        corners = np.array(waypoints, float)
        lengths = np.linalg.norm(np.diff(corners, axis=0), axis=1)
        along = np.concatenate(([0.0], np.cumsum(lengths)))
        count = max(8, round(along[-1] / PLACE_M))
        where = np.linspace(0, along[-1], count + 1)
        points = np.stack([np.interp(where, along, corners[:, axis]) for axis in range(2)], axis=1)
        reach = int(min(round_m / PLACE_M, count // 4))
        for _ in range(2):
            points = _averaged(points, reach)
        steps = np.diff(points, axis=0)
        headings = np.unwrap(np.arctan2(steps[:, 1], steps[:, 0]))
        headings = _averaged(np.append(headings, headings[-1])[:, None], max(1, reach // 2))[:, 0]
        return cls(points, headings)

    @property
    def length(self) -> float:
        return float(np.linalg.norm(np.diff(self.points, axis=0), axis=1).sum())

    def at(self, share: F64) -> tuple[F64, F64]:
        """Points (T, 2) and headings (T,) at shares of the way, those outside [0, 1] at its ends."""
        row = np.clip(share, 0, 1) * (len(self.points) - 1)
        rows = np.arange(len(self.points))
        points = np.stack([np.interp(row, rows, self.points[:, axis]) for axis in range(2)], axis=-1)
        return points, np.interp(row, rows, self.headings)


def _averaged(values: F64, reach: int) -> F64:
    """Running means over 2 ``reach`` + 1 rows, over fewer towards the ends, which stay where they are."""
    sums = np.concatenate((np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)))
    rows = np.arange(len(values))
    around = np.minimum(np.minimum(rows, len(values) - 1 - rows), reach)
    return np.asarray((sums[rows + around + 1] - sums[rows - around]) / (2 * around + 1)[:, None])


@dataclass(frozen=True)
class Feet:
    """Where the soles are: (T, 3) the toes, (T,) directions and pitches (toes down) by side."""

    toes: dict[Side, F64]
    yaws: dict[Side, F64]
    pitches: dict[Side, F64]


def stand_on(body: Body, poses: F64, pelvis: F64, feet: Feet) -> None:
    """Bend the legs of ``poses`` so that the feet are where they should be, under the pelvis at ``pelvis`` (T, 3)."""
    rotation = pelvis_rotation(poses)
    for side in SIDES:
        flip = np.array([1.0, 1.0 if side == "left" else -1.0, 1.0])
        sole = about_z(feet.yaws[side]) @ about_y(feet.pitches[side])
        ankle = feet.toes[side] + sole @ np.array([-body.toe_ahead, 0.0, body.ankle_height])
        hip = np.einsum("tij,j->ti", rotation, np.array([0.0, body.half_hips, 0.0]) * flip)
        target = np.einsum("tji,tj->ti", rotation, ankle - pelvis - hip) * flip
        twist = (feet.yaws[side] - poses[:, COLUMN["yaw"]]) * flip[1]
        forward, outward, bent = solve_limb(target, body.thigh, body.shank, twist, knee=True)
        tilt = poses[:, COLUMN["pitch"]] - forward + bent
        level = np.clip(-tilt, *ANKLE_RANGE)
        values = {"leg_forward": forward, "leg_outward": outward, "leg_twist": twist, "knee": bent}
        values["foot"] = np.clip(feet.pitches[side] - tilt - level, -0.5, 1.0)
        for name, value in values.items():
            poses[:, COLUMN[f"{name}_{side}"]] = value


def walk(
    waypoints: Sequence[tuple[float, float]], speed: float = 1.3, *, name: str = "walking", round_m: float = 0.5
) -> Motion:
    """Walk (above 2.1 m/s run) from wherever one is through ``waypoints`` in the world, starting and ending at a stand.

    Somebody who faces another way turns towards the first waypoint before.
    """

    def begin(body: Body, start: F64, rng: np.random.Generator) -> Take:
        here = (float(start[COLUMN["x"]]), float(start[COLUMN["y"]]))
        path = Path.through([here, *waypoints], round_m)
        turning = turn_to(float(path.headings[0])).begin(body, start, rng)
        going = _going(body, turning.end(), path, speed, rng)
        split = turning.duration_s

        def sample(t: F64) -> F64:
            first = t < split
            poses = np.empty((len(t), len(start)))
            poses[first] = turning.sample(t[first])
            poses[~first] = going.sample(t[~first] - split)
            return poses

        return Take(split + going.duration_s, sample)

    return Motion(name, begin)


def _going(body: Body, start: F64, path: Path, speed: float, rng: np.random.Generator) -> Take:
    gait = Gait.at(speed * float(np.exp(rng.normal(0, 0.04))), body)
    steps = max(2, round(path.length / gait.step_m))
    seconds = gait.seconds_a_step * path.length / (steps * gait.step_m)
    stride = Stride(body, gait, path, steps, lively=float(np.exp(rng.normal(0, 0.2))))

    def sample(t: F64) -> F64:
        return stride.poses(t / seconds - 0.5)

    return Take((steps + 1) * seconds, _kept_heading(start, blended(start, sample, 0.8 * seconds), 3 * seconds))


def _kept_heading(start: F64, sample: Sample, over_s: float) -> Sample:
    """What is left between the heading at the start and the path's goes over the first steps."""

    def adjusted(t: F64) -> F64:
        poses = sample(t)
        first = float(sample(np.zeros(1))[0, COLUMN["yaw"]])
        rest = (float(start[COLUMN["yaw"]]) - first + np.pi) % (2 * np.pi) - np.pi
        poses[:, COLUMN["yaw"]] += (float(start[COLUMN["yaw"]]) - first - rest) + rest * (1 - smooth(t / over_s))
        return poses

    return adjusted


@dataclass(frozen=True)
class Stride:
    """The steps of one body along one path."""

    body: Body
    gait: Gait
    path: Path
    steps: int
    lively: float

    def poses(self, u: F64) -> F64:
        """(T, 32) at counts of steps from -0.5 (standing) to steps + 0.5 (standing)."""
        body = self.body
        moving = smooth(u + 0.5) * smooth(self.steps + 0.5 - u)
        middle, heading = self.path.at(_eased(u, self.steps) / self.steps)
        poses = np.repeat(row_of({"planted": 0})[None], len(u), axis=0)
        wave = np.cos(np.pi * (u + 0.6)) * moving
        sideways = np.stack([-np.sin(heading), np.cos(heading)], axis=1)
        place = middle + sideways * (np.cos(np.pi * u) * 0.014 * body.height * moving)[:, None]
        self._upper_body(poses, u, wave, moving)
        yaw = heading - np.radians(5) * wave
        values = {"x": place[:, 0], "y": place[:, 1], "yaw": yaw, "lift": self._lift(u) * moving}
        for name, value in values.items():
            poses[:, COLUMN[name]] = value
        height = self._pelvis_height(u, moving)
        feet = Feet(*({side: self._foot(u, number, part) for number, side in enumerate(SIDES)} for part in range(3)))
        stand_on(body, poses, np.column_stack([place, height]), feet)
        return poses

    def _upper_body(self, poses: F64, u: F64, wave: F64, moving: F64) -> None:
        gait = self.gait
        poses[:, COLUMN["pitch"]] = np.radians(gait.lean * 0.5) * moving
        poses[:, COLUMN["bend"]] += np.radians(gait.lean * 0.5) * moving
        poses[:, COLUMN["turn"]] = np.radians(9) * wave
        poses[:, COLUMN["roll"]] = -np.radians(2.5) * np.cos(np.pi * u) * moving
        poses[:, COLUMN["lean"]] = np.radians(2.5) * np.cos(np.pi * u) * moving
        poses[:, COLUMN["nod"]] += np.radians(1.0) * np.cos(2 * np.pi * u) * moving
        for side, sign in (("left", -1.0), ("right", 1.0)):
            swinging = sign * wave * self.lively
            poses[:, COLUMN[f"arm_forward_{side}"]] += np.radians(gait.arm_swing) * swinging
            bent = np.radians(gait.elbow - 14) * moving + np.radians(0.35 * gait.arm_swing) * swinging
            poses[:, COLUMN[f"elbow_{side}"]] += bent

    def _pelvis_height(self, u: F64, moving: F64) -> F64:
        """Highest over the standing foot, lowest between two steps, as an inverted pendulum; less of it when slow."""
        body, gait = self.body, self.gait
        length = (body.thigh + body.shank) * 0.992
        half = min(0.5 * gait.step_m, 0.45 * length)
        drop = (length - np.sqrt(length**2 - half**2)) * 0.62
        low = drop * (1 - np.cos(2 * np.pi * u)) / 2
        if gait.flight_m:
            low = gait.crouch * body.height * (0.6 + 0.4 * np.cos(2 * np.pi * u))
        return np.asarray(body.ankle_height + length - low * moving)

    def _lift(self, u: F64) -> F64:
        """Both feet off the ground, of somebody who runs."""
        gait = self.gait
        off = np.abs(u - np.round(u))
        share = np.clip((off - gait.duty) / max(1e-6, 0.5 - gait.duty), 0, 1)
        return gait.flight_m * np.sin(share * np.pi / 2)

    def _plant(self, step: F64, number: int) -> tuple[F64, F64]:
        """The place (T, 2) of the toes of a step and the foot's heading."""
        middle, heading = self.path.at(step / self.steps)
        out = STEP_WIDTH * self.body.height * (1.0 if number == 0 else -1.0)
        sideways = np.stack([-np.sin(heading), np.cos(heading)], axis=1)
        turned = heading + np.radians(6) * (1.0 if number == 0 else -1.0)
        ahead = np.stack([np.cos(turned), np.sin(turned)], axis=1)
        return middle + sideways * out + ahead * self.body.toe_ahead, turned

    def _foot(self, u: F64, number: int, part: int) -> F64:
        """Toes (T, 3), headings (T,) or pitches (T,) of the left (0) or right (1) foot."""
        gait = self.gait
        last = 2 * np.floor((u - number + gait.duty) / 2) + number
        since = u - last
        swinging = np.clip((since - gait.duty) / (2 - 2 * gait.duty), 0, 1)
        (first, yaw), (then, next_yaw) = self._plant(last, number), self._plant(last + 2, number)
        share = smooth(swinging)
        if part == 1:
            return np.asarray(yaw + (next_yaw - yaw) * share)
        far = np.clip(np.linalg.norm(then - first, axis=1) / (1.6 * gait.step_m), 0, 1)
        if part == 2:
            return np.asarray(self._pitch(since, swinging) * far)
        up = gait.clearance * self.body.height * np.sin(np.pi * swinging) ** 2 * np.where(swinging > 0, 1, 0)
        return np.column_stack([first + (then - first) * share[:, None], up * np.minimum(1, far + 0.2)])

    def _pitch(self, since: F64, swinging: F64) -> F64:
        """Heel first with the toes up, then flat, then over the toes, whose angle is largest when they leave."""
        gait = self.gait
        rolling = np.clip((since - 0.25 * gait.duty) / (0.75 * gait.duty), 0, 1) ** 2 * gait.toe_off
        strike = -18.0 if not gait.flight_m else -4.0
        landing = np.clip((-gait.duty * 0.6 - since) / (gait.duty * 0.4), 0, 1) * strike
        down = rolling + landing
        carried = gait.toe_off * (1 - smooth(swinging / 0.75)) + strike * smooth((swinging - 0.4) / 0.6)
        return np.radians(np.where(swinging > 0, carried, down))


def _eased(u: F64, steps: int) -> F64:
    """How far the body is, in steps: it speeds up during the first step and slows down during the last."""

    def ramp(v: F64) -> F64:
        """The integral of a speed that rises from 0 to 1 between -0.5 and 0.5."""
        w = np.clip(v + 0.5, 0, 1)
        return np.asarray(w**3 - w**4 / 2 + np.maximum(v - 0.5, 0))

    return np.asarray(ramp(u) - ramp(u - steps))


def turn_to(heading: float, *, a_second: float = 150.0) -> Motion:
    """Turn on the spot to a direction in the world (radians), foot by foot; nothing if one faces it already."""

    def begin(body: Body, start: F64, rng: np.random.Generator) -> Take:
        yaw = float(start[COLUMN["yaw"]])
        rest = (heading - yaw + np.pi) % (2 * np.pi) - np.pi
        if abs(rest) < np.radians(25):
            return Take(0.0, lambda t: np.repeat(start[None], len(t), axis=0))
        duration = max(0.45, np.degrees(abs(rest)) / a_second)
        base = row_of({})

        def sample(t: F64) -> F64:
            poses = np.repeat(base[None], len(t), axis=0)
            poses[:, COLUMN["x"]], poses[:, COLUMN["y"]] = start[COLUMN["x"]], start[COLUMN["y"]]
            share = t / duration
            poses[:, COLUMN["yaw"]] = yaw + rest * smooth(share)
            poses[:, COLUMN["look"]] += np.clip(rest, -0.8, 0.8) * np.sin(np.pi * np.clip(share, 0, 1)) * 0.6
            for number, side in enumerate(SIDES):
                lifted = np.sin(
                    np.pi * np.clip(np.mod(share * max(2, round(duration / 0.4)), 1), 0, 1) * 2 + np.pi * number
                )
                ahead = np.maximum(0, lifted) * np.radians(16) * np.sin(np.pi * np.clip(share, 0, 1))
                poses[:, COLUMN[f"leg_forward_{side}"]] += ahead
                poses[:, COLUMN[f"knee_{side}"]] += 2 * ahead
            return poses

        return Take(duration, blended(start, sample, min(0.3, duration)))

    return Motion("turning", begin)
