"""The tracker beside others over hours of people who come and go.

    python -m camgraph.tools.lab.benchmarks.track_accuracy.long

The scenes (`long_scenes.py`) last minutes. All trackers follow the same people, once for each rate. Ours has its
defaults; the others have the settings that `long_settings.py` chose on other seeds.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import click
import numpy as np

from camgraph.tools.lab.benchmarks.peers.environments import NotToBeHad, python_of
from camgraph.tools.lab.benchmarks.track_accuracy import peers, sequences
from camgraph.tools.lab.benchmarks.track_accuracy.__main__ import OURS, followed, usual_options
from camgraph.tools.lab.benchmarks.track_accuracy.long_scenes import LONG_SCENES, long_scene, visits
from camgraph.tools.lab.benchmarks.track_accuracy.long_settings import RATES, chosen
from camgraph.tools.lab.benchmarks.track_accuracy.measures import Accuracy, Labelled, idf1, measure
from camgraph.tools.lab.benchmarks.track_accuracy.mistakes import KINDS, Mistakes, mistakes
from camgraph.tools.lab.benchmarks.track_accuracy.sequences import Jitter
from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.lab.report_page import table_head, table_row


@dataclass(frozen=True)
class Judged:
    """One tracker in one scene at one rate. ``visits_idf1``: with a new identity in each visit."""

    tracker: str
    scene: str
    seed: int
    fps: float
    accuracy: Accuracy
    visits_idf1: float
    mistakes: Mistakes


@dataclass(frozen=True)
class Size:
    """How much a scene comprises."""

    seconds: float
    person_seconds: float
    people: int
    visits: int

    @classmethod
    def of(cls, scene: sequences.Sequence) -> Size:
        lasts_s = (scene.times_ns[-1] - scene.times_ns[0]) / 1e9
        seen = sum(len(ids) for ids, _ in scene.truths) / len(scene.truths)
        return cls(lasts_s, lasts_s * seen, _identities(scene.truths), _identities(visits(scene)))


def _identities(truths: Iterable[Labelled]) -> int:
    return len({one for ids, _ in truths for one in ids.tolist()})


@dataclass(frozen=True)
class Results:
    """Of all scenes."""

    judged: Sequence[Judged]
    sizes: Sequence[Size]

    @property
    def hours(self) -> float:
        return sum(one.seconds for one in self.sizes) / 3600

    def of(self, tracker: str, fps: float | None = None) -> list[Judged]:
        return [one for one in self.judged if one.tracker == tracker and fps in (None, one.fps)]


def judged_scene(name: str, seed: int, minutes: float, rates: Sequence[float], environments: Sequence[str]) -> Results:
    """Our tracker and those of the environments in one scene."""
    whole = long_scene(name, seed, minutes)
    scenes = [Jitter().of(whole.at(fps), 1) for fps in rates]
    judged = []
    for scene, fps, seen in zip(scenes, rates, _tracks(scenes, rates, environments), strict=True):
        came = visits(scene)
        for tracker, found in seen.items():
            wrong = mistakes(scene.times_ns, scene.truths, came, found)
            judged.append(Judged(tracker, name, seed, fps, measure(scene.truths, found), idf1(came, found), wrong))
    return Results(judged, [Size.of(whole)])


def _tracks(
    scenes: Sequence[sequences.Sequence], rates: Sequence[float], environments: Sequence[str]
) -> list[dict[str, Sequence[Labelled]]]:
    """Of each scene (one for each rate), the tracks by the names of the trackers."""
    result: list[dict[str, Sequence[Labelled]]] = [{OURS: followed(scene, usual_options())} for scene in scenes]
    for environment in environments:
        runs = [replace(run, scenes=[row]) for row, fps in enumerate(rates) for run in chosen(environment, fps)]
        for run, (found,) in zip(runs, peers.followed(environment, runs, scenes, install=False), strict=True):
            result[run.scenes[0]][run.tracker] = found
    return result


def judged_scenes(seeds: Sequence[int], minutes: float, rates: Sequence[float], environments: Sequence[str]) -> Results:
    """All scenes of these seeds, on all cores that this process may use."""
    names = [(name, seed) for seed in seeds for name in LONG_SCENES]
    workers = min(len(names), len(os.sched_getaffinity(0)))
    job = partial(_judged_scene, minutes=minutes, rates=rates, environments=environments)
    judged, sizes = list[Judged](), list[Size]()
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        for number, part in enumerate(pool.map(job, names), start=1):
            judged += part.judged
            sizes += part.sizes
            click.echo(f"{number} of {len(names)} scenes", err=True)
    return Results(judged, sizes)


def _judged_scene(
    named: tuple[str, int], minutes: float, rates: Sequence[float], environments: Sequence[str]
) -> Results:
    return judged_scene(*named, minutes, rates, environments)


def report(results: Results, rates: Sequence[float], left_out: Mapping[str, str]) -> str:
    """How much was followed, and tables."""
    trackers = list(dict.fromkeys(one.tracker for one in results.judged))
    tables = [
        ("IDF1:", _by_rate(results, trackers, rates, lambda some: f"{_mean_idf1(some):.1f}")),
        (
            "IDF1, if everybody who comes back into the picture is somebody new:",
            _by_rate(results, trackers, rates, lambda some: f"{100 * np.mean([one.visits_idf1 for one in some]):.1f}"),
        ),
        (
            "Ids passed on, an hour:",
            _by_rate(results, trackers, rates, lambda some: _an_hour(_passed(some), results)),
        ),
        ("All measures, mean over all scenes and rates:", _all_measures(results, trackers, rates)),
        (f"What {OURS} did wrong, an hour:", _by_kind(results, rates)),
    ]
    lines = [_sizes(results.sizes), ""]
    for title, table in tables:
        lines += [title, "", *table, ""]
    lines += [f"{name} is left out: {why}" for name, why in left_out.items()]
    return "\n".join(lines).rstrip()


def _sizes(sizes: Sequence[Size]) -> str:
    hours, walked = (sum(one.seconds for one in sizes) / 3600, sum(one.person_seconds for one in sizes) / 3600)
    people, came = sum(one.people for one in sizes), sum(one.visits for one in sizes)
    return (
        f"{len(sizes)} scenes, {hours:.1f} hours of video with {walked:.1f} hours of people in sight: "
        f"{people} people, who came into the picture {came} times."
    )


def _by_rate(
    results: Results, trackers: Sequence[str], rates: Sequence[float], cell: Callable[[Sequence[Judged]], str]
) -> list[str]:
    lines = table_head("tracker", *(f"{fps:g} a second" for fps in rates))
    return lines + [table_row(name, *(cell(results.of(name, fps)) for fps in rates)) for name in trackers]


def _all_measures(results: Results, trackers: Sequence[str], rates: Sequence[float]) -> list[str]:
    lines = table_head(
        "tracker", "IDF1 ± spread over seeds", "HOTA", "MOTA", "ids passed on an hour", "new ids a person",
        "tracks of nobody an hour",
    )  # fmt: skip
    for name in trackers:
        some = results.of(name)
        ids, people = (sum(getattr(one.mistakes, what) for one in some) for what in ("ids", "people"))
        nobodys = sum(one.mistakes.nobodys for one in some)
        lines.append(
            table_row(
                name,
                f"{_mean_idf1(some):.1f} ± {_spread(some):.1f}",
                f"{100 * np.mean([one.accuracy.hota for one in some]):.1f}",
                f"{100 * np.mean([one.accuracy.mota for one in some]):.1f}",
                _an_hour(_passed(some) / len(rates), results),
                f"{ids / people - 1:.1f}",
                _an_hour(nobodys / len(rates), results),
            )
        )
    return lines


def _by_kind(results: Results, rates: Sequence[float]) -> list[str]:
    lines = table_head("mistake", *(f"{fps:g} a second" for fps in rates))
    for kind in KINDS:
        counts = [sum(one.mistakes.kinds[kind] for one in results.of(OURS, fps)) for fps in rates]
        lines.append(table_row(kind, *(_an_hour(count, results) for count in counts)))
    return lines


def _mean_idf1(some: Sequence[Judged]) -> float:
    return 100 * float(np.mean([one.accuracy.idf1 for one in some]))


def _spread(some: Sequence[Judged]) -> float:
    """The standard deviation of IDF1 between seeds."""
    return float(np.std([_mean_idf1([one for one in some if one.seed == seed]) for seed in {one.seed for one in some}]))


def _passed(some: Sequence[Judged]) -> int:
    return sum(one.accuracy.passed for one in some)


def _an_hour(count: float, results: Results) -> str:
    return f"{count / results.hours:.0f}"


def _made_ready() -> tuple[list[str], dict[str, str]]:
    """The environments that are there or can be made, and why the trackers of the others are left out."""
    ready, left_out = list[str](), dict[str, str]()
    for environment, (packages, names) in peers.ENVIRONMENTS.items():
        try:
            python_of(environment, packages, install=True)
        except NotToBeHad as problem:
            left_out |= dict.fromkeys(names, str(problem))
        else:
            ready.append(environment)
    return ready, left_out


@figure_command("benchmarks.track_accuracy.long")
@click.option(
    "--rate", "rates", type=click.Choice([f"{fps:g}" for fps in RATES]), multiple=True, help="By default all of them.",
)  # fmt: skip
@click.option(
    "--seed", "seeds", type=int, multiple=True, default=(1, 3, 5, 7, 9), show_default=True, help="Of the scenes."
)
@click.option("--minutes", default=4.0, show_default=True, type=click.FloatRange(0.1), help="Of each scene.")
@click.option("--alone", is_flag=True, help=f"{OURS} without the others.")
def main(figure: Figure, rates: tuple[str, ...], seeds: tuple[int, ...], minutes: float, alone: bool) -> None:
    """How well the tracker keeps identities over hours, beside others."""
    wanted = [float(fps) for fps in rates] or RATES
    ready, left_out = ([], {}) if alone else _made_ready()
    results = judged_scenes(seeds, minutes, wanted, ready)
    figure.publish("\n\n".join((figure.head(), report(results, wanted, left_out))))


if __name__ == "__main__":
    main()
