"""How many cameras a machine holds: arithmetic on the measurements of a trial. Pure.

    cores(n, fps) = fixed + n x reading_s x read_fps + n x after_s x fps
    share of a stage(n, fps) = n x busy_s x fps / calls that can run at once
    memory(n) = fixed + n x a camera's
    /dev/shm(n) = n x a camera's

All are linear in the number of cameras, so the first resource to end is the one with the smallest quotient.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

CPU, MEMORY, SHARED_MEMORY = "cpu", "memory", "/dev/shm"  # noqa: S108 - the name of a resource
RESERVE = 0.1
"""The share of each resource that a plan leaves free: for moments with more to do, and for other programs."""
_MOST = 100_000
"""More cameras than that are no finding."""


@dataclass(frozen=True, slots=True)
class StageTime:
    """`busy_s`: seconds in calls for each frame of a camera; `at_once`: the calls that can run at the same time."""

    busy_s: float
    at_once: int


@dataclass(frozen=True, slots=True)
class Costs:
    """What a trial has measured.

    `read_fps`: frames a second that a camera brings. `reading_s`: processor time of the processes that read, for each
    of these frames. `after_s`: process group -> processor time for each frame that goes through it. `fixed_cores`:
    process group -> what it takes however many frames come.
    """

    read_fps: float
    reading_s: float
    after_s: Mapping[str, float]
    fixed_cores: Mapping[str, float]
    stages: Mapping[str, StageTime]
    camera_bytes: float
    fixed_bytes: float
    camera_shared_bytes: float

    @property
    def frame_s(self) -> float:
        """Processor time of a frame after it is read."""
        return sum(self.after_s.values())


@dataclass(frozen=True, slots=True)
class Machine:
    """What there is. `memory_bytes` and `shared_bytes`: free for this graph."""

    cores: int
    memory_bytes: float
    shared_bytes: float


@dataclass(frozen=True, slots=True)
class Need:
    """Of so many cameras. `stages`: stage -> the share of its time that it works, 1.0 is all of it."""

    cores: float
    memory_bytes: float
    shared_bytes: float
    stages: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Most:
    """The largest number of cameras, and the resource that ends then: `CPU`, `MEMORY`, `SHARED_MEMORY` or a stage."""

    cameras: int
    resource: str


def need_of(costs: Costs, cameras: int, fps: float | None = None) -> Need:
    """The need of so many cameras, each with ``fps`` frames a second behind its source; as many as it brings by
    default. Fewer make the reading no cheaper, for a decoder needs all frames.
    """
    fps = costs.read_fps if fps is None else fps
    return Need(
        cores=sum(costs.fixed_cores.values()) + cameras * _camera_cores(costs, fps),
        memory_bytes=costs.fixed_bytes + cameras * (costs.camera_bytes + costs.camera_shared_bytes),
        shared_bytes=cameras * costs.camera_shared_bytes,
        stages={name: cameras * fps * stage.busy_s / stage.at_once for name, stage in costs.stages.items()},
    )


def most_cameras(costs: Costs, machine: Machine, fps: float | None = None, reserve: float = RESERVE) -> Most:
    """How many cameras there may be until the first resource ends, but for the reserve."""
    fps = costs.read_fps if fps is None else fps
    part, each = 1 - reserve, costs.camera_bytes + costs.camera_shared_bytes
    rooms = {
        CPU: _room(part * machine.cores - sum(costs.fixed_cores.values()), _camera_cores(costs, fps)),
        **{name: _room(part * stage.at_once, fps * stage.busy_s) for name, stage in costs.stages.items()},
        MEMORY: _room(part * machine.memory_bytes - costs.fixed_bytes, each),
        SHARED_MEMORY: _room(part * machine.shared_bytes, costs.camera_shared_bytes),
    }
    resource = min(rooms, key=lambda name: rooms[name])
    return Most(rooms[resource], resource)


def fps_that_fits(costs: Costs, machine: Machine, cameras: int, reserve: float = RESERVE) -> float:
    """Frames a second of each camera that the cores and stages take behind the sources, at most those that it brings.

    0 if there is no such rate: if reading alone is too much, or the memory ends.
    """
    part, need = 1 - reserve, need_of(costs, cameras)
    if need.memory_bytes > part * machine.memory_bytes or need.shared_bytes > part * machine.shared_bytes:
        return 0.0
    spare = part * machine.cores - sum(costs.fixed_cores.values()) - cameras * costs.reading_s * costs.read_fps
    rates = [costs.read_fps, spare / (cameras * costs.frame_s) if costs.frame_s > 0 else math.inf]
    rates += [part * stage.at_once / (cameras * stage.busy_s) for stage in costs.stages.values() if stage.busy_s > 0]
    return max(0.0, min(rates)) if spare > 0 else 0.0


def _camera_cores(costs: Costs, fps: float) -> float:
    return costs.reading_s * costs.read_fps + costs.frame_s * fps


def _room(there: float, each: float) -> int:
    if there <= 0:
        return 0
    return min(_MOST, int(there / each + 1e-9)) if each > 0 else _MOST
