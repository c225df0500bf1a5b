"""Runs the graph of a trial for some seconds, and measures what each of its processes takes.

    opening ── all cameras there ── settled ══ measured ══ every second one paused ── settled ══ measured ══ stopped

The second measurement shows what does not grow with the frames: a process that is woken for many frames at once takes
less time for each of them. The run has a name and a state folder of its own, which are gone afterwards.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.pipeline.monitoring.outcome import Outcome
from camgraph.pipeline.monitoring.run_status import CameraStatus
from camgraph.pipeline.plan import EVERY_CAMERA, RunPlan
from camgraph.pipeline.stage import DROPPED
from camgraph.pipeline.supervision.supervisor import Supervisor
from camgraph.pipeline.system.cores import busy_s
from camgraph.pipeline.system.paths import STATE_DIR
from camgraph.pipeline.system.redaction import redact_urls
from camgraph.tools.display.running import run_aside
from camgraph.tools.measuring.processes import SUPERVISOR, Sample, sample

ARRIVING_S = 25.0
"""For the first frame of each camera, once the models are loaded: a camera is connected to more than once meanwhile."""
_SETTLING_S = 2.5
_LOOK_S = 0.25
_OVER = ("done", "failed", "stopped")


@dataclass(frozen=True, slots=True)
class Moment:
    """The run at one moment: sums that only grow. `cpu_s`: by process; `busy_s`: by stage."""

    at_s: float
    cpu_s: Mapping[str, float]
    busy_s: Mapping[str, float]
    frames: Mapping[str, int]
    drops: Mapping[str, int]
    machine_s: float


@dataclass(frozen=True, slots=True)
class Span:
    """From one look to a later one."""

    before: Moment
    after: Moment

    @property
    def seconds(self) -> float:
        return max(1e-9, self.after.at_s - self.before.at_s)

    @property
    def cpu_s(self) -> dict[str, float]:
        """Process -> its processor time; none for one that was started again meanwhile."""
        return _grown(self.before.cpu_s, self.after.cpu_s)

    @property
    def busy_s(self) -> dict[str, float]:
        return _grown(self.before.busy_s, self.after.busy_s)

    @property
    def frames(self) -> dict[str, float]:
        """Camera -> frames that it brought."""
        return _grown(self.before.frames, self.after.frames)

    @property
    def drops(self) -> float:
        return sum(_grown(self.before.drops, self.after.drops).values())

    @property
    def other_cores(self) -> float:
        """Cores that other programs of the machine took; 0 if the system does not say."""
        return max(0.0, self.after.machine_s - self.before.machine_s - sum(self.cpu_s.values())) / self.seconds


def _grown(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    return {name: max(0.0, n - before.get(name, 0)) for name, n in after.items()}


@dataclass(frozen=True, slots=True)
class Trial:
    """All that was measured: with all cameras, and with every second one, from the second on, paused.

    `absent`: camera -> why it brought nothing. `memory`: under load.
    """

    loaded: Span
    fewer: Span
    memory: Sample
    absent: Mapping[str, str] = field(default_factory=dict)


def trial_name() -> str:
    """The name of the run of a trial, which no other process has."""
    return f"plan-{os.getpid()}"


def try_out(plan: RunPlan, seconds: float, show: Callable[[str], None]) -> Trial:
    """Run the plan and measure it for so many seconds. Raises EnvironmentProblem if no camera brings anything.

    Raises KeyboardInterrupt if the user ends it.
    """
    watch = _Watch(plan, seconds, show)
    outcome, interrupted = run_aside(plan, watch)
    if interrupted:
        raise KeyboardInterrupt
    return watch.trial(outcome)


@contextmanager
def own_state() -> Iterator[None]:
    """What a run leaves to the next one goes into a folder that is removed; that of the user stays untouched."""
    before = os.environ.get(STATE_DIR)
    with tempfile.TemporaryDirectory(prefix="camgraph-plan-") as folder:
        os.environ[STATE_DIR] = folder
        try:
            yield
        finally:
            os.environ.pop(STATE_DIR)
            if before is not None:
                os.environ[STATE_DIR] = before


class _Watch:
    """Called by the supervisor again and again: takes one step after the other, and stops the run."""

    def __init__(self, plan: RunPlan, seconds: float, show: Callable[[str], None]) -> None:
        self._plan = plan
        self._seconds = seconds
        self._show_line = show
        self._steps: Iterator[float] | None = None
        self._due_s = 0.0
        self._measured: Trial | None = None
        self._died: list[str] = []
        self._absent: dict[str, str] = {}

    def __call__(self, supervisor: Supervisor) -> None:
        if supervisor.phase != "running":
            return
        is_opening = any(process.state in ("waiting", "starting") for process in supervisor.processes)
        if (is_opening or time.monotonic() < self._due_s) and not self._restarted(supervisor):
            return
        self._steps = self._steps or self._all_steps(supervisor)
        self._died = self._restarted(supervisor)
        pause_s = None if self._died else next(self._steps, None)
        if pause_s is None:
            supervisor.stop()
        else:
            self._due_s = time.monotonic() + pause_s

    def trial(self, outcome: Outcome) -> Trial:
        """Raises EnvironmentProblem if it was over before it was measured, or if a process died meanwhile."""
        if self._died:
            raise EnvironmentProblem(
                f"a process died during the trial ({', '.join(self._died)}): try `camgraph run`",
                error_id="trial-failed",
            )
        if self._measured:
            return self._measured
        why = [f"{name}: {reason}" for name, reason in self._absent.items()] or outcome.problems
        raise EnvironmentProblem(
            "nothing could be measured: " + ("; ".join(why) or "the trial ended too early"), error_id="trial-failed"
        )

    def _all_steps(self, supervisor: Supervisor) -> Iterator[float]:
        """Yields how many seconds to wait until the next step."""
        yield from self._arrival(supervisor)
        if len(self._absent) == len(self._plan.camera_settings):
            return
        yield min(_SETTLING_S, self._seconds)
        self._show_line(f"measuring for 2 x {self._seconds:g} s")
        begin = _moment_of(supervisor)
        yield self._seconds
        loaded = Span(begin, _moment_of(supervisor))
        memory = sample(os.getpid(), self._plan.graph)
        for camera in self._paused():
            supervisor.pause_camera(camera)
        yield min(_SETTLING_S, self._seconds)
        begin = _moment_of(supervisor)
        yield self._seconds
        self._measured = Trial(loaded, Span(begin, _moment_of(supervisor)), memory, self._absent)

    def _paused(self) -> list[str]:
        """Half of the cameras that are there; the only one."""
        there = [name for name in self._plan.camera_settings if name not in self._absent]
        return there[1::2] if len(there) > 1 else there

    def _restarted(self, supervisor: Supervisor) -> list[str]:
        """Processes that have died, but for those of a camera that is absent: its own may have failed."""
        present = {*self._plan.camera_settings, EVERY_CAMERA} - set(self._absent)
        processes = supervisor.processes
        return [p.plan.name for p in processes if p.restarts and not present.isdisjoint(p.plan.cameras)]

    def _arrival(self, supervisor: Supervisor) -> Iterator[float]:
        """Until each camera has brought a frame, or is given up."""
        count = len(self._plan.camera_settings)
        self._show_line(f"waiting for {count} camera{'' if count == 1 else 's'}")
        late_s = time.monotonic() + ARRIVING_S
        while True:
            cameras = supervisor.status().cameras
            self._absent = {name: _why(camera) for name, camera in cameras.items() if not camera.frames}
            if all(cameras[name].state in _OVER for name in self._absent) or time.monotonic() > late_s:
                return
            yield _LOOK_S


def _why(camera: CameraStatus) -> str:
    why = camera.error or camera.why or f"no frame within {ARRIVING_S:g} s ({camera.state})"
    return redact_urls(why)


def _moment_of(supervisor: Supervisor) -> Moment:
    cpu_s = {process.plan.name: process.heartbeat.cpu_s for process in supervisor.processes}
    counts = sum((process.counts() for process in supervisor.processes), Counter[tuple[str, str]]())
    busy: Counter[str] = Counter()
    for process in supervisor.processes:
        busy.update({name: stats.busy_ns for name, stats in process.heartbeat.stages.items()})
    return Moment(
        time.monotonic(),
        {**cpu_s, SUPERVISOR: time.process_time()},
        {name: ns / 1e9 for name, ns in busy.items()},
        {camera: n for (name, camera), n in counts.items() if name == "frames"},
        _drops(counts),
        busy_s(),
    )


def _drops(counts: Mapping[tuple[str, str], int]) -> dict[str, int]:
    drops: Counter[str] = Counter()
    for (name, camera), n in counts.items():
        drops[camera] += n if name.startswith(DROPPED) else 0
    return dict(drops)
