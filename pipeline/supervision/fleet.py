"""All processes of a run: starts them, receives their reports, tells them of each other, and closes them.

It checks every report: a child that sends nonsense is killed, and harms no other process. The supervisor decides what
reports and deaths mean, and is called with each of them.
"""

from __future__ import annotations

import itertools
import secrets
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import structlog
import zmq

from camgraph.pipeline.boot import Boot, shm_prefix
from camgraph.pipeline.errors import WireError
from camgraph.pipeline.monitoring.reports import Line, Oversize, Report, read_report
from camgraph.pipeline.outbox.outbox_folder import outbox_folder
from camgraph.pipeline.plan import RunPlan
from camgraph.pipeline.stage import CameraState
from camgraph.pipeline.supervision.child_start import ForkServer, modules_to_load
from camgraph.pipeline.supervision.process import Process
from camgraph.pipeline.system.confidential import holds_credentials, secrets_in
from camgraph.pipeline.system.run_folder import RunFolder
from camgraph.pipeline.system.scarcity import in_words

CLOSE_S = 5.0
"""Every process may take this long to close."""
_AGAIN_S = 1.0
_LAST_READS = 4
"""How much of a dead process's standard error is read: more than its pipe can contain."""
_LEVELS = ("debug", "info", "warning", "error", "critical")


