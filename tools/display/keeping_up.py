"""Tells a person that the machine is too slow for the cameras, and what to do: in whole sentences, and rarely."""

from __future__ import annotations

import math
from collections import deque

from camgraph.pipeline.monitoring.run_status import RunStatus
from camgraph.pipeline.plan import RunPlan

WINDOW_S = 20.0
"""What happened since is talked about."""
SETTLING_S = 10.0
"""When a run begins, its cameras come faster than its stages: that says nothing of the machine."""
AGAIN_S = 1800.0
MANY = 0.05
"""The share of dropped frames that is worth a word."""


_LEAST_SHOWN = 0.05


class KeepingUp:
    """Looks at one status after the other. Times are those of the run (`uptime_s`)."""

    def __init__(self, plan: RunPlan) -> None:
        self._plan = plan
        self._seen: deque[tuple[float, int, int]] = deque()
        self._next_s = 0.0

    def words(self, status: RunStatus) -> str:
        """What to tell now; "" if the run keeps up, if it is not known, or if it was told half an hour ago or less."""
        if status.phase != "running":
            self._seen.clear()
            self._next_s = max(self._next_s, status.uptime_s + SETTLING_S + WINDOW_S)
            return ""
        window = self._window(status)
        if window is None or not status.limit or status.uptime_s < self._next_s:
            return ""
        seconds, frames, drops = window
        if drops < MANY * frames:
            return ""
        self._next_s = status.uptime_s + AGAIN_S
        live = sum(camera.fps > 0 for camera in status.cameras.values())
        drops = min(drops, frames)  # some of those that are dropped now came before
        return _words(self._plan, status.limit, drops / frames, (frames - drops) / seconds / max(1, live))

    def _window(self, status: RunStatus) -> tuple[float, int, int] | None:
        """Seconds, frames and drops of the last 20 s or a little more; None as long as there is no such time."""
        self._seen.append((status.uptime_s, status.totals.frames, status.totals.drops))
        while len(self._seen) > 2 and status.uptime_s - self._seen[1][0] >= WINDOW_S:
            self._seen.popleft()
        (begin_s, frames, drops), (end_s, frames_now, drops_now) = self._seen[0], self._seen[-1]
        if end_s - begin_s < WINDOW_S or frames_now <= frames:
            return None
        return end_s - begin_s, frames_now - frames, drops_now - drops


def _words(plan: RunPlan, limit: str, dropped: float, fps: float) -> str:
    """`fps`: how many frames a second of each camera went through."""
    manageable = max(1, math.floor(fps))
    rate = f"about {fps:.1f} a second" if fps >= _LEAST_SHOWN else "hardly any"
    return (
        f"This machine does not keep up with these cameras: of their last pictures, {dropped:.0%} were left out, and "
        f"short moments can be missed. It manages {rate} of each camera.\n"
        f"  Why: {limit}\n  What to do: {_advice(plan, manageable)}"
    )


def _advice(plan: RunPlan, fps: int) -> str:
    if not plan.file:
        return f"fewer pictures a second (`--max-fps {fps}`), smaller ones (`--size 256`), or fewer cameras"
    stages = (stage for process in plan.processes for stage in process.stages)
    prepare = next((stage.name for stage in stages if stage.use == "preprocess"), "")
    smaller = f", smaller ones (`max_side: 256` at `{prepare}`)" if prepare else ""
    return (
        f"fewer pictures a second (`camera_defaults: {{max_fps: {fps}}}`){smaller}, or fewer cameras; "
        "`camgraph plan` measures how many this machine can have"
    )
