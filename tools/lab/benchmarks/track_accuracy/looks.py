"""What colours add to the tracker: `python -m camgraph.tools.lab.benchmarks.track_accuracy.looks --data FOLDER`.

The street (TUD-Stadtmitte) has colours of its own. The people of the animator have none, so each wears the colours of
somebody in the street, as they were seen in one of its frames, drawn anew for each frame. So they change with the
light, the pose and the people in the way, as those in the street do.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import av
import click
import numpy as np
from numpy.typing import NDArray

from camgraph.stages.vision.colours import LENGTH, colours_of_planes
from camgraph.stages.vision.planes import split
from camgraph.stages.vision.tracking import Tracker, TrackerOptions
from camgraph.stages.vision.tracking.matching import similarity
from camgraph.tools.lab.benchmarks.track_accuracy import sequences
from camgraph.tools.lab.benchmarks.track_accuracy.__main__ import MODEL, STREET, usual_options
from camgraph.tools.lab.benchmarks.track_accuracy.measures import Accuracy, Labelled, measure
from camgraph.tools.lab.benchmarks.track_accuracy.scenes import SCENES, scene
from camgraph.tools.lab.benchmarks.track_accuracy.street import street
from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.lab.report_page import machine_line, table_head, table_row

F32 = NDArray[np.float32]
_SAME, _NEAR = 0.6, 0.3
"""The overlap with a true box from which on a detection surely, or likely, is that person."""
_LEAST_SIGHTS = 20
_SHAKEN, _LEFT_OUT = 0.02, 0.1
"""Errors added to the street: of boxes, in parts of their sides, and the part of the people who are left out."""
_NAME = "street"


@dataclass
class Counts:
    """Results of one way to follow: the accuracy of each run, and how many reported continuations are right."""

    runs: list[Accuracy]
    right: int = 0
    reported: int = 0

    def cells(self) -> tuple[str, ...]:
        """IDF1, ids passed on, reported continuations that are right."""
        idf1, passed = (float(np.mean([getattr(run, name) for run in self.runs])) for name in ("idf1", "passed"))
        return f"{100 * idf1:.1f}", f"{passed:.2f}", f"{self.right} of {self.reported}"


def colours(folder: Path, found: Sequence[sequences.Found]) -> list[F32]:
    """The colours of the detections, for each frame of the street."""
    with av.open(str(folder / f"{folder.name}.mp4")) as container:
        frames = zip(container.decode(video=0), found, strict=True)
        return [
            colours_of_planes(
                split(np.asarray(frame.to_ndarray(format="yuv420p"), np.uint8)),
                one.boxes.astype(np.float32),
                one.keypoints.astype(np.float32),
            )
            for frame, one in frames
        ]


def wardrobe(scene: sequences.Sequence, looks: Sequence[F32]) -> list[F32]:
    """The colours of each person of the street who was seen often enough, (sights, LENGTH) each."""
    sights: dict[int, list[F32]] = {}
    for truth, found, vectors in zip(scene.truths, scene.found, looks, strict=True):
        for row, owner in _owners(truth, found, _SAME):
            if np.isfinite(vectors[row]).all():
                sights.setdefault(owner, []).append(vectors[row])
    return [np.array(rows) for rows in sights.values() if len(rows) >= _LEAST_SIGHTS]


def dressed(scene: sequences.Sequence, clothes: Sequence[F32], seed: int) -> list[F32]:
    """Colours for the people of a scene of the animator; who is nobody's has none."""
    random = np.random.default_rng(seed)
    order = random.permutation(len(clothes))
    people = sorted({int(one) for truth in scene.truths for one in truth[0]})
    worn = {one: clothes[order[number % len(order)]] for number, one in enumerate(people)}
    looks = []
    for truth, found in zip(scene.truths, scene.found, strict=True):
        vectors = np.full((len(found.boxes), LENGTH), np.nan, np.float32)
        for row, owner in _owners(truth, found, _NEAR):
            vectors[row] = random.choice(worn[owner])
        looks.append(vectors)
    return looks


def _owners(truth: Labelled, found: sequences.Found, least: float) -> Iterator[tuple[int, int]]:
    """(row, true id) of the detections that are somebody's."""
    overlap = similarity(truth[1], found.boxes)
    for row in range(len(found.boxes)):
        if len(truth[0]) and overlap[:, row].max() >= least:
            yield row, int(truth[0][overlap[:, row].argmax()])


