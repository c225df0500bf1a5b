"""The tracker beside others, at several frame rates.

    python -m camgraph.tools.lab.benchmarks.track_accuracy --data FOLDER

FOLDER is the test data: `mot/TUD-Stadtmitte`, MoveNet MultiPose and a YOLO of poses. The other scenes are those of the
animator. Each scene is followed several times, with jittered boxes, scores and joints and some people left out: single
runs are unstable, one box more or less may change IDF1 by ten points. Our tracker has its defaults throughout; each of
the others has, in each scene and at each rate, the settings that are the best for the first run of that scene.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click
import numpy as np

from camgraph.stages.people.track import TrackSettings
from camgraph.stages.vision.decoding.score_ranges import score_range
from camgraph.stages.vision.tracking import Tracker, TrackerOptions
from camgraph.tools.lab.benchmarks.peers.environments import NotToBeHad
from camgraph.tools.lab.benchmarks.track_accuracy import peers, sequences
from camgraph.tools.lab.benchmarks.track_accuracy.measures import Accuracy, Labelled, idf1, measure
from camgraph.tools.lab.benchmarks.track_accuracy.scenes import SCENES, scene
from camgraph.tools.lab.benchmarks.track_accuracy.sequences import Jitter
from camgraph.tools.lab.benchmarks.track_accuracy.street import street
from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.lab.report_page import table_head, table_row

OURS = "camgraph"
STREET, MODEL = Path("mot/TUD-Stadtmitte"), Path("models/multipose_heads.onnx")
MODELS = (MODEL, Path("models/yolo11n-pose_640.onnx"))
Key = tuple[str, float, int]
"""The name of a scene, frames a second, and the seed of its jitter."""
Results = Mapping[str, Mapping[Key, Accuracy]]


@dataclass(frozen=True)
class Figures:
    """The mean of several runs, and the standard deviation of IDF1."""

    idf1: float
    spread: float
    hota: float
    mota: float
    passed: float

    @classmethod
    def of(cls, found: Iterable[Accuracy]) -> Figures:
        rows = np.array([(one.idf1, one.hota, one.mota, one.passed) for one in found])
        idf1, hota, mota, passed = rows.mean(axis=0)
        return cls(100 * idf1, 100 * float(rows[:, 0].std()), 100 * hota, 100 * mota, passed)


def usual_options(model_format: str = "movenet_multipose") -> TrackerOptions:
    """The options of the stage `track` behind a model of that format."""
    usual = score_range(model_format)
    names = ("weak", "good", "new", "sure")
    return TrackSettings.model_validate({f"{name}_score": getattr(usual, name) for name in names}).options()


def followed(scene: sequences.Sequence, options: TrackerOptions) -> list[Labelled]:
    """Our tracker's tracks."""
    tracker = Tracker(options)
    result = []
    for time_ns, found in zip(scene.times_ns, scene.found, strict=True):
        seen = tracker.follow(time_ns, found.boxes, found.scores, None, found.keypoints)
        result.append((seen.ids, found.boxes[seen.rows]))
    return result


def judged(cases: Mapping[Key, sequences.Sequence], tracks: Sequence[Sequence[Labelled]]) -> dict[Key, Accuracy]:
    """The accuracy of each case."""
    return {key: measure(case.truths, found) for (key, case), found in zip(cases.items(), tracks, strict=True)}


def others(
    environment: str, cases: Mapping[Key, sequences.Sequence], tries: int, *, install: bool
) -> dict[str, dict[Key, Accuracy]]:
    """The accuracy of other packages' trackers: in each scene, at each rate, with the best of ``tries`` settings.

    Raises NotToBeHad.
    """
    keys, scenes = list(cases), list(cases.values())
    chosen = []
    for (_, fps), probes in probes_of(environment, cases, tries, install=install).items():
        for name in probes[0].idf1:
            best = max(probes, key=_idf1_in(name))
            chosen.append(replace(best.run, scenes=_rows(keys, fps, scene=name)))
    result: dict[str, dict[Key, Accuracy]] = {name: {} for name in peers.ENVIRONMENTS[environment][1]}
    for run, tracks in zip(chosen, peers.followed(environment, chosen, scenes, install=install), strict=True):
        for row, found in zip(run.scenes, tracks, strict=True):
            result[run.tracker][keys[row]] = measure(scenes[row].truths, found)
    return result


@dataclass(frozen=True)
class Probe:
    """Another tracker with certain settings. `idf1`: scene -> IDF1 over the scene's first jitter."""

    run: peers.Run
    idf1: Mapping[str, float]


def _idf1_in(scene: str) -> Callable[[Probe], float]:
    return lambda probe: probe.idf1[scene]


def probes_of(
    environment: str, cases: Mapping[Key, sequences.Sequence], tries: int, *, install: bool
) -> dict[tuple[str, float], list[Probe]]:
    """(Tracker, frames a second) -> ``tries`` settings, each over the first jitter of each scene.

    Raises NotToBeHad.
    """
    keys, scenes = list(cases), list(cases.values())
    first = min(key[2] for key in keys)
    asked = [
        (fps, peers.Run(name, own, least, _rows(keys, fps, jitter=first)))
        for name in peers.ENVIRONMENTS[environment][1]
        for fps in sorted({key[1] for key in keys})
        for least, own in peers.settings_of(name, fps, tries)
    ]
    result: dict[tuple[str, float], list[Probe]] = {}
    for (fps, run), tracks in zip(
        asked, peers.followed(environment, [run for _, run in asked], scenes, install=install), strict=True
    ):
        found = {keys[row][0]: idf1(scenes[row].truths, track) for row, track in zip(run.scenes, tracks, strict=True)}
        result.setdefault((run.tracker, fps), []).append(Probe(run, found))
    return result


