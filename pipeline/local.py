"""A whole graph in the caller's own process (`processes: one`): for debugging, and for systems without shared memory.

The same stages, the same order, the same events; but no sockets, no shared memory, no restarts: a crash ends the run.
"""

from __future__ import annotations

import math
import os
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import structlog

from camgraph.pipeline.boot import Boot
from camgraph.pipeline.errors import EXIT_ENVIRONMENT, EXIT_GAVE_UP, CamgraphError, EnvironmentProblem, ProblemText
from camgraph.pipeline.execution.builder import Builder, Built
from camgraph.pipeline.execution.collector import Collector
from camgraph.pipeline.execution.context import Pulse
from camgraph.pipeline.execution.emissions import Emissions
from camgraph.pipeline.execution.process_parts import ProcessParts
from camgraph.pipeline.execution.retry import Closing, GivenUp, Retry
from camgraph.pipeline.execution.runner import Runner
from camgraph.pipeline.execution.source_thread import Handed, SourceThread, may_start, queued
from camgraph.pipeline.items import END_SEQ, Item, Key
from camgraph.pipeline.messages import End, Event, Stamp
from camgraph.pipeline.monitoring.cameras import Cameras
from camgraph.pipeline.monitoring.controls import CounterResets, Switches
from camgraph.pipeline.monitoring.health import Phase
from camgraph.pipeline.monitoring.metrics import Counters, counter_of
from camgraph.pipeline.monitoring.outcome import Outcome, blocked_too_long, not_drained
from camgraph.pipeline.monitoring.reports import Heartbeat, StageStats
from camgraph.pipeline.monitoring.run_status import RunStatus
from camgraph.pipeline.monitoring.status import StatusBuilder
from camgraph.pipeline.monitoring.supervisor_events import SupervisorEvents
from camgraph.pipeline.outbox.outbox import Outbox
from camgraph.pipeline.outbox.outbox_folder import outbox_folder
from camgraph.pipeline.plan import BLOCKED_LIMIT_S, ProcessPlan, RunPlan
from camgraph.pipeline.stage import Source

_WAIT_S = 0.1


class _OneProcess:
    """The run's own process, as `pipeline.monitoring.status` wants to see it."""

    def __init__(self, plan: ProcessPlan) -> None:
        self.plan = plan
        self.state = "running"
        self.heartbeat = Heartbeat()
        self.trouble = ""
        self.ended: dict[str, tuple[str, ProblemText]] = {}
        self.end_status: dict[str, int] = {}
        self.restarts = 0
        self.counters = Counters()
        self.pid = os.getpid()
        self.shared_bytes = 0

    def counts(self) -> Counter[tuple[str, str]]:
        return counter_of(self.counters.snapshot())


class _LocalOutbox:
    """Puts the run's own events into the outbox at once: the outbox cannot die alone here."""

    def __init__(self, outbox: Runner) -> None:
        self._outbox = outbox

    def send(self, op: str, **values: Any) -> bool:
        """See `pipeline.monitoring.supervisor_events.Sender`."""
        assert op == "emit"
        camera = values["camera"]
        stamp = Stamp(camera, 0, 0, values["time_ns"], 0, 0)
        event = Event(stamp, values["id"], values["incident"], values["phase"], values["body"])
        self._outbox.run([Item(camera, Key(0, 0, 0), event, values["sender"])])
        return True


