"""A process's heartbeat, four times a second: that it is alive, how far it is, and its counters."""

from __future__ import annotations

import time

from pipeline.execution.hold import Hold
from pipeline.execution.unit import Unit
from pipeline.monitoring.metrics import Counters
from pipeline.shm.slots import SlotRing
from pipeline.transport.channel import Channel
from pipeline.transport.inlet import Inlet
from pipeline.transport.outlet import Outlet
from pipeline.worker.dispatch import Dispatch
from pipeline.worker.intake import Intake
from pipeline.worker.sources import Sources

_HEARTBEAT_S = 0.25


class Vitals:
    """The parts of one process, as far as they have something to say (`pipeline.monitoring.reports.Heartbeat`)."""

    def __init__(
        self,
        channel: Channel,
        *,
        unit: Unit,
        counters: Counters,
        ring: SlotRing,
        hold: Hold,
        outlet: Outlet,
        sources: Sources,
        inlet: Inlet | None,
        intake: Intake | None,
        dispatch: Dispatch | None,
    ) -> None:
        self._channel = channel
        self._unit = unit
        self._counters = counters
        self._ring = ring
        self._hold = hold
        self._outlet = outlet
        self._sources = sources
        self._inlet = inlet
        self._intake = intake
        self._dispatch = dispatch
        self._next_heartbeat = 0.0
        self._cpu_before = 0.0

    def begin(self) -> None:
        """The stages are open: memory that they take from now on is for their work."""
        self._cpu_before = time.process_time()

    def tell_in_time(self) -> None:
        """Send a heartbeat if it is due. Call it often."""
        if time.monotonic() >= self._next_heartbeat:
            self._next_heartbeat = time.monotonic() + _HEARTBEAT_S
            self.tell()

    def tell(self) -> None:
        """Send a heartbeat now."""
        silence, changes = self._sources.silence, self._counters.camera_changes()
        sent = self._channel.send(
            "heartbeat",
            working_since_ns=self._intake.working_since_ns if self._intake else 0,
            source_silent_since_ns=silence.since_ns,
            source_opening=silence.opening,
            stages={name: runner.times.snapshot() for name, runner in self._unit.runners.items()},
            counts=self._counters.snapshot(),
            ages=self._unit.ages_ms(),
            files=self._counters.files,
            frames_done=self._sources.frames_done,
            cpu_s=time.process_time() - self._cpu_before,
            queue=self._inlet.waiting() if self._inlet else 0,
            custody=self._outlet.in_custody,
            slots=self._ring.in_use,
            held=self._hold.waits_for or (self._dispatch.waits_for if self._dispatch else ""),
            patient=self._hold.patient and not (self._dispatch and self._dispatch.waits_for),
            troubles=[
                *self._hold.troubles,
                *self._counters.troubles,
                *(self._dispatch.troubles if self._dispatch else ()),
            ],
            camera_changes=changes,
            camera_facts=self._counters.camera_facts,
        )
        if not sent:
            self._counters.keep_camera_changes(changes)
