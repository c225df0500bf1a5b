"""The commands that set counters of a run to zero.

    camgraph counter visitors reset --camera front      {"visitors": {"front": 1}}
    camgraph counter visitors reset                     {"visitors": {"front": 2, "back": 2}}

A stage obeys each number once: it remembers the last one beside its counts, so a command is neither lost nor obeyed
twice if the stage's process dies.
"""

from __future__ import annotations

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.monitoring.declared import declaring
from camgraph.pipeline.plan import RunPlan
from camgraph.pipeline.system.spelling import did_you_mean


class CounterResets:
    """Counter -> camera -> the number of the last command (`numbers`)."""

    def __init__(self) -> None:
        self.numbers: dict[str, dict[str, int]] = {}
        self._last = 0

    def reset(self, plan: RunPlan, name: str, camera: str | None) -> None:
        """Set a counter to zero, of one camera or of all. Raises UserError if there is no such counter or camera."""
        known = sorted({counter for counters in declaring(plan, "counters") for counter in counters})
        if name not in known:
            listed = f"; there are: {', '.join(known)}" if known else ": its rules have no `counters`"
            raise UserError(
                f"the run has no counter {name[:64]!r}{did_you_mean(name, known) or listed}", error_id="name-unknown"
            )
        cameras = plan.camera_settings
        if camera is not None and camera not in cameras:
            listed = f"; there are: {', '.join(list(cameras)[:8])}"
            raise UserError(
                f"the run has no camera {camera[:64]!r}{did_you_mean(camera, cameras) or listed}",
                error_id="name-unknown",
            )
        self._last += 1
        before = {one: number for one, number in self.numbers.get(name, {}).items() if one in cameras}
        self.numbers[name] = {**before, **dict.fromkeys([camera] if camera is not None else cameras, self._last)}