def _rows(keys: Sequence[Key], fps: float, *, jitter: int | None = None, scene: str | None = None) -> list[int]:
    return [
        row for row, key in enumerate(keys) if key[1] == fps and jitter in (None, key[2]) and scene in (None, key[0])
    ]


def report(results: Results, left_out: Mapping[str, str], rates: Sequence[float]) -> str:
    """Tables of all trackers, over all scenes and scene by scene."""
    lines = ["IDF1 over all scenes, mean of all runs:", "", *_by_rate(results, rates), ""]
    for name in dict.fromkeys(key[0] for key in results[OURS]):
        lines += [f"IDF1 in {name}:", "", *_by_rate(_only(results, name), rates), ""]
    lines += ["All measures, mean over all scenes, rates and runs:", "", *_all_measures(results), ""]
    lines += [f"{OURS} scene by scene:", "", *_by_scene(results[OURS], rates)]
    lines += [f"\n{name} is left out: {why}" for name, why in left_out.items()]
    return "\n".join(lines)


def _only(results: Results, name: str) -> Results:
    return {tracker: {key: one for key, one in found.items() if key[0] == name} for tracker, found in results.items()}


def _by_rate(results: Results, rates: Sequence[float]) -> list[str]:
    lines = table_head("tracker", *(f"{fps:g} a second" for fps in rates))
    for tracker, found in results.items():
        cells = [Figures.of(one for key, one in found.items() if key[1] == fps).idf1 for fps in rates]
        lines.append(table_row(tracker, *(f"{cell:.1f}" for cell in cells)))
    return lines


def _all_measures(results: Results) -> list[str]:
    lines = table_head("tracker", "IDF1", "spread", "HOTA", "MOTA", "ids passed on")
    for tracker, found in results.items():
        spread = np.mean([Figures.of(_runs(found, *case)).spread for case in {key[:2] for key in found}])
        all_ = Figures.of(found.values())
        lines.append(
            table_row(
                tracker,
                f"{all_.idf1:.1f}",
                f"{spread:.1f}",
                f"{all_.hota:.1f}",
                f"{all_.mota:.1f}",
                f"{all_.passed:.2f}",
            )
        )
    return lines


def _by_scene(found: Mapping[Key, Accuracy], rates: Sequence[float]) -> list[str]:
    lines = table_head("scene", "measure", *(f"{fps:g} a second" for fps in rates))
    for name in dict.fromkeys(key[0] for key in found):
        figures = [Figures.of(_runs(found, name, fps)) for fps in rates]
        lines.append(table_row(name, "IDF1 ± spread", *(f"{one.idf1:.1f} ± {one.spread:.1f}" for one in figures)))
        lines.append(table_row("", "HOTA, MOTA", *(f"{one.hota:.1f}, {one.mota:.1f}" for one in figures)))
        lines.append(table_row("", "ids passed on", *(f"{one.passed:.1f}" for one in figures)))
    return lines


def _runs(found: Mapping[Key, Accuracy], name: str, fps: float) -> list[Accuracy]:
    return [one for key, one in found.items() if key[:2] == (name, fps)]


@figure_command("benchmarks.track_accuracy")
@click.option("--data", type=click.Path(exists=True, file_okay=False, path_type=Path), required=True, help="Test data.")
@click.option(
    "--rate", "rates", type=click.FloatRange(1, 25), multiple=True, default=(25, 12.5, 8, 5, 3), show_default=True
)
@click.option("--seed", "seeds", type=int, multiple=True, default=(0, 1), show_default=True, help="Of the scenes.")
@click.option("--jitters", default=3, show_default=True, type=click.IntRange(1), help="Runs of each scene and rate.")
@click.option("--seconds", default=20.0, show_default=True, type=click.FloatRange(2), help="Of each scene.")
@click.option(
    "--tries", default=16, show_default=True, type=click.IntRange(0), help="Settings of others; 0: without them."
)
@click.option("--no-install", is_flag=True, help="Leave out trackers whose environment is not there.")
def main(
    figure: Figure, *, data: Path, rates: tuple[float, ...], seeds: tuple[int, ...], jitters: int, seconds: float,
    tries: int, no_install: bool,
) -> None:  # fmt: skip
    """How well the tracker keeps identities, beside others."""
    scenes = [street(data / STREET, data / model) for model in MODELS]
    scenes += [scene(name, seed, seconds) for name in SCENES for seed in seeds]
    cases = {
        (one.name, fps, jitter): Jitter().of(one.at(fps), jitter)
        for fps in rates
        for one in scenes
        for jitter in range(1, jitters + 1)
    }
    results: dict[str, dict[Key, Accuracy]] = {
        OURS: judged(cases, [followed(case, usual_options(case.format)) for case in cases.values()])
    }
    left_out: dict[str, str] = {}
    for environment in peers.ENVIRONMENTS if tries else ():
        try:
            results |= others(environment, cases, tries, install=not no_install)
        except NotToBeHad as problem:
            left_out |= dict.fromkeys(peers.ENVIRONMENTS[environment][1], str(problem))
        click.echo(f"{environment}: done", err=True)
    figure.publish("\n\n".join((figure.written(), report(results, left_out, rates))))


if __name__ == "__main__":
    main()