class Listener(Protocol):
    """Receives reports and deaths. Raises only WireError, for a report that makes no sense; its process is killed."""

    def reported(self, process: Process, report: Report) -> None:
        """A process has sent a report. The fleet itself handles logs and oversized reports."""

    def died(self, process: Process) -> None:
        """A process is dead and cleaned up; the listener judges its death."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """The processes with new settings: those that restart, and those that take them while they run."""

    restarted: list[str] = field(default_factory=list)
    going_on: list[str] = field(default_factory=list)


class Fleet:
    """The processes by name. The supervisor adds further sockets to `poller`."""

    def __init__(self, plan: RunPlan, folder: RunFolder, listener: Listener) -> None:
        self._plan = plan
        self._folder = folder
        self._fork_server = ForkServer(folder.name, modules_to_load(plan))
        self._token = secrets.token_hex(4)  # process ids are the same in two containers that share /dev/shm
        self._listener = listener
        self._log = structlog.get_logger()
        self._processes = {process.name: Process(process, number) for number, process in enumerate(plan.processes)}
        self._incarnations: dict[str, int] = {}
        self._numbers = itertools.count(len(plan.processes))
        self._revision = 0
        self.cameras_now: Mapping[str, CameraState] = {}
        self.switches: Mapping[str, bool] = {}
        """The switches that somebody has set since the run began."""
        self.resets: Mapping[str, Mapping[str, int]] = {}
        self.departed: Counter[tuple[str, str]] = Counter()
        """The counters of processes that are gone."""
        self.poller = zmq.Poller()

    @property
    def processes(self) -> Collection[Process]:
        """All processes, the dead ones too."""
        return self._processes.values()

    # ---- starting, and telling processes of each other

    def start_when_possible(self, process: Process) -> None:
        """Start the next incarnation; retry later if the machine lacks resources for it now."""
        try:
            self.start(process)
        except OSError as error:
            shortage = in_words(error)
            if shortage is None:
                raise
            if process.life.short != shortage:
                self._log.error("process_not_started", process=process.plan.name, why=shortage, retry_s=_AGAIN_S)
            process.put_off(time.monotonic() + _AGAIN_S, shortage)

    def start(self, process: Process) -> None:
        """Start the next incarnation. Raises EnvironmentProblem or OSError if the machine lacks resources for it."""
        process.start(self._boot(process, process.incarnation + 1), self._revision, self._fork_server)
        assert process.channel
        for descriptor in (process.channel.fileno(), process.pidfd, process.stderr_fd):
            self.poller.register(descriptor, zmq.POLLIN)

    def _boot(self, process: Process, incarnation: int) -> Boot:
        plan, cameras = process.plan, self._plan.camera_settings
        settings = {camera: values for camera, values in cameras.items() if plan.sources and camera in plan.cameras}
        settings_of_all = [settings, *((stage.settings, stage.environment) for stage in plan.stages)]
        return Boot(
            plan=plan,
            graph=self._plan.graph,
            run=self._folder.name,
            incarnation=incarnation,
            run_folder=str(self._folder.own),
            endpoint=self._folder.endpoint(process.number, incarnation),
            shm_prefix=shm_prefix(self._folder.name, self._token, plan.name, incarnation),
            base_folder=self._plan.base_folder,
            outbox_folder=str(outbox_folder(self._plan) or ""),
            hang_s=self._plan.hang_s,
            tracing=self._plan.tracing,
            readable_by=self._plan.readable_by,
            frames_done=process.reported.frames_done,
            gave_up=process.life.gave_up,
            cameras_now=dict(self.cameras_now) if plan.follows_cameras else {},
            switches=dict(self.switches),
            resets=dict(self.resets),
            camera_settings=settings,
            secrets=(secrets := secrets_in(settings_of_all, self._plan.secrets)),
            confidential=bool(secrets) or holds_credentials(settings_of_all),
        )

    def link(self) -> None:
        """Tell each process the addresses of its readers. New processes are left out until their plan is settled."""
        for process in self.processes:
            readers = [self._processes[name] for name in process.readers if name in self._processes]
            known = {reader.plan.name: address for reader in readers if (address := reader.life.attempt.endpoint)}
            if known and process.channel and process.state == "running":
                process.channel.send("links", endpoints=known)

    def start_sources(self, but: Collection[str] = ()) -> None:
        """Start the sources, once all other processes are ready; those of the cameras `but` wait."""
        for source in self.processes:
            if source.plan.sources and source.channel:
                source.channel.send("start", cameras=[camera for camera in source.plan.cameras if camera not in but])

    def tell_cameras_now(self, states: Mapping[str, CameraState]) -> None:
        """Tell those that follow the states of cameras, also those that start later."""
        self.cameras_now = dict(states)
        for process in self.processes:
            if process.channel and process.plan.follows_cameras:
                process.channel.send("cameras_now", states=self.cameras_now)

    def turn_switches(self, changed: Mapping[str, bool]) -> None:
        """Tell all, also those that start later, which switches somebody has set."""
        self.switches = dict(changed)
        self._send_switches()

    def reset_counters(self, resets: Mapping[str, Mapping[str, int]]) -> None:
        """Tell all, also those that start later, which counters somebody has set to zero."""
        self.resets = dict(resets)
        self._send_switches()

    def _send_switches(self) -> None:
        for process in self.processes:
            if process.channel:
                process.channel.send("switches", switches=self.switches, resets=self.resets)

    def stop_sources(self) -> None:
        """End the sources."""
        for source in self.processes:
            if source.plan.sources and source.channel and not source.all_ended:
                source.channel.send("stop")

    # ---- another plan

    def source_of(self, camera: str) -> Process | None:
        """Return the process that has the source of a camera."""
        sources = (p for p in self.processes if p.plan.sources and camera in p.plan.cameras and not p.life.leaving)
        return next(sources, None)

    def begun_cameras(self) -> set[str]:
        """Return the cameras whose sources are open."""
        open_sources = (p for p in self.processes if p.plan.sources and not p.life.leaving and p.life.ready_at > 0)
        return {camera for process in open_sources for camera in process.plan.cameras}

    def revise(self, plan: RunPlan) -> None:
        """Send the new plan to all running processes. Processes that are new in it start when it is settled."""
        self._revision += 1
        self._plan = plan
        plans = {wanted.name: wanted for wanted in plan.processes}
        for process in self.processes:
            wanted = plans.get(process.plan.name)
            if wanted is None or wanted == process.plan or process.life.leaving:
                process.has_revision(self._revision)
            else:
                process.revise(wanted, self._revision, partial(self._boot, process, process.incarnation))

    @property
    def all_revised(self) -> bool:
        """True when all running processes have the newest plan."""
        return all(process.revision == self._revision for process in self.processes if process.pid)

    @property
    def changing(self) -> bool:
        """True while a process closes because it is not needed, or starts because it is new or has new settings."""
        return any(process.life.changing for process in self.processes)

    def apply_plan(self) -> None:
        """All processes have the plan: close those that are not in it, and start those that are new in it."""
        wanted = {plan.name for plan in self._plan.processes}
        for process in list(self.processes):
            if process.plan.name not in wanted and not process.life.leaving:
                process.leave()
                if not process.channel:
                    self.drop(process)
            process.forget_all_but(process.plan.cameras)
        self.start_new()

    def start_new(self) -> None:
        """Start the processes that are new in the plan; later, if a process of the same name is still closing."""
        for plan in self._plan.processes:
            if plan.name not in self._processes:
                before = self._incarnations.get(plan.name, 0)
                process = self._processes[plan.name] = Process(plan, next(self._numbers), before)
                self.start_when_possible(process)

    def drop(self, process: Process) -> None:
        """Forget a dead process that is not needed. If its name comes back, its incarnations are counted on."""
        self.departed += process.counts()
        self._incarnations[process.plan.name] = process.incarnation
        del self._processes[process.plan.name]

    def replace(self, plan: RunPlan) -> Replaced:
        """Give other settings to the processes whose stages have other settings in this plan."""
        self._plan = plan
        replaced = Replaced()
        for wanted in plan.processes:
            process = self._processes.get(wanted.name)
            if process and process.plan.stages != wanted.stages:
                if process.takes(wanted):
                    process.hand_over(wanted, partial(self._boot, process, process.incarnation))
                    replaced.going_on.append(wanted.name)
                else:
                    process.change_settings(wanted)
                    replaced.restarted.append(wanted.name)
        return replaced

    # ---- receiving

    def listen(self, wait_ms: int) -> Mapping[object, int]:
        """Wait up to `wait_ms` for a report or a death, and return the poller's answer."""
        ready = dict(self.poller.poll(wait_ms))
        for process in list(self.processes):
            if process.channel and process.channel.fileno() in ready:
                self._receive(process)
            if process.stderr_fd in ready:
                self._log_stderr(process)
            if process.pidfd in ready:
                self._record_death(process)
        return ready

    def _receive(self, process: Process) -> None:
        """Receive the reports of a process. A wrong one kills that process and affects no other."""
        assert process.channel
        messages = [] if process.life.attempt.refused else process.channel.receive()
        try:
            for message in messages:
                self._handle(process, read_report(message))
            if process.channel.fault:
                raise WireError(process.channel.fault)
        except WireError as error:
            self._refuse(process, str(error))
        if process.life.attempt.refused or process.channel.closed:
            self._unwatch(process.channel.fileno())

    def _handle(self, process: Process, report: Report) -> None:
        if isinstance(report, Line):
            self._write(report)
        elif isinstance(report, Oversize):
            process.note_oversize()
            self._log.warning("report_too_large", process=process.plan.name, op=report.of, bytes=report.bytes)
        else:
            self._listener.reported(process, report)

    def _log_stderr(self, process: Process) -> None:
        """Log the lines that libraries, or Python itself, have written to the standard error of a process."""
        descriptor = process.stderr_fd
        for text in process.read_stderr():
            if process.stderr_allowance.takes(time.monotonic()):
                self._log_left_out(process)
                self._log.warning("stderr", process=process.plan.name, text=text)
        if process.stderr_fd < 0:
            self._unwatch(descriptor)

    def _log_left_out(self, process: Process) -> None:
        if lines := process.stderr_allowance.take_left_out():
            self._log.warning("stderr_left_out", process=process.plan.name, lines=lines)

    def _write(self, line: Line) -> None:
        values = {key: value for key, value in line.values.items() if key not in ("event", "self")}
        level = line.level if line.level in _LEVELS else "info"
        getattr(self._log, level)(str(line.values.get("event", "?")), **values)

    def _refuse(self, process: Process, why: str) -> None:
        if process.refuse(why):
            self._log.error("report_refused", process=process.plan.name, why=why)

    def _record_death(self, process: Process) -> None:
        self._receive(process)
        for _ in range(_LAST_READS):
            self._log_stderr(process)
        self._log_left_out(process)
        assert process.channel
        self._unwatch(process.stderr_fd)
        self._unwatch(process.pidfd)
        self._unwatch(process.channel.fileno())
        process.reap()
        self._listener.died(process)

    def _unwatch(self, descriptor: int) -> None:
        if descriptor in self.poller:
            self.poller.unregister(descriptor)

    # ---- the end

    def close(self, limit_s: Callable[[], float], turn: Callable[[], None]) -> None:
        """Close all processes: ask them first, and kill those that take longer than `limit_s`, which may change.

        A process that is not open yet has nothing to finish, so it gets less time. `turn` is called between.
        """
        self._fork_server.close()
        since = killed_at = time.monotonic()
        for process in self.processes:
            if process.channel:
                process.channel.send("close")
        while alive := [process for process in self.processes if process.pid]:
            now = time.monotonic()
            if all(process.life.attempt.killed_for for process in alive) and now - killed_at > CLOSE_S:
                break
            for process in alive:
                if process.channel:
                    process.channel.flush()
                limit = limit_s() if process.state == "running" else CLOSE_S
                if not process.life.attempt.killed_for and now - since > limit:
                    process.kill(f"it did not close within {limit:g} s")
                    killed_at = now
            turn()
