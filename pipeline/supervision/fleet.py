"""The processes of a run together: started, listened to, told of each other, and closed.

What they say is checked here: a child that talks nonsense is killed, and harms nobody else. What it means is the
supervisor's business, which is called with every report and every death.
"""

from __future__ import annotations

import itertools
import secrets
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Protocol

import structlog
import zmq

from pipeline.boot import Boot, shm_prefix
from pipeline.errors import WireError
from pipeline.monitoring.reports import Line, Oversize, Report, read_report
from pipeline.plan import RunPlan
from pipeline.supervision.process import Process
from pipeline.system.confidential import holds_credentials, secrets_in
from pipeline.system.run_folder import RunFolder
from pipeline.system.scarcity import in_words

CLOSE_S = 5.0
"""What may take so long to close always may."""
_AGAIN_S = 1.0
_LAST_READS = 4
"""Of what a dead process has written to its standard error: more than its pipe holds."""
_LEVELS = ("debug", "info", "warning", "error", "critical")


class Listener(Protocol):
    """Hears of reports and deaths. Raises nothing but WireError, for a report that makes no sense: its process pays."""

    def heard(self, process: Process, report: Report) -> None:
        """A process has reported; logs and what was too large are dealt with already."""

    def died(self, process: Process) -> None:
        """A process is dead and cleaned up after: its death is to be judged."""


