"""Starts the processes of a graph, keeps them alive, and ends them.

    opening --all awaited ones ready--> running --every sink has got the end of every camera--> closing --> over
                              |  stop: sources end, the rest drains
                              |  failure: the user's mistake, or the machine's, ends the run

A process that dies or hangs restarts, at once the first time, and later if it keeps dying. Its readers and senders get
its new address and resend the unfinished messages. `pipeline.supervision.watchdog` notices hangs, and
`pipeline.supervision.deaths` decides what a death means.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial

import structlog
import zmq

from camgraph.pipeline.errors import EXIT_GAVE_UP, ProblemText
from camgraph.pipeline.monitoring.cameras import Cameras
from camgraph.pipeline.monitoring.controls import CounterResets, Switches
from camgraph.pipeline.monitoring.health import Phase
from camgraph.pipeline.monitoring.outcome import Outcome, not_drained
from camgraph.pipeline.monitoring.reports import (
    Committed,
    Emitted,
    Ended,
    Failed,
    Heartbeat,
    Opening,
    Ready,
    Report,
    Revised,
    SettingsTaken,
)
from camgraph.pipeline.monitoring.run_status import RunStatus
from camgraph.pipeline.monitoring.status import StatusBuilder
from camgraph.pipeline.monitoring.supervisor_events import SupervisorEvents
from camgraph.pipeline.outbox.outbox_folder import outbox_folder
from camgraph.pipeline.plan import RunPlan
from camgraph.pipeline.shm.segments import sweep
from camgraph.pipeline.supervision.control import ControlServer
from camgraph.pipeline.supervision.deaths import EndCameras, EndRun, GoOn, NotNeeded, OtherSettings, hint_at, is_finite
from camgraph.pipeline.supervision.fleet import CLOSE_S, Fleet
from camgraph.pipeline.supervision.lifecycle import RunState
from camgraph.pipeline.supervision.membership import Membership
from camgraph.pipeline.supervision.process import Process
from camgraph.pipeline.supervision.requests import Requests
from camgraph.pipeline.supervision.watchdog import Watchdog
from camgraph.pipeline.system.run_folder import RunFolder
from camgraph.pipeline.system.wakeup import Wakeup
from camgraph.pipeline.wanted import Loader

_TURN_S = 0.1
_QUIET_TURN_S = 0.5
"""Between two turns of a run in which nothing happens: each turn looks at all processes."""
_LONGEST_WAIT_AFTER_STOP_S = 1.0
_LAST_EVENTS_S = 2.0
"""How long the sources go on after a stop at most, until the outbox has accepted the last events of their cameras."""


class Supervisor:
    """One run. `report` is called ten times a second, or twice if nothing happens, also while the run closes. It must
    return at once.

    `loader`: loads the graph file when it has changed; without one, only plans that are loaded can be taken over.
    """

    def __init__(
        self,
        plan: RunPlan,
        folder: RunFolder,
        report: Callable[[Supervisor], None] | None = None,
        loader: Loader | None = None,
    ) -> None:
        self.folder = folder
        self.outcome = Outcome()
        self._status_builder = StatusBuilder(plan)
        self._report_run = report
        self._next_report = 0.0
        self._log = structlog.get_logger()
        self._fleet = Fleet(plan, folder, self)
        self._membership = Membership(plan, self._fleet, self._log)
        self._switches = Switches(outbox_folder(plan))
        self._switches.restore(plan, self._log)
        self._fleet.turn_switches(self._switches.changed)
        self._resets = CounterResets()
        self._requests = Requests(self, self._membership, self._log, loader)
        self._control = ControlServer(folder.control, self._requests.answer)
        self._fleet.poller.register(self._control.fileno(), zmq.POLLIN)
        self._wakeup = Wakeup()
        self._fleet.poller.register(self._wakeup.fileno(), zmq.POLLIN)
        self._own_events = SupervisorEvents(folder.name, plan.graph, outbox=any(p.has_outbox for p in self.processes))
        self._emitters: dict[str, str] = {}
        """Event that a sink has emitted -> the process of that sink."""
        self._cameras = Cameras(plan, self._own_events, self._log)
        self._fleet.tell_cameras_now(self._cameras.states())
        self._told_changes = 0
        self._finite = is_finite(plan)
        stuck = partial(self._fail, stuck=True)
        self._watchdog = Watchdog(plan, self._fleet, finite=self._finite, fail=stuck, log=self._log)
        self._running = False
        self._running_since = 0.0
        self._next_turn = 0.0
        self._has_news = False
        """Whether something has come that the next turn should decide about at once."""
        self._has_moved = False
        """Whether a process has reported since the last turn that it does something."""
        self._closing_since = 0.0
        self._stop_since = 0.0
        self._hurried = False
        self._to_reload = False
        self.can_reload = bool(loader and plan.file)
        """Whether `reload` does something."""

    # ---- from outside; may be called from a signal handler

    def stop(self) -> None:
        """End the sources and drain the rest; the second call closes at once."""
        if self._stop_since:
            self._hurried = True
            self._closing_since = self._closing_since or time.monotonic()
        self._stop_since = self._stop_since or time.monotonic()
        self._cameras.stop()
        self._wakeup.wake()

    def hurry(self) -> None:
        """Close at once, stopped or not. You may call it again."""
        if not self._stop_since:
            self.stop()
        self.stop()

    def reload(self) -> None:
        """Load the graph file again as soon as the run goes on, and log the result."""
        self._to_reload = self.can_reload
        self._wakeup.wake()

    @property
    def plan(self) -> RunPlan:
        """The present plan; it changes when cameras come and go."""
        return self._membership.plan

    @property
    def worked_s(self) -> float:
        """Seconds from the moment when the cameras began until every sink had got the end of every camera."""
        return max(0.0, self._closing_since - self._running_since) if self._running_since else 0.0

    @property
    def processes(self) -> Collection[Process]:
        """The processes of the run."""
        return self._fleet.processes

    @property
    def is_reloading(self) -> bool:
        """From `reload` until its result is logged."""
        return self._to_reload or self._requests.is_reloading

    @property
    def phase(self) -> Phase:
        """Where the run is on its way from start to end."""
        if self._stop_since or self._closing_since:
            return "stopping"
        return "running" if self._running else "starting"

    def status(self) -> RunStatus:
        """See `pipeline.run_view.RunView`."""
        now, processes = time.monotonic(), list(self.processes)
        plights = {process.plan.name: plight for process in processes if (plight := process.plight(now))}
        departed = self._fleet.departed
        status = self._status_builder.status(processes, self._cameras.now(), departed, plights)
        cameras = status.cameras
        # A camera with new settings was added after all others, but keeps its place in the order of the graph file.
        ordered = {name: cameras[name] for name in self._membership.wanted if name in cameras}
        worked_s = round(self.worked_s, 3)
        return replace(status, cameras={**ordered, **cameras}, switches=self.switches(), worked_s=worked_s)

    def switches(self) -> dict[str, bool]:
        """Switch -> whether it is on."""
        return self._switches.now(self._membership.plan)

    def turn_switch(self, name: str, *, on: bool) -> None:
        """Set a switch. Raises UserError if no stage has it, EnvironmentProblem if it is set, but cannot be kept."""
        self._switches.turn(self._membership.plan, name, on=on)
        self._fleet.turn_switches(self._switches.changed)
        self._switches.keep(self._membership.plan)

    def pause_camera(self, name: str) -> None:
        """Let a camera bring nothing from now on. Raises UserError if there is none of this name."""
        self._membership.pause(name, paused=True)

    def reset_counter(self, name: str, camera: str | None = None) -> None:
        """Set a counter to zero, on all cameras by default. Raises UserError if there is none."""
        self._resets.reset(self._membership.plan, name, camera)
        self._fleet.reset_counters(self._resets.numbers)

    # ---- the loop

    def run(self) -> Outcome:
        """Run the graph to its end."""
        swept = sweep()
        if swept:
            self._log.info("left_over_memory_removed", files=len(swept))
        try:
            for process in self.processes:
                self._fleet.start(process)
            while not self._closing_since:
                self._turn()
        finally:
            self._end_all()
            self._control.close()
        return self.outcome

    def _turn(self) -> None:
        self._listen(max(0, math.ceil(1000 * (self._next_turn - time.monotonic()))))
        now = time.monotonic()
        if self._has_moved:
            self._next_turn = min(self._next_turn, now + _TURN_S)
        if not self._has_news and now < self._next_turn:
            return  # nothing but heartbeats has come
        self._next_turn = now + (_QUIET_TURN_S if self._is_quiet else _TURN_S)
        self._has_news = self._has_moved = False
        slept_s = self._watchdog.absorb_sleep(now)
        if self._stop_since:
            self._stop_since += slept_s
        for process in self.processes:
            self._steer(process, now)
        if not self._closing_since:
            self._look_for_end(now)
        if self._running and not self._closing_since:
            if self._to_reload:
                self._to_reload = False  # before the file is read, so that a signal during the reading counts
                if not self._requests.reload():
                    self._to_reload = True
            self._requests.turn()
            self._membership.turn(stopping=bool(self._stop_since))
            self._take_over(self.plan)
        self._tell_cameras_now()
        waiting = self._membership.joining if self._running else self.plan.camera_settings
        self._status_builder.note_paused(self._membership.paused, waiting)
        self._status_builder.enter(self.phase)
        self._status_builder.measure(list(self.processes), self._fleet.departed)
        self._show()

    def _show(self) -> None:
        now = time.monotonic()
        if self._report_run and now >= self._next_report:
            self._next_report = now + _TURN_S
            self._report_run(self)

    def _take_over(self, plan: RunPlan) -> None:
        """Follow the present plan and its cameras in status, events and incidents."""
        if self._status_builder.plan is not plan:
            self._status_builder.follow(plan)
            self._cameras.follow(plan, self._membership.wanted)

    def _tell_cameras_now(self) -> None:
        if self._told_changes != self._cameras.changes:
            self._told_changes = self._cameras.changes
            self._fleet.tell_cameras_now(self._cameras.states())

    def _close_turn(self) -> None:
        self._listen(round(1000 * _TURN_S))
        self._status_builder.enter(self.phase)
        self._show()

    @property
    def _is_quiet(self) -> bool:
        """Whether nothing happens that the next turn would have to follow closely."""
        is_steady = self._running and not self._stop_since and not self._has_news and not self._has_moved
        is_changing = self._to_reload or self._requests.is_reloading or self._membership.busy
        return is_steady and not is_changing and all(process.state == "running" for process in self.processes)

    def _listen(self, wait_ms: int) -> None:
        ready = self._fleet.listen(wait_ms)
        if self._wakeup.fileno() in ready:
            self._wakeup.clear()
            self._has_news = True
        if self._control.fileno() in ready or self._control.owes:
            self._control.serve()
            self._has_news = True

    def _steer(self, process: Process, now: float) -> None:
        if process.channel:
            process.channel.flush()
        if self._closing_since:
            return
        if process.life.is_due(now, self._stop_since):
            self._fleet.start_when_possible(process)
        elif process.life.is_alive:
            self._watchdog.check_process(process, self.plan, now)
        if process.state == "running" and process.channel and process.has_outbox:
            self._own_events.send(process.channel, now)

    def _look_for_end(self, now: float) -> None:
        if self._stop_since and self._running:
            self._cameras.end_losses()
            # After the last camera's end no sink takes anything.
            if not self._own_events or now - self._stop_since > _LAST_EVENTS_S:
                self._fleet.stop_sources()
        if self._all_ended() or (self._stop_since and not self._running):
            self._closing_since = now
        elif self._stop_since and now - self._stop_since > self.plan.drain_s:
            self._fail(EXIT_GAVE_UP, not_drained(self.plan.drain_s), stuck=True)
        else:
            self._watchdog.check_run(self.plan, now, running=self._running)

    # ---- reports of the processes

    def reported(self, process: Process, report: Report) -> None:
        """See `pipeline.supervision.fleet.Listener`."""
        self._has_news |= not isinstance(report, Heartbeat | Committed)
        match report:
            case Ready():
                self._ready(process, report.endpoint)
            case Opening():
                process.note_opening(report)
            case Heartbeat():
                self._has_moved |= report.has_news
                heartbeat = process.note_heartbeat(report)
                self._status_builder.note_ages(process.plan.name, heartbeat.ages)
                self._status_builder.note_durations(heartbeat.stage_calls, heartbeat.frame_ages)
                self._status_builder.note_frames(process)
                self._cameras.note_heartbeat(process.plan, heartbeat)
                self._has_news |= self._told_changes != self._cameras.changes
            case Ended():
                process.note_end(report)
                self._cameras.ended(report.camera, report.reason, report.error)
            case Revised():
                process.note_revised(report)
                self._membership.revised(report)
            case SettingsTaken():
                process.note_settings_taken(report)
            case Failed():
                process.note_failure(report)
            case Committed():
                self._send_committed(report.id)
                if self._own_events.committed(report.id) or not report.again:
                    self._status_builder.note_event(report.summary)
            case Emitted():
                self._emitters[report.id] = process.plan.name
                values = report.model_dump(include={"id", "incident", "phase", "time_ns", "body"})
                self._own_events.emitted(report.stage, report.camera, values)

    def _send_committed(self, event_id: str) -> None:
        """The sink that gave this event to the outbox waits for the report that it is committed."""
        emitter = self._emitters.pop(event_id, None)
        for process in self.processes if emitter else ():
            if process.plan.name == emitter and process.channel:
                process.channel.send("committed", id=event_id)

    def _ready(self, process: Process, endpoint: str) -> None:
        process.note_ready(endpoint)
        if process.channel and process.has_outbox:
            # Before its senders know its address: events that end the dead one's incidents must come before new ones.
            self._own_events.send(process.channel, process.life.ready_at, anew=True)
        self._fleet.link()
        if not self._running and all(p.state == "running" or not p.plan.is_awaited for p in self.processes):
            self._running, self._running_since = True, time.monotonic()
            self._log.info("running", processes=len(self.processes), cameras=len(self.plan.camera_settings))
        self._membership.tell_paused(process)
        if self._running:
            self._fleet.start_sources(but=self._membership.joining)

    # ---- hangs and deaths

    def died(self, process: Process) -> None:
        """See `pipeline.supervision.fleet.Listener`."""
        self._has_news = True
        match verdict := process.judge(self._run_state):
            case NotNeeded():
                self._finished(process, verdict)
            case OtherSettings():
                self._follow_change(process, verdict)
            case _:
                self._log_death(process, verdict)
                self._follow(process, verdict)

    @property
    def _run_state(self) -> RunState:
        return RunState(
            running=self._running,
            finite=self._finite,
            closing=bool(self._closing_since),
            hurried=self._hurried,
            longest_pause_s=_LONGEST_WAIT_AFTER_STOP_S if self._stop_since else math.inf,
        )

    def _finished(self, process: Process, verdict: NotNeeded) -> None:
        if process.life.leaving:
            self._fleet.drop(process)
        if verdict.problem:
            self.outcome.add(*verdict.problem)

    def _follow_change(self, process: Process, verdict: OtherSettings) -> None:
        """It restarts with new settings, or did not open with them and gets the former ones back."""
        if verdict.lost:
            self._own_events.lost_by(process, "other settings")  # on purpose, so no fault of the run
        if verdict.refused:
            self._log.error("settings_refused", process=process.plan.name, why=verdict.refused)
            self._membership.stays(process.plan, verdict.refused)

    def _log_death(self, process: Process, verdict: EndRun | EndCameras | GoOn) -> None:
        death = process.life.death
        more = {"restart_s": verdict.pause_s} if isinstance(verdict, GoOn) else {}
        why = {"why": death.failure[1]} if death.failure else {}
        hint = hint_at(death.status, process.life.attempt.killed_for)
        hint_given = {"hint": hint} if hint else {}
        self._log.warning("process_died", process=death.process, reason=death.reason, **more, **why, **hint_given)

    def _follow(self, process: Process, verdict: EndRun | EndCameras | GoOn) -> None:
        """Act for the run on an unwanted death; the process itself has been judged."""
        if isinstance(verdict, EndRun):
            self._fail(verdict.status, verdict.problem)
        elif isinstance(verdict, GoOn):
            death = process.life.death
            why = process.life.attempt.killed_for or death.why
            self._cameras.died(process.plan, why, self._membership.paused)
            for problem in self._own_events.lost_by(process, death.reason) if verdict.lost else ():
                self.outcome.add(EXIT_GAVE_UP, problem)

    # ---- the end

    def _fail(self, status: int, problem: str, *, stuck: bool = False) -> None:
        """End the run; `stuck`: without waiting for unfinished work."""
        self.outcome.add(status, problem)
        self._closing_since = time.monotonic()
        self._hurried |= stuck

    def _all_ended(self) -> bool:
        """True when every process without readers has got the end of all its cameras, and no more cameras will come."""
        if not self.plan.camera_settings or self._membership.differs:
            return bool(self._stop_since) and not self.plan.camera_settings
        return self._running and all(p.all_ended for p in self.processes if not p.plan.outgoing)

    def _end_all(self) -> None:
        """Close all processes: ask them first, and kill them in the end."""
        self._closing_since = self._closing_since or time.monotonic()
        ended = {camera: how for process in self.processes for camera, how in process.ended.items()}
        # The run may be over before the source itself has reported its end, which may be that it was given up.
        sources_last = sorted(self.processes, key=lambda process: bool(process.plan.sources))
        statuses = {camera: status for p in sources_last for camera, status in p.reported.end_status.items() if status}
        self.outcome.add_camera_errors(ended, self.plan.camera_settings, statuses)
        in_order = bool(self._stop_since) and not self._hurried
        self.outcome.add_absent(self._cameras.absent(), ended, stopped=in_order)
        for process in self.processes:
            if process.trouble and process.trouble not in self.outcome.problems:
                text = f"{process.plan.name} did not open again: {process.trouble}"
                kind = getattr(process.trouble, "error_id", "") or "process-died"
                self.outcome.add(EXIT_GAVE_UP, ProblemText(text, error_id=kind))
        self._fleet.close(lambda: CLOSE_S if self._hurried else max(CLOSE_S, self.plan.drain_s), self._close_turn)
        # Of all processes at once: several may have dropped something for the same reason.
        counts = sum((process.counts() for process in self.processes), self._fleet.departed)
        self.outcome.add_losses(counts, edges_drop=self.plan.edges_drop)
        self._running = False
        self._status_builder.enter("over")
