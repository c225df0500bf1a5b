"""Which stage limits a run, and which setting would help: arithmetic on measurements of the run. Pure.

    busy = time in calls of `process`, in all threads and processes of a stage, over the time that passed
    share = busy / (threads x processes)

A stage at about 100 % of its share limits the run. If cores are free, more threads or workers use them; if not, only
less work helps. If no stage is at its limit, but the cores are, all of them limit the run together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

SHORTEST_S = 2.0
"""A shorter measurement proves nothing."""
_FEW_DROPS = 0.02
"""Below this share of dropped frames, nothing limits live cameras."""
_AT_LIMIT = 0.85
_FULL = 0.9
_SPARE = 0.5
"""In cores: a smaller spare part is no room for another thread."""

More = Literal["threads", "workers", ""]


@dataclass(frozen=True, slots=True)
class StageLoad:
    """The load of one stage. `busy`: 1.0 is one thread's whole time; `threads`: in each of its `processes`.

    `more`: the setting that gives it more cores, "" if none does. `lighter`: ways to make its work less, for people.
    """

    name: str
    busy: float
    threads: int = 1
    processes: int = 1
    more: More = ""
    lighter: str = "`max_fps`"

    @property
    def at_once(self) -> int:
        """How many calls can run at once."""
        return max(1, self.threads * self.processes)

    @property
    def share(self) -> float:
        """1.0: it has no time left."""
        return self.busy / self.at_once


@dataclass(frozen=True, slots=True)
class ProcessLoad:
    """The processor time of one process, in cores; `reads`: it has a source, and reads its cameras in turn."""

    name: str
    cores: float
    reads: bool = False


@dataclass(frozen=True, slots=True)
class Load:
    """The measurements of some seconds.

    `cores`: the number that the run may use; `others`: how many of them other programs took. `dropped`: share of the
    frames of live cameras, 0 to 1; None if the cameras are files, which never drop. `alone`: all in one process.
    """

    seconds: float
    stages: Sequence[StageLoad]
    processes: Sequence[ProcessLoad]
    cores: int
    others: float = 0.0
    dropped: float | None = None
    alone: bool = False

    @property
    def used(self) -> float:
        """Cores that the run uses."""
        return sum(process.cores for process in self.processes)

    @property
    def spare(self) -> float:
        """Idle cores."""
        return max(0.0, self.cores - self.used - self.others)


@dataclass(frozen=True, slots=True)
class Limit:
    """`stage`: the stage that limits the run, "" if the processor as a whole does. `setting`: the setting to change,
    "" if none helps. `text`: both, for people.
    """

    stage: str
    setting: str
    text: str


def limit_of(load: Load) -> Limit | None:
    """Return the limit of the run; None if it keeps up, or if it is not known yet."""
    if load.seconds < SHORTEST_S or (load.dropped is not None and load.dropped < _FEW_DROPS):
        return None
    busiest = max(load.stages, key=lambda stage: stage.share, default=None)
    if load.alone:
        return _limit_of_one_process(load, busiest)
    if busiest and busiest.share >= _AT_LIMIT:
        return _limit_of_stage(load, busiest)
    if busiest and load.used + load.others >= _FULL * load.cores:
        return _limit_of_processor(load, busiest)
    reading = max((p for p in load.processes if p.reads), key=lambda p: p.cores, default=None)
    if reading and reading.cores >= _AT_LIMIT:
        return Limit(reading.name, "", f"{reading.name} uses a whole core: one camera cannot be read by several")
    return None


def _limit_of_stage(load: Load, stage: StageLoad) -> Limit:
    message = f"{stage.name} is busy {min(1.0, stage.share):.0%} of the time on {stage.at_once} of {load.cores} cores"
    if load.spare >= _SPARE and stage.more:
        setting = _more(load, stage)
        return Limit(stage.name, setting, f"{message}: `{setting}` would help")
    if load.spare >= _SPARE:
        return Limit(stage.name, "", f"{message}, and cannot use more: {stage.lighter} would help")
    return Limit(stage.name, "", f"{message}: {_full(load)}: {_less(load, stage)} would help")


def _more(load: Load, stage: StageLoad) -> str:
    """Name the setting for as many calls more as there are free cores, at least one."""
    more = max(1, int(load.spare))
    if stage.more == "threads":
        return f"threads: {stage.threads + max(1, more // stage.processes)}"
    return f"workers: {stage.processes + more}"


def _limit_of_processor(load: Load, busiest: StageLoad) -> Limit:
    largest = sorted(load.processes, key=lambda process: -process.cores)[:3]
    shares = ", ".join(f"{process.name} {process.cores:.1f}" for process in largest if process.cores >= 0.05)
    message = f" (cores: {shares})" if shares else ""
    return Limit("", "", f"{_full(load)}{message}: {_less(load, busiest)} would help")


def _limit_of_one_process(load: Load, busiest: StageLoad | None) -> Limit | None:
    busy = sum(stage.busy for stage in load.stages)
    if busiest is None or busy < _AT_LIMIT:
        return None
    message = f"the stages take turns in one process, {busiest.name} {busiest.busy:.0%} of the time"
    if load.spare >= _SPARE:
        return Limit(busiest.name, "processes: separate", f"{message}: `processes: separate` would use the other cores")
    return Limit(busiest.name, "", f"{message}: {_full(load)}: {_less(load, busiest)} would help")


def _less(load: Load, stage: StageLoad) -> str:
    """Name ways to make the work less; if other programs have most of the cores, ending those first."""
    return f"ending those, or {stage.lighter}" if load.others >= load.cores / 2 else stage.lighter


def _full(load: Load) -> str:
    others = f", other programs take {load.others:.1f} of {load.cores} cores" if load.others >= _SPARE else ""
    return f"the processor is full{others}"
