"""The cameras of a run as it tells of them: one line of the log for each change, an event where a loss begins or ends.

`pipeline.camera_states` judges, `pipeline.notices` sees to it that the outbox has the events.
"""

from __future__ import annotations

import time

from pipeline.camera_states import CameraNow, CameraStates, Change
from pipeline.metrics import reason_line
from pipeline.notices import Notices
from pipeline.plan import RunPlan, UnitPlan
from pipeline.reports import Beat
from pipeline.stage import Logger

_FINE = ("live", "connecting")


class Cameras:
    """See the module's docstring. What it is told may come from a process that talks nonsense."""

    def __init__(self, plan: RunPlan, notices: Notices, log: Logger) -> None:
        self._states = CameraStates(plan.camera_settings, plan.live_cameras, time.monotonic_ns())
        self._stage_of = _sources(plan)
        self._notices = notices
        self._log = log

    def follow(self, plan: RunPlan) -> None:
        """The run has the cameras of this plan from now on."""
        self._states.follow(plan.camera_settings, plan.live_cameras, time.monotonic_ns())
        self._stage_of = _sources(plan)

    def heard(self, unit: UnitPlan, beat: Beat) -> None:
        """What a process has said of its cameras since the last time, and what frames it has brought."""
        if not unit.sources:
            return
        now_ns = time.monotonic_ns()
        for camera, state, why, at_ns in beat.camera_changes:
            if camera in unit.cameras:
                self._tell(self._states.told(camera, state, reason_line(why), min(at_ns, now_ns)))
        for camera in unit.cameras:
            if camera in beat.camera_facts:
                self._states.shows(camera, beat.camera_facts[camera])
        for name, camera, n in beat.counts:
            if name == "frames" and n and camera in unit.cameras:
                self._tell(self._states.brought(camera, now_ns))

    def died(self, unit: UnitPlan, why: str) -> None:
        """A process is dead and will be started again."""
        for camera in unit.cameras if unit.sources else ():
            self._tell(self._states.died(camera, reason_line(f"its process died: {why}"), time.monotonic_ns()))

    def ended(self, camera: str) -> None:
        """The camera has ended."""
        self._states.ended(camera)

    def stop(self) -> None:
        """The run is stopped. May be called from a signal handler."""
        self._states.stop()

    def now(self) -> dict[str, CameraNow]:
        """How they are."""
        return self._states.now(time.monotonic_ns())

    def absent(self) -> dict[str, str]:
        """Camera -> how it is and why, of those that were tried and never live."""
        return self._states.absent()

    def _tell(self, change: Change | None) -> None:
        if change is None:
            return
        say = self._log.info if change.state in _FINE else self._log.warning
        keys = {"camera": change.camera, "state": change.state, "was": change.was, "for_s": change.for_s}
        say("camera_state", **keys, **({"why": change.why} if change.why else {}))
        forgotten = self._notices.camera(self._stage_of.get(change.camera, ""), change) if change.loss else 0
        if forgotten:
            self._log.warning("camera_events_forgotten", camera=change.camera, events=forgotten)


def _sources(plan: RunPlan) -> dict[str, str]:
    """Camera -> the stage that is its source."""
    return {camera: unit.sources[0] for unit in plan.units if unit.sources for camera in unit.cameras}
