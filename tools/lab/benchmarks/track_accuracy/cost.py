"""The processor time of the tracker.

python -m camgraph.tools.lab.benchmarks.track_accuracy.cost --report docs/tracking.md
"""

from __future__ import annotations

import statistics
import time

import click
import numpy as np

from camgraph.stages.vision.tracking import Tracker, TrackerOptions
from camgraph.tools.lab.benchmarks.track_accuracy.sequences import Found
from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.lab.report_page import table_head, table_row

_FPS, _BLOCK = 25, 25


def frame_ms(people: int, options: TrackerOptions, frames: int = 750) -> float:
    """Milliseconds of processor time a frame with so many people, who walk through each other in a large picture.

    The median of blocks of a second: what else the machine does makes single ones dearer.
    """
    found = _walkers(people, frames)
    tracker, blocks = Tracker(options), []
    for first in range(0, frames, _BLOCK):
        begun_ns = time.process_time_ns()
        for number, one in enumerate(found[first : first + _BLOCK], start=first):
            tracker.follow(round(number * 1e9 / _FPS), one.boxes, one.scores, None, one.keypoints)
        blocks.append((time.process_time_ns() - begun_ns) / 1e6 / _BLOCK)
    return statistics.median(blocks)


def _walkers(people: int, frames: int) -> list[Found]:
    random = np.random.default_rng(1)
    size = np.array([60.0, 150.0])
    places, speeds = random.uniform((0, 0), (1800, 800), (people, 2)), random.normal(0, 60, (people, 2))
    poses = random.uniform(0, 1, (people, 17, 2)) * size
    result = []
    for number in range(frames):
        # To and fro, so that they stay in the picture.
        at = places + speeds * (2 * np.sin(number / _FPS / 2)) + random.normal(0, 1.5, (people, 2))
        boxes = np.concatenate((at, at + size), axis=1)
        joints = at[:, None] + poses + random.normal(0, 1, (people, 17, 2))
        keypoints = np.concatenate((joints, random.uniform(0.2, 0.9, (people, 17, 1))), axis=2)
        rows = random.permutation(people)
        rows = rows[random.random(people) < 0.95]
        result.append(Found(boxes, random.uniform(0.1, 0.95, people), keypoints).take(rows))
    return result


@figure_command("benchmarks.track_accuracy.cost")
@click.option("--people", "counts", type=click.IntRange(1, 500), multiple=True, default=(5, 20, 50), show_default=True)
def main(figure: Figure, counts: tuple[int, ...]) -> None:
    """How much processor time the tracker takes for a frame."""
    lines = table_head("people", "processor time of a frame")
    lines += [table_row(count, f"{frame_ms(count, TrackerOptions()):.2f} ms") for count in counts]
    figure.publish("\n".join((figure.head(but=["counts"]), "", *lines)))


if __name__ == "__main__":
    main()