class Fleet:
    """The processes, by name of their unit. `poller` may be used to wait for other sockets as well."""

    def __init__(self, plan: RunPlan, folder: RunFolder, listener: Listener) -> None:
        self._plan = plan
        self._folder = folder
        self._token = secrets.token_hex(4)  # process ids are the same in two containers that share /dev/shm
        self._listener = listener
        self._log = structlog.get_logger()
        self._processes = {unit.name: Process(unit, number) for number, unit in enumerate(plan.units)}
        self._incarnations: dict[str, int] = {}
        self._numbers = itertools.count(len(plan.units))
        self._revision = 0
        self.departed: Counter[tuple[str, str]] = Counter()
        """What those counted that are no more."""
        self.poller = zmq.Poller()

    @property
    def processes(self) -> Collection[Process]:
        """All of them, the dead ones too."""
        return self._processes.values()

    # ---- starting, and telling them

    def start_when_possible(self, process: Process) -> None:
        """Start the next incarnation, or try it again later where the machine does not give enough for it now."""
        try:
            self.start(process)
        except OSError as error:
            told = in_words(error)
            if told is None:
                raise
            if process.life.short != told:
                self._log.error("process_not_started", unit=process.plan.name, why=told, retry_s=_AGAIN_S)
            process.put_off(time.monotonic() + _AGAIN_S, told)

    def start(self, process: Process) -> None:
        """Start the next incarnation. Raises EnvironmentProblem, or OSError where the machine does not give enough."""
        process.start(self._boot(process, process.incarnation + 1), self._revision)
        assert process.channel
        for descriptor in (process.channel.fileno(), process.pidfd, process.stderr_fd):
            self.poller.register(descriptor, zmq.POLLIN)

    def _boot(self, process: Process, incarnation: int) -> Boot:
        unit, cameras = process.plan, self._plan.camera_settings
        settings = {camera: values for camera, values in cameras.items() if unit.sources and camera in unit.cameras}
        told = [settings, *((stage.settings, stage.environment) for stage in unit.stages)]
        return Boot(
            unit=unit,
            graph=self._plan.graph,
            run=self._folder.name,
            incarnation=incarnation,
            run_folder=str(self._folder.own),
            endpoint=self._folder.endpoint(process.number, incarnation),
            shm_prefix=shm_prefix(self._folder.name, self._token, unit.name, incarnation),
            base_folder=self._plan.base_folder,
            frames_done=process.frames_done,
            gave_up=process.life.gave_up,
            camera_settings=settings,
            secrets=(secrets := secrets_in(told, self._plan.secrets)),
            confidential=bool(secrets) or holds_credentials(told),
        )

    def link(self) -> None:
        """Tell each where those are that read from it. New ones are not there before their plan is settled."""
        for process in self.processes:
            readers = [self._processes[name] for name in process.readers if name in self._processes]
            known = {reader.plan.name: reader.endpoint for reader in readers if reader.endpoint}
            if known and process.channel and process.state == "running":
                process.channel.send("links", endpoints=known)

    def start_sources(self, but: Collection[str] = ()) -> None:
        """Let the sources begin, once all others can take what they bring; those of the cameras `but` have to wait."""
        for source in self.processes:
            if source.plan.sources and source.channel:
                source.channel.send("start", cameras=[camera for camera in source.plan.cameras if camera not in but])

    def stop_sources(self) -> None:
        """Let the sources end."""
        for source in self.processes:
            if source.plan.sources and source.channel and not source.all_ended:
                source.channel.send("stop")

    # ---- another plan

    def source_of(self, camera: str) -> Process | None:
        """The process that has the source of a camera."""
        sources = (p for p in self.processes if p.plan.sources and camera in p.plan.cameras and not p.life.leaving)
        return next(sources, None)

    def revise(self, plan: RunPlan) -> None:
        """Tell all that live what has changed for them. Those that are new to the plan start when it is settled."""
        self._revision += 1
        self._plan = plan
        units = {unit.name: unit for unit in plan.units}
        for process in self.processes:
            unit = units.get(process.plan.name)
            if unit is None or unit == process.plan or process.life.leaving:
                process.has_revision(self._revision)
            else:
                process.revise(unit, self._revision, partial(self._boot, process, process.incarnation))

    @property
    def all_revised(self) -> bool:
        """True when all that live go on by the newest plan."""
        return all(process.revision == self._revision for process in self.processes if process.pid)

    @property
    def changing(self) -> bool:
        """True while one closes that is needed no more, or one begins that is new, or has other settings."""
        return any(process.life.changing for process in self.processes)

    def settle(self) -> None:
        """Everyone has the plan: those that are not in it close, those that are new to it start."""
        units = {unit.name: unit for unit in self._plan.units}
        for process in list(self.processes):
            if process.plan.name not in units and not process.life.leaving:
                process.leave()
                if not process.channel:
                    self.drop(process)
            process.forget_all_but(process.plan.cameras)
        self.start_new()

    def start_new(self) -> None:
        """Start those that are new to the plan; one whose forerunner of the same name is still closing starts later."""
        for unit in self._plan.units:
            if unit.name not in self._processes:
                before = self._incarnations.get(unit.name, 0)
                process = self._processes[unit.name] = Process(unit, next(self._numbers), before)
                self.start_when_possible(process)

    def drop(self, process: Process) -> None:
        """One that is not needed any more is dead. Should its like come again, its name goes on counting its lives."""
        self.departed += process.counts()
        self._incarnations[process.plan.name] = process.incarnation
        del self._processes[process.plan.name]

    def replace(self, plan: RunPlan) -> list[str]:
        """Let those begin anew whose stages have other settings in this plan; their names."""
        self._plan = plan
        changed = []
        for unit in plan.units:
            process = self._processes.get(unit.name)
            if process and process.plan.stages != unit.stages:
                process.change_settings(unit)
                changed.append(unit.name)
        return changed

    # ---- listening

    def listen(self, wait_ms: int) -> Mapping[object, int]:
        """Wait so long for somebody to say something, or to die; the poller's answer."""
        ready = dict(self.poller.poll(wait_ms))
        for process in list(self.processes):
            if process.channel and process.channel.fileno() in ready:
                self._hear(process)
            if process.stderr_fd in ready:
                self._log_stderr(process)
            if process.pidfd in ready:
                self._bury(process)
        return ready

    def _hear(self, process: Process) -> None:
        """Hear a process out. What it says wrong costs it its life, and nobody else anything."""
        assert process.channel
        messages = [] if process.life.attempt.refused else process.channel.receive()
        try:
            for message in messages:
                self._heard(process, read_report(message))
            if process.channel.fault:
                raise WireError(process.channel.fault)
        except WireError as error:
            self._refuse(process, str(error))
        if process.life.attempt.refused or process.channel.closed:
            self._unwatch(process.channel.fileno())

    def _heard(self, process: Process, report: Report) -> None:
        if isinstance(report, Line):
            self._write(report)
        elif isinstance(report, Oversize):
            process.note_oversize()
            self._log.warning("report_too_large", unit=process.plan.name, op=report.of, bytes=report.bytes)
        else:
            self._listener.heard(process, report)

    def _log_stderr(self, process: Process) -> None:
        """Log the lines that libraries, or Python itself, have written to the standard error of a process."""
        descriptor = process.stderr_fd
        for text in process.read_stderr():
            if process.stderr_allowance.takes(time.monotonic()):
                self._log_left_out(process)
                self._log.warning("stderr", unit=process.plan.name, text=text)
        if process.stderr_fd < 0:
            self._unwatch(descriptor)

    def _log_left_out(self, process: Process) -> None:
        if lines := process.stderr_allowance.take_left_out():
            self._log.warning("stderr_left_out", unit=process.plan.name, lines=lines)

    def _write(self, line: Line) -> None:
        values = {key: value for key, value in line.values.items() if key not in ("event", "self")}
        level = line.level if line.level in _LEVELS else "info"
        getattr(self._log, level)(str(line.values.get("event", "?")), **values)

    def _refuse(self, process: Process, why: str) -> None:
        if process.refuse(why):
            self._log.error("report_refused", unit=process.plan.name, why=why)

    def _bury(self, process: Process) -> None:
        self._hear(process)
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
        """Close all: asked first, and killed when that takes longer than `limit_s` says, which may change meanwhile.

        One that is not open yet has nothing to bring to its end, and is not waited for so long. `turn` listens.
        """
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
