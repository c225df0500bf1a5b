"""Reports on the cameras of a run: one line of the log for each change, an event if a loss begins or ends.

`pipeline.monitoring.camera_states` judges; `pipeline.monitoring.supervisor_events` gets the events to the outbox.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable

from camgraph.pipeline.errors import ProblemText
from camgraph.pipeline.messages import EndReason
from camgraph.pipeline.monitoring.camera_states import ERROR_IDS, CameraNow, CameraStates, Change, LossOver
from camgraph.pipeline.monitoring.metrics import reason_line
from camgraph.pipeline.monitoring.reports import Heartbeat
from camgraph.pipeline.monitoring.supervisor_events import SupervisorEvents
from camgraph.pipeline.plan import ProcessPlan, RunPlan
from camgraph.pipeline.stage import CameraState, Logger

_FINE = ("live", "connecting")


class Cameras:
    """See the module's docstring. A process may send it nonsense."""

    def __init__(self, plan: RunPlan, own_events: SupervisorEvents, log: Logger) -> None:
        self._states = CameraStates(plan.camera_settings, plan.live_cameras, time.monotonic_ns())
        self._stage_of = _sources(plan)
        self._live = frozenset(plan.live_cameras)
        self.changes = 0
        """Grows with each change after which `states` may differ."""
        self._own_events = own_events
        self._log = log

    def follow(self, plan: RunPlan, wanted: Collection[str]) -> None:
        """The run has the cameras of this plan from now on; removed ones that are `wanted` come again."""
        now_ns = time.monotonic_ns()
        self._report_over(self._states.follow(plan.camera_settings, plan.live_cameras, now_ns, wanted))
        self._stage_of = _sources(plan)
        self._live = frozenset(plan.live_cameras)
        self.changes += 1

    def note_heartbeat(self, process: ProcessPlan, heartbeat: Heartbeat) -> None:
        """Take a process's reports on its cameras since the last heartbeat, and its counts of their frames."""
        if not process.sources:
            return
        now_ns = time.monotonic_ns()
        for camera, state, why, at_ns in heartbeat.camera_changes:
            if camera in process.cameras:
                self._report(self._states.reported(camera, state, reason_line(why), min(at_ns, now_ns)))
        for camera in process.cameras:
            if camera in heartbeat.camera_facts:
                self._states.shows(camera, heartbeat.camera_facts[camera])
        for name, camera, n in heartbeat.counts:
            if name == "frames" and camera in process.cameras:
                self._report(self._states.brought(camera, n, now_ns))

    def died(self, process: ProcessPlan, why: str, resting: Collection[str] = ()) -> None:
        """A process is dead and will restart. Its cameras are lost, except the `resting` ones."""
        for camera in [camera for camera in process.cameras if camera not in resting] if process.sources else ():
            self._report(self._states.died(camera, reason_line(f"its process died: {why}"), time.monotonic_ns()))

    def ended(self, camera: str, reason: EndReason, error: str = "") -> None:
        """The camera has ended, by this `error` if there is one."""
        over = self._states.ended(camera, reason, time.monotonic_ns())
        if over is None:
            return
        keys = {"camera": camera, "was": over.was, "for_s": over.for_s}
        if reason == "error":
            self._log.error("camera_state", state="failed", why=reason_line(error), **keys)
        elif reason == "end":
            self._log.info("camera_state", state="done", **keys)
        self._report_over([over.loss] if over.loss else ())

    def stop(self) -> None:
        """The run is being stopped: no camera is lost any more. May be called from a signal handler."""
        self._states.stop()

    def end_losses(self) -> None:
        """End all losses, after `stop` and while the outbox still takes events."""
        self._report_over(self._states.end_losses(time.monotonic_ns()))

    def now(self) -> dict[str, CameraNow]:
        """The states of all cameras."""
        return self._states.now(time.monotonic_ns())

    def states(self) -> dict[str, CameraState]:
        """Camera -> its state, for stages that follow it: `connecting` before a first report; a recorded one `live`."""
        return {
            camera: now.state or ("connecting" if camera in self._live else "live")
            for camera, now in self.now().items()
        }

    def absent(self) -> dict[str, ProblemText]:
        """Camera -> its state and the reason, for cameras that were tried and never live."""
        return self._states.absent()

    def _report(self, change: Change | None) -> None:
        if change is None:
            return
        self.changes += 1
        log = self._log.info if change.state in _FINE else self._log.warning
        keys = {"camera": change.camera, "state": change.state, "was": change.was, "for_s": change.for_s}
        kind = {"error_id": ERROR_IDS[change.state]} if change.state in ERROR_IDS else {}
        log("camera_state", **keys, **({"why": change.why} if change.why else {}), **kind)
        if change.loss:
            self._note(change)

    def _report_over(self, losses: Iterable[LossOver]) -> None:
        for loss in losses:
            self._log.info("camera_loss_over", camera=loss.camera, reason=loss.reason, lost_s=loss.lost_s)
            self._note(loss)

    def _note(self, change: Change | LossOver) -> None:
        forgotten = self._own_events.camera(self._stage_of.get(change.camera, ""), change)
        if forgotten:
            self._log.warning("camera_events_forgotten", camera=change.camera, events=forgotten)


def _sources(plan: RunPlan) -> dict[str, str]:
    """Camera -> the stage that is its source."""
    return {camera: process.sources[0] for process in plan.processes if process.sources for camera in process.cameras}
