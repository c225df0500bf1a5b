"""The results of the runs: ratios within a round, medians over rounds, marks. Pure."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from camgraph.tools.lab.benchmarks.peers.contestants import BARE, LIGHT, OURS
from camgraph.tools.lab.benchmarks.peers.gpu import busy_between
from camgraph.tools.lab.benchmarks.peers.job import Answer, Job
from camgraph.tools.lab.benchmarks.peers.meter import Watched
from camgraph.tools.lab.report_page import percentile

ULTRALYTICS = "Ultralytics, .streams"


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a contestant. `cpu_s`: of its whole tree while it worked; `asked`: frames that it should have done;
    `people`: the fewest and the most of a camera (all play the same clip); `gpu`: the share of the time in which it was
    at work. `cpu_s`, `peak_mb` and `gpu` are None if nobody looked: a run may be over too soon.
    """

    name: str
    cameras: int
    round: int
    asked: int
    frames: int
    people: tuple[int, int]
    seconds: float
    cpu_s: float | None
    peak_mb: float | None
    p50_ms: float | None
    p95_ms: float | None
    gpu: float | None = None

    @property
    def fps(self) -> float:
        """Over all cameras."""
        return self.frames / self.seconds


def run_of(name: str, number: int, job: Job, answer: Answer, watched: Watched) -> Run:
    """From its own report and from observation."""
    ages = answer.latencies_ms
    begin_s, end_s = answer.begun_ns / 1e9, answer.ended_ns / 1e9
    return Run(
        name=name,
        cameras=job.cameras,
        round=number,
        asked=job.all_frames,
        frames=sum(answer.frames),
        people=(min(answer.people), max(answer.people)),
        seconds=answer.seconds,
        cpu_s=watched.cpu_between(begin_s, end_s),
        peak_mb=watched.peak_mb(begin_s),
        p50_ms=percentile(ages, 0.5) if ages else None,
        p95_ms=percentile(ages, 0.95) if ages else None,
        gpu=busy_between(watched.gpu, begin_s, end_s),
    )


@dataclass(frozen=True, slots=True)
class Row:
    """A contestant with so many cameras: medians over its rounds. `ratio`: to the bare loop of the same round (None
    where there was none), `lowest` and `highest` of it; `busy`: processor time over what all cores could give; `lost`:
    frames without a result, of all rounds; `gpu`: the share of the time in which the GPU was at work.
    """

    name: str
    cameras: int
    ratio: float | None
    lowest: float | None
    highest: float | None
    fps: float
    busy: float | None
    cpu_ms: float | None
    peak_mb: float | None
    p50_ms: float | None
    p95_ms: float | None
    people: tuple[int, int]
    lost: int
    gpu: float | None = None


def rows_of(runs: Sequence[Run], cores: int) -> list[Row]:
    """By number of cameras, then in the order in which they ran."""
    limits = {(run.cameras, run.round): run.fps for run in runs if run.name == BARE}
    groups: dict[tuple[int, str], list[Run]] = defaultdict(list)
    for run in runs:
        groups[run.cameras, run.name].append(run)
    return [_row(group, limits, cores) for _, group in sorted(groups.items(), key=lambda item: item[0][0])]


def _row(runs: Sequence[Run], limits: dict[tuple[int, int], float], cores: int) -> Row:
    ratios = [run.fps / limits[run.cameras, run.round] for run in runs if (run.cameras, run.round) in limits]
    return Row(
        name=runs[0].name,
        cameras=runs[0].cameras,
        ratio=_median(ratios),
        lowest=min(ratios, default=None),
        highest=max(ratios, default=None),
        fps=statistics.median(run.fps for run in runs),
        busy=_median(run.cpu_s / run.seconds / cores for run in runs if run.cpu_s is not None),
        cpu_ms=_median(1000 * run.cpu_s / run.frames for run in runs if run.cpu_s is not None),
        peak_mb=_median(run.peak_mb for run in runs),
        p50_ms=_median(run.p50_ms for run in runs),
        p95_ms=_median(run.p95_ms for run in runs),
        people=(min(run.people[0] for run in runs), max(run.people[1] for run in runs)),
        lost=sum(run.asked - run.frames for run in runs),
        gpu=_median(run.gpu for run in runs),
    )


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


@dataclass(frozen=True, slots=True)
class Mark:
    """The goal, and the result. `got`: None if a contestant that is needed did not take part."""

    what: str
    sign: Literal[">=", "<="]
    wanted: float
    got: float | None

    @property
    def verdict(self) -> str:
        """For people."""
        if self.got is None:
            return "not measured"
        held = self.got >= self.wanted if self.sign == ">=" else self.got <= self.wanted
        return "held" if held else "not held"


def marks_of(runs: Sequence[Run], rows: Sequence[Row], cameras: int) -> list[Mark]:
    """The marks that these figures can answer, with so many cameras; ours is the better placing of the two."""
    of = {row.name: row for row in rows if row.cameras == cameras}
    ours = max((of[name] for name in OURS if name in of), key=lambda row: row.fps, default=None)
    others = {name for name in of if name not in (BARE, LIGHT, *OURS)}
    better = _against_best(runs, cameras, ours.name, others) if ours else None
    light = _against_best(runs, cameras, LIGHT, others) if LIGHT in of else None
    theirs = of.get(ULTRALYTICS)
    memory = ours.peak_mb / theirs.peak_mb if ours and theirs and ours.peak_mb and theirs.peak_mb else None
    return [
        Mark("throughput / bare loop", ">=", 0.93, ours.ratio if ours else None),
        Mark("throughput / (cores / processor time of all processes)", ">=", 0.97, ours.busy if ours else None),
        Mark("ours / best peer, same float model", ">=", 1.2, better),
        Mark("ours / best peer, with the bf16 model", ">=", 2.0, light),
        Mark("total memory, ours / Ultralytics", "<=", 0.5, memory),
    ]


def _against_best(runs: Sequence[Run], cameras: int, name: str, others: Iterable[str]) -> float | None:
    """The median over rounds of its rate over that of the fastest of the others in the same round."""
    here = {(run.round, run.name): run.fps for run in runs if run.cameras == cameras}
    mine = {number: fps for (number, who), fps in here.items() if who == name}
    best = {number: [here[number, other] for other in others if (number, other) in here] for number in mine}
    return _median(mine[number] / max(fps) for number, fps in best.items() if fps)


def disagreeing(rows: Sequence[Row]) -> list[str]:
    """Sentences on peers that found other numbers of people than camgraph, or left frames out, by number of cameras."""
    ours = {row.cameras: row.people for row in rows if row.name in OURS}
    lines = []
    for row in rows:
        if row.lost:
            lines.append(f"{row.name}, cameras {row.cameras}: {row.lost} frames came to no result.")
        want = ours.get(row.cameras)
        if row.name != BARE and want and row.people != want:
            lines.append(f"{row.name}, cameras {row.cameras}: people {_range(row.people)} a clip, ours {_range(want)}.")
    return lines


def _range(people: tuple[int, int]) -> str:
    return f"{people[0]}" if people[0] == people[1] else f"{people[0]} to {people[1]}"