def follow(counts: Counts, scene: sequences.Sequence, options: TrackerOptions, looks: Sequence[F32] | None) -> None:
    """Follow a scene, with colours or without, and add what came of it."""
    tracker, named = Tracker(options), list[Labelled]()
    reported: set[tuple[int, int]] = set()
    owners: dict[int, list[int]] = {}
    for number, (time_ns, truth, found) in enumerate(zip(scene.times_ns, scene.truths, scene.found, strict=True)):
        appearance = None if looks is None else looks[number].astype(np.float64)
        seen = tracker.follow(time_ns, found.boxes, found.scores, None, found.keypoints, appearance=appearance)
        named.append((seen.ids, found.boxes[seen.rows]))
        reported |= {(int(one), int(other)) for one, other in zip(seen.ids, seen.continues, strict=True) if other}
        for row, owner in _owners(truth, found.take(seen.rows), 0.5):
            owners.setdefault(int(seen.ids[row]), []).append(owner)
    counts.runs.append(measure(scene.truths, named))
    counts.reported += len(reported)
    counts.right += sum(_mostly(owners, one) == _mostly(owners, other) is not None for one, other in reported)


def _mostly(owners: Mapping[int, list[int]], track: int) -> int | None:
    """Whose track it is."""
    known = owners.get(track)
    return max(known, key=known.count) if known else None


@dataclass(frozen=True)
class _Street:
    """The real one: its detections, their colours, and what people wear there."""

    scene: sequences.Sequence
    looks: Sequence[F32]
    clothes: Sequence[F32]

    @classmethod
    def read(cls, data: Path) -> _Street:
        scene = street(data / STREET, data / MODEL)
        looks = colours(data / STREET, scene.found)
        return cls(scene, looks, wardrobe(scene, looks))

    def seen(self, fps: float, seed: int) -> tuple[sequences.Sequence, list[F32]]:
        """At this rate, with jittered boxes and people left out."""
        row_of = {time_ns: row for row, time_ns in enumerate(self.scene.times_ns)}
        scene = self.scene.at(fps)
        random, found, looks = np.random.default_rng(seed), [], []
        for time_ns, one in zip(scene.times_ns, scene.found, strict=True):
            kept = random.random(len(one.boxes)) >= _LEFT_OUT
            size = np.tile(one.boxes[:, 2:] - one.boxes[:, :2], 2)
            boxes = one.boxes + _SHAKEN * size * random.standard_normal(one.boxes.shape)
            found.append(sequences.Found(boxes, one.scores, one.keypoints).take(kept))
            looks.append(self.looks[row_of[time_ns]][kept])
        return replace(scene, found=found), looks

    def case(self, name: str, fps: float, seed: int) -> tuple[sequences.Sequence, list[F32]]:
        """A scene by its name, and the colours of its detections."""
        if name == _NAME:
            return self.seen(fps, seed)
        made = scene(name, seed).at(fps)
        return made, dressed(made, self.clothes, seed)


def cost_ms(people: int) -> float:
    """Milliseconds of processor time for the colours of so many people in a full HD picture: the median of 200."""
    random = np.random.default_rng(1)
    planes = split(random.integers(0, 256, (1080 * 3 // 2, 1920), np.uint8))
    corners = random.uniform(0, 900, (people, 2))
    boxes = np.concatenate((corners, corners + np.array([60, 150])), axis=1).astype(np.float32)
    keypoints = random.uniform(0.3, 900, (people, 17, 3)).astype(np.float32)
    times = []
    for _ in range(200):
        begun_ns = time.process_time_ns()
        colours_of_planes(planes, boxes, keypoints)
        times.append((time.process_time_ns() - begun_ns) / 1e6)
    return statistics.median(times)


@figure_command("benchmarks.track_accuracy.looks")
@click.option("--data", type=click.Path(exists=True, path_type=Path), required=True, help="The folder of the test data")
@click.option("--seeds", type=click.IntRange(1, 100), default=8, show_default=True, help="Runs of each scene")
@click.option("--rate", "rates", type=float, multiple=True, default=(12.5, 5.0), show_default=True)
def main(figure: Figure, data: Path, seeds: int, rates: tuple[float, ...]) -> None:
    """Follow each scene with and without colours."""
    real, options = _Street.read(data), usual_options()
    columns = [cell for name in ("IDF1", "ids passed on", "`continues` right") for cell in (name, "with colours")]
    lines = table_head("scene, frames a second", *columns)
    for name in (_NAME, *SCENES):
        for fps in rates:
            without, seeing = Counts([]), Counts([])
            for seed in range(1, seeds + 1):
                case, looks = real.case(name, fps, seed)
                follow(without, case, options, None)
                follow(seeing, case, options, looks)
            pairs = zip(without.cells(), seeing.cells(), strict=True)
            lines.append(table_row(f"{name}, {fps:g}", *(cell for pair in pairs for cell in pair)))
    costs = ", ".join(f"{people} people {cost_ms(people):.2f} ms" for people in (2, 5, 20))
    cost = f"Processor time of the colours in a frame: {costs}. {machine_line()}."
    figure.publish("\n".join((figure.written(but=["rates"]), "", *lines, "", cost)))


if __name__ == "__main__":
    main()
