"""How old frames are when their processing ends: of each camera the latest, by the process in which it ended.

A frame's processing ends in a process that sends it to no other (`UnitPlan.ends_frames`). A graph may have several such
processes: one with the rules, and one that writes a video. Then the slowest of them counts. Pure: time is an argument.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class _Age:
    age_ms: float
    noted_s: float


class FrameAges:
    """Bounded by the cameras of the run and the processes of its graph."""

    def __init__(self) -> None:
        self._ages: dict[str, dict[str, _Age]] = {}

    def note(self, process: str, ages_ms: Mapping[str, float], now_s: float) -> None:
        """Camera -> how old its newest frame was when this process was done with it."""
        for camera, age_ms in ages_ms.items():
            self._ages.setdefault(camera, {})[process] = _Age(age_ms, now_s)

    def of(self, camera: str, now_s: float, longest_s: float) -> float | None:
        """In ms. None if no frame of the camera has ended for ``longest_s``: an old age means nothing now."""
        fresh = [age.age_ms for age in self._ages.get(camera, {}).values() if now_s - age.noted_s <= longest_s]
        return round(max(fresh), 1) if fresh else None

    def keep(self, cameras: Collection[str]) -> None:
        """Forget all others."""
        for camera in self._ages.keys() - set(cameras):
            del self._ages[camera]
