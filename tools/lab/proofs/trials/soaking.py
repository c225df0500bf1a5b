"""A soak: a live run that is harmed every few seconds, and sampled as often, for as long as you want."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from camgraph.pipeline.testing import hit
from camgraph.tools.lab.proofs.trials.delivery import Delivered, Ledger, by_type
from camgraph.tools.lab.proofs.trials.run import LiveRun
from camgraph.tools.lab.proofs.trials.schedule import Harm, Kill, harms, kills
from camgraph.tools.lab.proofs.trials.subject import Subject, simulated_cameras, write_subject
from camgraph.tools.measuring.processes import Sample, left_over, sample
from camgraph.tools.measuring.processor_time import CpuTime, cpu_time
from camgraph.tools.scenes.simulator import RtspSimulator

_TURN_S = 0.1
_LINE_S = 60.0
_RECOVERY_S = 90.0
"""Time to recover after the last fault: a camera that refused its password is tried again each minute."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan. A fault each `fault_s`, a killed process each `kill_s` (inf: none), a look each `sample_s`."""

    seconds: float
    cameras: int = 8
    seed: int = 1
    fault_s: float = 4.0
    kill_s: float = 60.0
    sample_s: float = 5.0

    @property
    def is_disturbed(self) -> bool:
        """Whether anything is done to the run."""
        return min(self.fault_s, self.kill_s) < self.seconds


@dataclass(slots=True)
class Soaked:
    """The results of a soak. `cpu`: processor time up to each sample; `status`: the last answer of the run,
    `exit_status` and `problems` its end. `back_s`: from the end of all faults until all cameras were live, None where
    `broke` says why they were not. `states`: how often its log says that a camera is in one; `deaths`: how often a
    process died of what."""

    plan: Plan
    samples: list[Sample] = field(default_factory=list)
    cpu: list[CpuTime] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    killed: Counter[str] = field(default_factory=Counter)
    status: Mapping[str, Any] = field(default_factory=dict)
    back_s: float | None = None
    broke: str = ""
    exit_status: int = -1
    problems: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    delivered: Delivered = field(default_factory=Delivered)
    events: Mapping[str, int] = field(default_factory=dict)
    states: Mapping[str, int] = field(default_factory=dict)
    deaths: Mapping[str, int] = field(default_factory=dict)


def soak(plan: Plan, report: Callable[[str], None] = lambda _: None) -> Soaked:
    """Do it. `report` gets a line a minute. Raises TimeoutError where the run does not come up."""
    cameras = simulated_cameras(plan.cameras)
    with RtspSimulator(cameras) as simulator, tempfile.TemporaryDirectory(prefix="cgsoak") as folder:
        subject = write_subject(Path(folder), f"soak{os.getpid()}", simulator.cameras)
        with LiveRun(subject) as run:
            run.until_live()
            return _Soak(plan, simulator, subject, run, report).run()


class _Soak:
    def __init__(
        self, plan: Plan, simulator: RtspSimulator, subject: Subject, run: LiveRun, report: Callable[[str], None]
    ) -> None:
        self._report = report
        self._plan, self._simulator, self._subject, self._run = plan, simulator, subject, run
        self._ledger = Ledger(run.outbox)
        self._soaked = Soaked(plan)
        names = [camera.name for camera in simulator.cameras]
        self._harms = deque(harms(names, plan.seed, every_s=plan.fault_s, until_s=plan.seconds))
        self._kills = deque(kills(plan.seed, every_s=plan.kill_s, until_s=plan.seconds))
        self._to_heal: list[Harm] = []
        self._next_sample = self._next_line = 0.0

    def run(self) -> Soaked:
        """From the first fault to the last line of the run."""
        begun = time.monotonic()
        while (at_s := time.monotonic() - begun) < self._plan.seconds and not self._run.has_ended:
            self._heal(at_s)
            self._harm(at_s)
            self._kill(at_s)
            self._look(at_s)
            self._report_progress(at_s)
            time.sleep(_TURN_S)
        return self._end()

    def _harm(self, at_s: float) -> None:
        while self._harms and self._harms[0].at_s <= at_s:
            harm = self._harms.popleft()
            for fault in harm.faults:
                self._simulator.camera(harm.camera).apply(fault)
            self._to_heal.append(harm)
            self._soaked.faults[harm.name] += 1

    def _heal(self, at_s: float) -> None:
        for harm in [harm for harm in self._to_heal if harm.at_s + harm.for_s <= at_s]:
            self._simulator.camera(harm.camera).heal()
            self._to_heal.remove(harm)

    def _kill(self, at_s: float) -> None:
        while self._kills and self._kills[0].at_s <= at_s:
            self._strike(self._kills.popleft())

    def _strike(self, kill: Kill) -> None:
        processes = self._run.processes()
        victim = kill.victim([name for name, process in processes.items() if process["pid"]])
        if victim:
            with suppress(ProcessLookupError):
                hit(processes[victim]["pid"], signal.SIGKILL)
                self._soaked.killed[kill.kind] += 1

    def _look(self, at_s: float) -> None:
        if at_s < self._next_sample:
            return
        self._next_sample = at_s + self._plan.sample_s
        self._soaked.samples.append(sample(self._run.pid, self._subject.name))
        self._soaked.cpu.append(cpu_time())
        self._soaked.status = self._run.status() or self._soaked.status
        self._ledger.read()

    def _report_progress(self, at_s: float) -> None:
        if at_s < self._next_line:
            return
        self._next_line = at_s + _LINE_S
        live = sum(camera["state"] == "live" for camera in self._soaked.status.get("cameras", {}).values())
        self._report(
            f"{at_s / 60:.0f} of {self._plan.seconds / 60:g} min: {live} of {self._plan.cameras} cameras live, "
            f"{self._soaked.faults.total()} faults, {self._soaked.killed.total()} kills"
        )

    def _end(self) -> Soaked:
        soaked = self._soaked
        for camera in self._simulator.cameras:
            camera.heal()
        try:
            soaked.back_s = self._run.until_live(_RECOVERY_S)
        except TimeoutError as error:
            soaked.broke = str(error)
        soaked.status = self._run.status() or soaked.status
        self._ledger.read()
        soaked.exit_status = self._run.wait(0) if self._run.has_ended else self._run.stop()
        soaked.problems = self._run.problems()
        soaked.states = Counter(line["state"] for line in self._run.lines("camera_state"))
        soaked.deaths = Counter(
            f"{line['process'].partition('.')[0]}, {line['reason']}" for line in self._run.lines("process_died")
        )
        soaked.left = left_over(self._subject.name)
        soaked.delivered = self._ledger.against(self._subject.events)
        soaked.events = by_type(self._subject.events.read_bytes().splitlines())
        return soaked