class LocalRun:
    """One run. `report` is called between frames and must return at once."""

    def __init__(self, plan: RunPlan, report: Callable[[LocalRun], None] | None = None) -> None:
        self.plan = plan
        self.outcome = Outcome()
        self._status_builder = StatusBuilder(plan)
        self._report_run = report
        self._log = structlog.get_logger()
        self._process = _OneProcess(plan.processes[0])
        self._outbox = next((stage.name for stage in plan.processes[0].stages if stage.use == "outbox"), "")
        self._own_events = SupervisorEvents(plan.graph, plan.graph, outbox=bool(self._outbox))
        self._cameras = Cameras(plan, self._own_events, self._log)
        self._told_changes = 0
        self._wake = threading.Event()
        self._collector = Collector()
        self._parts: ProcessParts
        self._built: Built
        self._retry = Retry(self._pause, self._collector, self._log)
        self._threads: list[SourceThread] = []
        self._switches = Switches(outbox_folder(plan))
        self._switches.restore(plan, self._log)
        self._emitted: dict[str, tuple[str, Event]] = {}
        """Events that sinks have given to the outbox by themselves, by id: (stage, event)."""
        self._resets = CounterResets()
        self._stop_since = 0.0
        self._hurried = False

    can_reload = False
    is_reloading = False

    @property
    def phase(self) -> Phase:
        """Where the run is on its way from start to end."""
        return "stopping" if self._stop_since else self._status_builder.phase

    def reload(self) -> None:
        """Nothing of a graph in one process can be changed."""

    def stop(self) -> None:
        """Let the sources end and the rest drain. A second call gives up the frames on the way."""
        if self._stop_since:
            raise GivenUp
        self._stop_since = time.monotonic()
        self._cameras.stop()
        self._wake.set()

    def switches(self) -> dict[str, bool]:
        """Switch -> whether it is on."""
        return self._switches.now(self.plan)

    def turn_switch(self, name: str, *, on: bool) -> None:
        """See `pipeline.run_view.RunView`."""
        self._switches.turn(self.plan, name, on=on)
        self._built.chain.turn_switches(self._switches.changed)
        self._switches.keep(self.plan)

    def reset_counter(self, name: str, camera: str | None = None) -> None:
        """See `pipeline.run_view.RunView`."""
        self._resets.reset(self.plan, name, camera)
        self._built.chain.reset_counters(self._resets.numbers)

    def hurry(self) -> None:
        """Wait for no reader outside any more. For calls from another thread, in which `stop` could not raise."""
        self._hurried = True

    def run(self) -> Outcome:
        """Run the graph to its end."""
        with tempfile.TemporaryDirectory(prefix="camgraph-") as folder:
            self._built = self._build(folder)
            self._threads = [self._source_thread(*source) for source in self._built.sources]
            try:
                self._built.chain.open()
                self._status_builder.note_paused((), waiting=self.plan.camera_settings)
                self._status_builder.note_paused(())
                self._status_builder.enter("running")
                while len(self._process.ended) < len(self._threads):
                    self._turn()
            except Closing:
                pass  # why is known to the outcome
            except CamgraphError as error:
                self.outcome.add(error.exit_status, ProblemText.of(error))
            finally:
                self._close()
        self.outcome.add_camera_errors(self._process.ended, self.plan.camera_settings, self._process.end_status)
        self.outcome.add_absent(self._cameras.absent(), self._process.ended, stopped=bool(self._stop_since))
        self.outcome.add_losses(self._process.counts())
        self._look()
        self._status_builder.enter("over")
        return self.outcome

    def _close(self) -> None:
        for thread in self._threads:
            thread.stop()
        if self._built.outbox is not None and self._built.outbox.is_open:
            try:
                self._built.outbox.try_to_note(math.inf)
                self._note_undelivered(self._built.outbox)
            except CamgraphError as error:
                self.outcome.add(error.exit_status, ProblemText.of(error))
        self._built.close_tracer()
        for failure in self._built.chain.close():
            self.outcome.add(failure.exit_status, ProblemText.of(failure))

    def _note_undelivered(self, outbox: Outbox) -> None:
        for sink in outbox.settings.sinks:
            if outbox.left(sink):
                text = (
                    f"{sink} did not take all events: they are kept, and the next run of this name delivers them first"
                )
                self.outcome.add(EXIT_ENVIRONMENT, ProblemText(text, error_id="events-wait"))

    def _build(self, folder: str) -> Built:
        self._thread = threading.get_ident()
        self._parts = self._make_parts()
        boot = Boot(
            plan=self.plan.processes[0],
            graph=self.plan.graph,
            run=self.plan.graph,
            incarnation=1,
            run_folder=folder,
            endpoint="",
            shm_prefix="",
            base_folder=self.plan.base_folder,
            outbox_folder=str(outbox_folder(self.plan) or ""),
            tracing=self.plan.tracing,
            camera_settings=self.plan.camera_settings,
            cameras_now=self._cameras.states(),
            switches=self._switches.changed,
        )
        return Builder(boot, self._parts).build()

    def _make_parts(self) -> ProcessParts:
        return ProcessParts(
            incarnation=1,
            log=self._log,
            counters=self._process.counters,
            collector=self._collector,
            retry=self._retry,
            emissions=Emissions(self._send_emitted),
            wake=self._wake.set,
            one_at_a_time=True,
        )

    def _send_emitted(self, stage: str, event: Event) -> None:
        """Take note of a sink's own event; from the loop's thread, commit it at once."""
        self._emitted[event.id] = (stage, event)
        if threading.get_ident() == self._thread:
            self._commit_emitted()
        self._wake.set()

    def _commit_emitted(self) -> None:
        """Raises EnvironmentProblem if the disk is full: then they stay, and their stages ask again."""
        assert self._built.outbox is not None
        for event_id, (stage, event) in list(self._emitted.items()):
            self._built.outbox.accept([Item(event.stamp.camera, Key(0, 0, 0), event, stage)])
            del self._emitted[event_id]
            self._parts.emissions.committed(event_id)

    def _source_thread(self, source: Source[Any], pulse: Pulse) -> SourceThread:
        traced = self.plan.tracing is not None
        return SourceThread(source, pulse, self._parts, window=self.plan.processes[0].window, traced=traced)

    # ---- the loop

    def _turn(self) -> None:
        """Take the next frames of the sources, of each camera in turn, and bring them through to the sinks."""
        self._wake.wait(_WAIT_S)
        self._wake.clear()
        if self._stop_since:
            self._stop_sources()
        for thread in may_start(self._threads):
            thread.start(None)
        taken = {thread.camera: (thread, deque(thread.take())) for thread in self._threads}
        if not any(waiting for _, waiting in taken.values()):
            self._look()
        while any(waiting for _, waiting in taken.values()):
            row = [(thread, waiting.popleft()) for thread, waiting in taken.values() if waiting]
            self._process_row([(f, h) for f, h in row if not isinstance(h.message, End)])
            for thread, handed in row:
                if isinstance(handed.message, End):
                    self._end(thread, handed.message)
            self._look()
        self._send_own_events()

    def _stop_sources(self) -> None:
        """End the sources, after the last events about their cameras: once the last camera has ended, no sink takes
        events.
        """
        self._cameras.end_losses()
        left = 0
        while len(self._own_events) != left:
            left = len(self._own_events)
            self._send_own_events()
            self._look()
        for thread in self._threads:
            thread.stop()

    def _send_own_events(self) -> None:
        if len(self._own_events):
            self._own_events.send(_LocalOutbox(self._built.chain.runners[self._outbox]), time.monotonic())

    def _process_row(self, row: list[tuple[SourceThread, Handed]]) -> None:
        if not row:
            return
        items = []
        for thread, handed in row:
            stamp = handed.message.stamp
            items.append(Item(thread.camera, Key(stamp.epoch, stamp.seq, 0), handed.message))
            self._process.counters.add("frames", thread.camera)
        self._built.chain.spread(row[0][0].stage, items, [[handed.message] for _, handed in row])
        for thread, handed in row:
            self._built.chain.frame_done(handed.message.stamp)
            thread.give_back()

    def _end(self, thread: SourceThread, end: End) -> None:
        self._built.chain.end(thread.stage, Item(thread.camera, Key(end.stamp.epoch, END_SEQ, 0), end))
        self._process.ended[thread.camera] = (end.reason, ProblemText(end.error, error_id=end.error_id))
        self._cameras.ended(thread.camera, end.reason, end.error)
        self._process.end_status[thread.camera] = end.status

    # ---- retries while the outside does not respond

    def _pause(self, seconds: float) -> bool:
        """Let time pass while a stage is blocked; True if it has been blocked for too long."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(_WAIT_S)
            self._look()
        now, why = time.monotonic(), self._retry.waits_for
        if self._hurried:
            return True
        if self._stop_since and now - self._stop_since > self.plan.drain_s:
            self.outcome.add(EXIT_GAVE_UP, not_drained(self.plan.drain_s, why))
            return True
        since = self._retry.since
        if since and not any(thread.live for thread in self._threads) and now - since > BLOCKED_LIMIT_S:
            self.outcome.add(EXIT_ENVIRONMENT, blocked_too_long(BLOCKED_LIMIT_S, why))
            return True
        return False

    # ---- looking

    def _look(self) -> None:
        outbox, chain = self._built.outbox, self._built.chain
        if outbox is not None and outbox.is_open:
            with suppress(EnvironmentProblem):
                self._commit_emitted()
            outbox.try_to_note(time.monotonic())
            outbox.maintain(time.monotonic())
            for event_id, event in outbox.committed:
                self._status_builder.note_event(event)
                self._own_events.committed(event_id)
            outbox.committed.clear()
        self._note_cameras()
        self._status_builder.note_ages(self._process.plan.name, chain.ages_ms())
        self._status_builder.note_durations(chain.take_calls(), chain.take_ages())
        stages = {name: StageStats(**runner.times.snapshot()) for name, runner in chain.runners.items()}
        files = self._process.counters.files
        troubles = [*self._retry.troubles, *self._process.counters.troubles]
        self._process.heartbeat = Heartbeat(
            op="heartbeat",
            stages=stages,
            files=files,
            blocked_on=self._retry.waits_for,
            troubles=troubles,
            cpu_s=time.process_time(),
            queued=queued(self._threads),
            stage_facts=self._process.counters.stage_facts,
            counters=self._process.counters.of_stages,
            outbox=outbox.backlog if outbox else {},
        )
        self._status_builder.measure([self._process])
        if self._report_run:
            self._report_run(self)

    def _note_cameras(self) -> None:
        counters = self._process.counters
        changes, facts = counters.camera_changes(), counters.camera_facts
        heartbeat = Heartbeat.model_construct(camera_changes=changes, camera_facts=facts, counts=counters.snapshot())
        self._cameras.note_heartbeat(self._process.plan, heartbeat)
        self._status_builder.note_frames(self._process)
        if self._told_changes != self._cameras.changes:
            self._told_changes = self._cameras.changes
            self._built.chain.tell_cameras_now(self._cameras.states())

    def status(self) -> RunStatus:
        """See `pipeline.run_view.RunView`."""
        status = self._status_builder.status([self._process], self._cameras.now())
        return replace(status, switches=self.switches())
