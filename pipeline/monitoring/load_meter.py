"""How busy stages and processes are, from their reports: lately, and over the whole run."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from camgraph.pipeline.monitoring.bottleneck import Load, More, ProcessLoad, StageLoad
from camgraph.pipeline.monitoring.reports import Heartbeat
from camgraph.pipeline.plan import ProcessPlan, RunPlan, StagePlan
from camgraph.pipeline.registry import find_stage
from camgraph.pipeline.stage import DROPPED, Stage
from camgraph.pipeline.system.cores import busy_s, usable_cores

KEPT_S = 10.0


class Recent:
    """Sums that only grow, by any keys. Bounded: moments older than ``KEPT_S`` are forgotten, but for one."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, Mapping[str, float]]] = deque()

    @property
    def noted_s(self) -> float:
        """When the sums were noted last; -inf before the first time."""
        return self._marks[-1][0] if self._marks else float("-inf")

    def note(self, now_s: float, sums: Mapping[str, float]) -> None:
        """So much it is now."""
        self._marks.append((now_s, sums))
        while len(self._marks) > 2 and now_s - self._marks[1][0] >= KEPT_S:
            self._marks.popleft()

    def over(self, window_s: float) -> tuple[float, dict[str, float]]:
        """Over how many seconds, about ``window_s``, each sum has grown by how much; (0, {}) before there are two.

        A sum that was not there at the beginning has not grown: it may have counted elsewhere before. A sum that has
        fallen has started again from 0.
        """
        if len(self._marks) < 2:
            return 0.0, {}
        now_s, sums = self._marks[-1]
        since_s, before = next(
            mark for mark in reversed(self._marks) if now_s - mark[0] >= window_s or mark is self._marks[0]
        )
        grown = {key: _grown(before.get(key, n), n) for key, n in sums.items()}
        return now_s - since_s, grown

    def rates(self, window_s: float) -> dict[str, float]:
        """By how much each sum has grown in a second of about the last ``window_s``."""
        seconds, grown = self.over(window_s)
        return {key: n / seconds for key, n in grown.items()} if seconds > 0 else {}


def _grown(before: float, now: float) -> float:
    return now - before if now >= before else now


_MACHINE = "machine"
_SINCE_LAST = 1e-9
"""The shortest window of `Recent`: from the note before to the last one."""


class Measured(Protocol):
    """A process as far as it is measured."""

    @property
    def plan(self) -> ProcessPlan: ...

    @property
    def heartbeat(self) -> Heartbeat: ...


def sums_of(
    processes: Sequence[Measured], counts: Counter[tuple[str, str]], cameras: Iterable[str]
) -> dict[str, float]:
    """The growing counts: frames and drops by camera, items and busy seconds by stage, CPU seconds by process."""
    sums: Counter[str] = Counter()
    here = set(cameras)
    sums.update({f"{kind} {camera}": 0 for camera in here for kind in ("camera", "drops")})
    for (name, camera), n in counts.items():
        if camera in here and (name == "frames" or name.startswith(DROPPED)):
            sums[f"{'camera' if name == 'frames' else 'drops'} {camera}"] += n
    totals: dict[str, float] = dict(sums)
    for process in processes:
        totals[f"cpu {process.plan.name}"] = process.heartbeat.cpu_s
        for stage, stats in process.heartbeat.stages.items():
            totals[f"stage {stage}"] = totals.get(f"stage {stage}", 0) + stats.items
            totals[f"busy {stage}"] = totals.get(f"busy {stage}", 0.0) + stats.busy_ns / 1e9
    totals[_MACHINE] = busy_s()
    return totals


class Restarting(Measured, Protocol):
    """A process whose restarts are counted as well."""

    @property
    def restarts(self) -> int: ...


@dataclass(slots=True)
class StageTotal:
    """The work of one stage, over all processes that it ever had."""

    items: int = 0
    busy_ns: int = 0
    restarts: int = 0


