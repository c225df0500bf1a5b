"""Kills or freezes processes of a live run, one after the other, and watches it from outside."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from camgraph.pipeline.testing import hit
from camgraph.tools.lab.proofs.trials.delivery import Delivered, Ledger
from camgraph.tools.lab.proofs.trials.frames import FrameLog, longest_gap_s
from camgraph.tools.lab.proofs.trials.rounds import Base, Count, Round, Series, is_back, lost, over, pids, rates
from camgraph.tools.lab.proofs.trials.run import LiveRun, is_whole
from camgraph.tools.lab.proofs.trials.subject import simulated_cameras, write_subject
from camgraph.tools.measuring.load import Load, load_of
from camgraph.tools.measuring.processes import SUPERVISOR, left_over, orphans, sample, sockets
from camgraph.tools.measuring.processor_time import CpuTime, cpu_time
from camgraph.tools.scenes.simulator import RtspSimulator

LIMIT_S = 60.0
"""The longest wait for a return that should take a few seconds: the report judges how long it took."""
LEFT_S = LIMIT_S / 6
"""The longest wait until nothing is left of a dead supervisor's run."""
_LOOK_S = 0.05
_COUNTS_S = 1.0


class HarmedRun:
    """A run under a simulator of cameras, to be harmed."""

    def __init__(self, simulator: RtspSimulator, run: LiveRun, *, hang_s: float) -> None:
        self.simulator = simulator
        self.run = run
        self.ledger = Ledger(run.outbox)
        self.cpu: list[CpuTime] = [cpu_time()]
        """The load of the processors, as long as all of the run's processes could be seen."""
        self.base = Base({}, {}, Load(0, 0, 1))
        self._hang_s = hang_s
        self._log = FrameLog(run.subject.events, time.time() - time.monotonic())

    # ---- the rate of an unharmed run

    def measure_base(self, seconds: float) -> Base:
        """Measure for so long the frames of each camera while nothing happens."""
        marks, begun = [self._mark()], self.cpu[-1]
        self._rest(seconds)
        marks.append(self._mark())
        self.base = Base(rates(marks, [""], "processed"), rates(marks, [""], "captured"), load_of(begun, self.cpu[-1]))
        return self.base

    def _mark(self) -> dict[str, Count]:
        """The frames of each camera so far, taken when its count has just changed: counts come four times a second."""
        self.cpu.append(cpu_time())
        before, late, marks = self._status()["cameras"], time.monotonic() + _COUNTS_S, dict[str, Count]()
        while len(marks) < len(before):
            self._pause()
            cameras, now_s = self._status()["cameras"], time.monotonic()
            for name in cameras.keys() - marks.keys():
                if cameras[name]["frames"] != before[name]["frames"] or now_s > late:
                    marks[name] = Count(now_s, cameras[name]["frames"], len(self._log.frames[name]))
        return marks

    def _status(self) -> dict[str, Any]:
        end = time.monotonic() + LIMIT_S
        while not (status := self.run.status()):
            if time.monotonic() > end:
                raise TimeoutError("the run does not answer")
            self._pause()
        return status

    def _read(self) -> None:
        self._log.read(time.monotonic())

    def _pause(self) -> None:
        """Wait between two looks, and note the frames that came out meanwhile with their times."""
        self._read()
        time.sleep(_LOOK_S)

    def _rest(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._pause()

    # ---- rounds

    def series(self, kind: str, rounds: int, harm: Callable[[str], Round], *, round_s: float) -> Series:
        """Harm processes of one kind in turn for this many rounds, and count the cameras' frames meanwhile.

        A round takes `round_s` or longer, because rates need some time.
        """
        processes = sorted(process for process in self.run.processes() if process.partition(".")[0] == kind)
        victims = [processes[number % len(processes)] for number in range(rounds)]
        series, marks = Series(kind), [self._mark()]
        begun = self.cpu[-1]
        for victim in victims:
            until = time.monotonic() + round_s
            series.rounds.append(harm(victim))
            self._rest(until - time.monotonic())
            marks.append(self._mark())
        series.processed = over(rates(marks, victims, "processed"), self.base.processed)
        series.captured = over(rates(marks, victims, "captured"), self.base.captured)
        series.load = load_of(begun, self.cpu[-1])
        return series

    def kill(self, process: str) -> Round:
        """SIGKILL, and wait until its successor has brought something through."""
        before, files = self._status(), self._files()
        epoch = self.epoch_of(process)
        struck_s = time.monotonic()
        hit(before["processes"][process]["pid"], signal.SIGKILL)
        back_s = self._until_back(process, before)
        return self._looked_at(Round(process, back_s), before, epoch, files, struck_s)

    def freeze(self, process: str) -> Round:
        """SIGSTOP: it has to be noticed, killed, and started again."""
        before, files = self._status(), self._files()
        epoch = self.epoch_of(process)
        pid, hangs_before = before["processes"][process]["pid"], len(self.run.lines("process_hangs"))
        struck_s = time.monotonic()
        hit(pid, signal.SIGSTOP)
        self._until(lambda: self._pid(process) != pid, f"the frozen {process} is killed")
        noticed_s = time.monotonic() - struck_s
        back_s = self._until_back(process, before)
        lines = self.run.lines("process_hangs")[hangs_before:]
        blamed = [line["process"] for line in lines]
        wrong = () if blamed == [process] else (f"{process} was frozen, and hanging was said of {blamed or 'nobody'}",)
        return self._looked_at(Round(process, back_s, noticed_s, faults=wrong), before, epoch, files, struck_s)

    def freeze_supervisor(self) -> Round:
        """SIGSTOP for longer than `hang_s`, then SIGCONT: it must kill nobody, and work goes on meanwhile."""
        before, hung, died = self._status(), self.run.lines("process_hangs"), self.run.lines("process_died")
        size = self.run.subject.events.stat().st_size
        hit(self.run.pid, signal.SIGSTOP)
        try:
            self._rest(self._hang_s + 2)
            grown = self.run.subject.events.stat().st_size > size
        finally:
            hit(self.run.pid, signal.SIGCONT)
        begun = time.monotonic()
        self._until(lambda: bool(self.run.status()), "the thawed supervisor answers")
        back_s = time.monotonic() - begun
        self._rest(self._hang_s + 1)  # it must kill nobody afterwards either
        after = self._status()
        faults = [] if grown else ["no event was delivered while the supervisor was frozen"]
        if self.run.lines("process_hangs") != hung or self.run.lines("process_died") != died:
            faults.append("the thawed supervisor blamed others")
        if pids(before) != pids(after):
            faults.append("processes were started again")
        return Round(SUPERVISOR, back_s, faults=tuple(faults))

    def kill_supervisor(self) -> Round:
        """SIGKILL the supervisor, wait until all is gone (`noticed_s`), and begin the next run at once."""
        name = self.run.subject.name
        self.ledger.read()
        killed = time.monotonic()
        hit = self.run.kill()
        self._until(lambda: not left_over(name), "nothing is left over", may_last=True)
        noticed_s = time.monotonic() - killed
        left = left_over(name)
        self.ledger.read()
        begun = time.monotonic()
        self.run.start()
        self.run.until_live()
        faults = [] if hit else ["it had ended before it was killed"]
        faults += [f"left over: {what}" for what in left]
        return Round(SUPERVISOR, time.monotonic() - begun, noticed_s, faults=tuple(faults))

    # ---- observations

    def epoch_of(self, process: str) -> int:
        """The newest epoch of a frame, of the camera of a capture process; -2 for other processes."""
        kind, _, camera = process.partition(".")
        self._read()
        return self._log.newest_epoch(camera) if kind == "capture" else -2

    def _files(self) -> int:
        return sockets(self.run.subject.name)

    def _pid(self, process: str) -> int:
        return int(self._status()["processes"][process]["pid"])

    def _until_back(self, process: str, before: Mapping[str, Any]) -> float:
        begun = time.monotonic()
        self._until(lambda: is_back(process, before, self._status()), f"{process} is back")
        return time.monotonic() - begun

    def _looked_at(self, one: Round, before: Mapping[str, Any], epoch: int, files: int, struck_s: float) -> Round:
        """With all that is wrong once a process is back, and how long frames were missing."""
        faults = tuple(self._look(one.process, before, epoch, files))
        now_s = time.monotonic()
        others = [camera for camera in before["cameras"] if one.process != f"capture.{camera}"]
        gaps = [longest_gap_s(self._log.frames[camera], struck_s, now_s) for camera in others]
        return replace(one, silent_s=max(gaps, default=0.0), faults=(*one.faults, *faults))

    def _look(self, process: str, before: Mapping[str, Any], epoch: int, files: int) -> Iterator[str]:
        name, camera = self.run.subject.name, process.partition(".")[2]
        if epoch >= -1 and not self._holds(lambda: self._log.newest_epoch(camera) > epoch):
            yield f"{process}: the epoch did not grow"
        if not self._holds(lambda: is_whole(self._status())):
            yield f"{process}: not all is live again"
        for other in lost(process, before, self._status()):
            yield f"{process}: {other} was lost as well"
        zombies = sample(self.run.pid, name).zombies
        if zombies and not self._holds(lambda: not zombies & sample(self.run.pid, name).zombies):
            yield f"{process}: zombies {sorted(zombies)}"
        if not self._holds(lambda: self._files() == files):
            yield f"{process}: {self._files()} socket files, {files} before"
        if not self._holds(lambda: not orphans(name)):
            yield f"{process}: without an owner in /dev/shm: {orphans(name)}"
        self.ledger.read()

    def _holds(self, condition: Callable[[], bool]) -> bool:
        end = time.monotonic() + LIMIT_S / 4
        while not (held := condition()) and time.monotonic() < end:
            self._pause()
        return held

    def _until(self, condition: Callable[[], bool], what: str, *, may_last: bool = False) -> None:
        end = time.monotonic() + (LEFT_S if may_last else LIMIT_S)
        while not condition():
            if time.monotonic() > end:
                if may_last:
                    return
                raise TimeoutError(f"{what}: not so within {LIMIT_S:g} s; {self.run.problems()[-3:]}")
            self._pause()

    def end(self) -> tuple[int, Delivered, list[str]]:
        """Stop the run in order: its exit status, its delivery, its remains."""
        self.ledger.read()
        status = self.run.stop()
        return status, self.ledger.against(self.run.subject.events), left_over(self.run.subject.name)


def causes(run: LiveRun) -> Counter[str]:
    """How often its log says that a process of a kind died."""
    return Counter(line["process"].partition(".")[0] for line in run.lines("process_died"))


@contextmanager
def harmed_run(cameras: int = 8, *, hang_s: float = 4.0) -> Iterator[HarmedRun]:
    """A run that is up, with so many live cameras; each frame that comes out of all stages is an event."""
    with RtspSimulator(simulated_cameras(cameras)) as simulator, TemporaryDirectory(prefix="cgkills") as folder:
        subject = write_subject(Path(folder), f"kills{os.getpid()}", simulator.cameras, hang_s=hang_s, every_frame=True)
        with LiveRun(subject) as run:
            run.until_live()
            yield HarmedRun(simulator, run, hang_s=hang_s)
