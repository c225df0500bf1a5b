"""Processes of a live run, killed or frozen one after the other, and what is seen of it from outside."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pipeline.testing import hit
from tools.farm import Farm
from tools.trials.delivery import Delivered, Ledger
from tools.trials.processes import SUPERVISOR, left_over, orphans, sample, sockets
from tools.trials.run import LiveRun, is_whole
from tools.trials.subject import FPS, farm_cameras, write_subject

LIMIT_S = 60.0
"""So long is waited for what should take a few seconds: how long it took is judged by whoever reads."""
_LOOK_S = 0.05
_BASE_S = 10.0


@dataclass(frozen=True, slots=True)
class Round:
    """One process harmed. `noticed_s`: until a frozen one was killed; `back_s`: from the death until its successor had
    brought something through; `faults`: what was wrong, each in a sentence."""

    unit: str
    back_s: float
    noticed_s: float = 0.0
    faults: tuple[str, ...] = ()


@dataclass(slots=True)
class Series:
    """The rounds of one kind of process. `rates`: camera -> its rate over its rate when nothing was harmed, without the
    rounds in which its own capture was."""

    kind: str
    rounds: list[Round] = field(default_factory=list)
    rates: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Count:
    """What a camera brought, `at_s`: `frames` by its capture, `through` those that were not dropped."""

    at_s: float
    frames: int
    through: int


def counts_of(status: Mapping[str, Any], at_s: float) -> dict[str, Count]:
    """Of all cameras."""
    return {
        name: Count(at_s, camera["frames"], camera["frames"] - camera["drops"])
        for name, camera in status["cameras"].items()
    }


def rates(marks: Sequence[Mapping[str, Count]], victims: Sequence[str], *, own: bool) -> dict[str, float]:
    """Camera -> frames a second between the marks, without the rounds whose victim is the camera's capture.

    `marks` has one more than there are `victims`. `own`: a dropped frame counts as missing; else only what is captured
    counts, for while a stage that all share is away, all their frames are dropped.
    """
    found = {}
    for camera in marks[0]:
        spans = [
            (before[camera], after[camera])
            for (before, after), victim in zip(pairwise(marks), victims, strict=True)
            if victim != f"capture.{camera}"
        ]
        seconds = sum(after.at_s - before.at_s for before, after in spans)
        frames = sum(after.through - before.through if own else after.frames - before.frames for before, after in spans)
        if seconds:
            found[camera] = frames / seconds
    return found


class HarmedRun:
    """A run under a farm of cameras, to be harmed."""

    def __init__(self, farm: Farm, run: LiveRun, *, hang_s: float) -> None:
        self.farm = farm
        self.run = run
        self._hang_s = hang_s
        self.ledger = Ledger(run.outbox)
        self._base: dict[str, float] = {}

    # ---- the rate of an unharmed run

    def measure_base(self, seconds: float = _BASE_S) -> dict[str, float]:
        """Look for so long what each camera brings through while nothing happens."""
        before = self._mark()
        time.sleep(seconds)
        self._base = rates([before, self._mark()], [""], own=True)
        return self._base

    def _mark(self) -> dict[str, Count]:
        return counts_of(self._status(), time.monotonic())

    def _status(self) -> dict[str, Any]:
        end = time.monotonic() + LIMIT_S
        while not (status := self.run.status()):
            if time.monotonic() > end:
                raise TimeoutError("the run does not answer")
            time.sleep(_LOOK_S)
        return status

    # ---- rounds

    def series(self, kind: str, rounds: int, harm: Callable[[str], Round], *, round_s: float = 0.0) -> Series:
        """So many rounds on processes of one kind, in turn, and what the cameras brought meanwhile.

        A round takes `round_s` or longer: counts come four times a second, and rates need some time.
        """
        units = sorted(unit for unit in self.run.units() if unit.partition(".")[0] == kind)
        victims = [units[number % len(units)] for number in range(rounds)]
        series, marks = Series(kind), [self._mark()]
        for victim in victims:
            until = time.monotonic() + round_s
            series.rounds.append(harm(victim))
            time.sleep(max(0.0, until - time.monotonic()))
            marks.append(self._mark())
        found = rates(marks, victims, own=kind == "capture")
        series.rates = {camera: rate / (self._base.get(camera) or FPS) for camera, rate in found.items()}
        return series

    def kill(self, unit: str) -> Round:
        """SIGKILL, and wait until its successor has brought something through."""
        before, files = self._status(), self._files()
        epoch = self.epoch_of(unit)
        hit(before["units"][unit]["pid"], signal.SIGKILL)
        back_s = self._until_back(unit, before)
        return Round(unit, back_s, faults=tuple(self._look(unit, epoch, files)))

    def freeze(self, unit: str) -> Round:
        """SIGSTOP: it has to be noticed, killed, and started again."""
        before, files = self._status(), self._files()
        epoch = self.epoch_of(unit)
        pid, told = before["units"][unit]["pid"], len(self.run.lines("process_hangs"))
        begun = time.monotonic()
        hit(pid, signal.SIGSTOP)
        self._until(lambda: self._pid(unit) != pid, f"the frozen {unit} is killed")
        noticed_s = time.monotonic() - begun
        back_s = self._until_back(unit, before)
        lines = self.run.lines("process_hangs")[told:]
        blamed = [line["unit"] for line in lines]
        wrong = [] if blamed == [unit] else [f"{unit} was frozen, and hanging was said of {blamed or 'nobody'}"]
        return Round(unit, back_s, noticed_s, (*wrong, *self._look(unit, epoch, files)))

    def freeze_supervisor(self) -> Round:
        """SIGSTOP for longer than `hang_s`, and SIGCONT: nobody is to blame, and the work goes on meanwhile."""
        before, hung, died = self._status(), self.run.lines("process_hangs"), self.run.lines("process_died")
        size = self.run.subject.events.stat().st_size
        hit(self.run.pid, signal.SIGSTOP)
        try:
            time.sleep(self._hang_s + 2)
            grown = self.run.subject.events.stat().st_size > size
        finally:
            hit(self.run.pid, signal.SIGCONT)
        begun = time.monotonic()
        self._until(lambda: bool(self.run.status()), "the thawed supervisor answers")
        back_s = time.monotonic() - begun
        time.sleep(self._hang_s + 1)  # it must not blame anybody afterwards either
        after = self._status()
        faults = [] if grown else ["no event was delivered while the supervisor was frozen"]
        if self.run.lines("process_hangs") != hung or self.run.lines("process_died") != died:
            faults.append("the thawed supervisor blamed others")
        if _pids(before) != _pids(after):
            faults.append("processes were started again")
        return Round(SUPERVISOR, back_s, faults=tuple(faults))

    def kill_supervisor(self) -> Round:
        """SIGKILL: all has to be gone in the time that is returned as `noticed_s`, and the next run begins at once."""
        name = self.run.subject.name
        self.ledger.read()
        killed = time.monotonic()
        self.run.kill()
        self._until(lambda: not left_over(name), "nothing is left over", may_last=True)
        noticed_s = time.monotonic() - killed
        left = left_over(name)
        self.ledger.read()
        begun = time.monotonic()
        self.run.start()
        self.run.until_live()
        return Round(SUPERVISOR, time.monotonic() - begun, noticed_s, tuple(f"left over: {what}" for what in left))

    # ---- what is looked at

    def epoch_of(self, unit: str) -> int:
        """The newest epoch of which an event tells, of the camera of a capture process; -1 for other processes."""
        kind, _, camera = unit.partition(".")
        return newest_epoch(self.run.subject.events, camera) if kind == "capture" else -1

    def _files(self) -> int:
        return sockets(self.run.subject.name)

    def _pid(self, unit: str) -> int:
        return int(self._status()["units"][unit]["pid"])

    def _until_back(self, unit: str, before: Mapping[str, Any]) -> float:
        begun = time.monotonic()
        self._until(lambda: is_back(unit, before, self._status()), f"{unit} is back")
        return time.monotonic() - begun

    def _look(self, unit: str, epoch: int, files: int) -> Iterator[str]:
        """What is wrong once a process is back."""
        name, camera = self.run.subject.name, unit.partition(".")[2]
        if epoch >= 0 and not self._holds(lambda: newest_epoch(self.run.subject.events, camera) > epoch):
            yield f"{unit}: the epoch did not grow"
        if not self._holds(lambda: is_whole(self._status())):
            yield f"{unit}: not all is live again"
        zombies = sample(self.run.pid, name).zombies
        if zombies and not self._holds(lambda: not zombies & sample(self.run.pid, name).zombies):
            yield f"{unit}: zombies {sorted(zombies)}"
        if not self._holds(lambda: self._files() == files):
            yield f"{unit}: {self._files()} socket files, {files} before"
        if not self._holds(lambda: not orphans(name)):
            yield f"{unit}: without an owner in /dev/shm: {orphans(name)}"
        self.ledger.read()

    def _holds(self, condition: Callable[[], bool]) -> bool:
        end = time.monotonic() + LIMIT_S / 4
        while not (held := condition()) and time.monotonic() < end:
            time.sleep(_LOOK_S)
        return held

    def _until(self, condition: Callable[[], bool], what: str, *, may_last: bool = False) -> None:
        end = time.monotonic() + LIMIT_S / (6 if may_last else 1)
        while not condition():
            if time.monotonic() > end:
                if may_last:
                    return
                raise TimeoutError(f"{what}: not so within {LIMIT_S:g} s; {self.run.problems()[-3:]}")
            time.sleep(_LOOK_S)

    def end(self) -> tuple[int, Delivered, list[str]]:
        """Stop the run in order: its exit status, what was delivered, what is left."""
        self.ledger.read()
        status = self.run.stop()
        return status, self.ledger.against(self.run.subject.events), left_over(self.run.subject.name)


def is_back(unit: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether a successor runs and has brought something through: frames of its camera, items of its stage."""
    kind, _, camera = unit.partition(".")
    was, is_now = before["units"][unit], now["units"][unit]
    if is_now["state"] != "running" or is_now["pid"] in (0, was["pid"]):
        return False
    if kind == "capture":
        seen = now["cameras"][camera]
        return bool(seen["state"] == "live" and seen["frames"] > before["cameras"][camera]["frames"])
    return bool(now["stages"][kind]["items"] > before["stages"][kind]["items"])


def newest_epoch(events: Path, camera: str) -> int:
    """The highest epoch of a camera in a file of events; 0 where there is none."""
    lines = events.read_bytes().splitlines() if events.exists() else []
    data = [json.loads(line)["data"] for line in lines if line.endswith(b"}")]
    return max((d["frame"]["epoch"] for d in data if d["camera"] == camera and "frame" in d), default=0)


def _pids(status: Mapping[str, Any]) -> dict[str, int]:
    return {name: unit["pid"] for name, unit in status["units"].items()}


def causes(run: LiveRun) -> Counter[str]:
    """How often its log says that a process of a kind died."""
    return Counter(line["unit"].partition(".")[0] for line in run.lines("process_died"))


@contextmanager
def harmed_run(cameras: int = 8, *, hang_s: float = 4.0) -> Iterator[HarmedRun]:
    """A run that is up, with so many live cameras."""
    with Farm(farm_cameras(cameras)) as farm, TemporaryDirectory(prefix="cgkills") as folder:
        subject = write_subject(Path(folder), f"kills{os.getpid()}", farm.cameras, hang_s=hang_s)
        with LiveRun(subject) as run:
            run.until_live()
            yield HarmedRun(farm, run, hang_s=hang_s)