class StageTotals:
    """What each stage has done. It never falls: workers that go with their cameras leave their counts here."""

    def __init__(self) -> None:
        self._of: dict[str, StageTotal] = {}
        self._seen: dict[tuple[str, str], StageTotal] = {}

    def note(self, processes: Iterable[Restarting]) -> None:
        """Add what these have done since the last time. One that comes again under its name counts from 0."""
        seen = {}
        for process in processes:
            for stage, stats in process.heartbeat.stages.items():
                place = (process.plan.name, stage)
                seen[place] = now = StageTotal(stats.items, stats.busy_ns, process.restarts)
                before = self._seen.get(place, StageTotal())
                if now.items < before.items or now.busy_ns < before.busy_ns or now.restarts < before.restarts:
                    before = StageTotal()
                total = self._of.setdefault(stage, StageTotal())
                total.items += now.items - before.items
                total.busy_ns += now.busy_ns - before.busy_ns
                total.restarts += now.restarts - before.restarts
        self._seen = seen

    def of(self, stage: str) -> StageTotal:
        """All zeros if nobody has reported it."""
        return self._of.get(stage, StageTotal())

    @property
    def sums(self) -> dict[str, float]:
        """As `sums_of` names them."""
        items = {f"stage {stage}": total.items for stage, total in self._of.items()}
        return {**items, **{f"busy {stage}": total.busy_ns / 1e9 for stage, total in self._of.items()}}


class LoadMeter:
    """Adds up the measurements of `Recent` from the first frame of a run to its last, without opening and closing."""

    def __init__(self) -> None:
        self._grown: Counter[str] = Counter()
        self._seconds = 0.0
        self._since: Counter[str] = Counter()
        self._since_s = 0.0
        self._begun = False

    def note(self, recent: Recent) -> None:
        """To be called after each note of `recent`, while the run works."""
        seconds, grown = recent.over(_SINCE_LAST)
        brought = any(n for name, n in grown.items() if name.startswith("camera "))
        if self._begun:  # work between two frames counts when the second one is there
            self._since_s += seconds
            _add(self._since, grown)
        if self._begun and brought:
            self._seconds += self._since_s
            _add(self._grown, self._since)
            self._since_s, self._since = 0.0, Counter()
        self._begun |= brought

    def whole(self, plan: RunPlan) -> Load:
        """Over all of the time in which frames came."""
        return _load(plan, self._seconds, self._grown)

    def lately(self, plan: RunPlan, recent: Recent) -> Load:
        """Over the last seconds."""
        return _load(plan, *recent.over(KEPT_S))


def _add(sums: Counter[str], more: Mapping[str, float]) -> None:
    for name, n in more.items():
        sums[name] += n  # type: ignore[assignment]  # a Counter of seconds, too


def _load(plan: RunPlan, seconds: float, grown: Mapping[str, float]) -> Load:
    if seconds <= 0:
        return Load(0.0, (), (), usable_cores())
    processes = tuple(
        ProcessLoad(one.name, grown.get(f"cpu {one.name}", 0.0) / seconds, bool(one.sources)) for one in plan.processes
    )
    machine = grown.get(_MACHINE, 0.0) / seconds
    used = sum(process.cores for process in processes)
    cores = usable_cores()
    # In a container, or with an affinity, the machine's work is mostly that of others on cores that are not ours.
    others = max(0.0, machine - used) if cores == os.cpu_count() else 0.0
    return Load(
        seconds,
        tuple(_stage_loads(plan, seconds, grown)),
        processes,
        cores,
        others,
        _dropped(grown) if plan.live_cameras else None,
        alone=plan.in_process,
    )


def _stage_loads(plan: RunPlan, seconds: float, grown: Mapping[str, float]) -> Iterable[StageLoad]:
    stages: dict[str, tuple[StagePlan, list[ProcessPlan]]] = {}
    for process in plan.processes:
        for stage in process.stages:
            stages.setdefault(stage.name, (stage, []))[1].append(process)
    for name, (stage, processes) in stages.items():
        kind = find_stage(stage.use)
        if issubclass(kind, Stage):
            busy = grown.get(f"busy {name}", 0.0) / seconds
            yield StageLoad(name, busy, stage.threads, len(processes), _more(kind, processes, plan), kind.lighter)


def _more(kind: type[Stage[Any]], processes: Sequence[ProcessPlan], plan: RunPlan) -> More:
    """Which setting gives a stage more of the processor: workers share out cameras, one at least to each."""
    if kind.thread_safe:
        return "threads"
    takes_frames = any(set(process.cameras) <= plan.camera_settings.keys() for process in processes)
    return "workers" if takes_frames and len(processes) < len(plan.camera_settings) else ""


def _dropped(grown: Mapping[str, float]) -> float:
    """Share of the frames that came."""
    frames, drops = (sum(n for name, n in grown.items() if name.startswith(kind)) for kind in ("camera ", "drops "))
    return drops / frames if frames else 0.0
