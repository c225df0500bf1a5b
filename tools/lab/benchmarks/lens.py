"""How people who walk lean, and how tall they are, under cameras that look down.

    python -m camgraph.tools.lab.benchmarks.lens

The animator's people cross a floor, seen with the noise of a pose model. Each row is a camera. The columns are the lean
of their torsos, the median and the 95th percentile, and the length of their torsos, the median and the 5th and 95th
percentile: uncorrected, corrected by the lens of the data sheet, and corrected by the lens learnt from people in the
minutes before. A length is compared with what is level and across the picture at the same place, such as a step aside:
that takes the true camera, and the middle of the box for the place.

The second table is about the actions of the library, each in its motions and in all others, before steep cameras.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import click
import numpy as np
from numpy.typing import NDArray

from camgraph.stages.rules.language.lens import Lens, LensEstimate, straightened
from camgraph.stages.rules.language.people import LEAN, TORSO, with_more
from camgraph.stages.rules.rule_set import RuleSet, parse_rules
from camgraph.tools.lab.action_cases import CASES
from camgraph.tools.lab.action_trials import LEAD_S, Edge, Trial, View, firings, pictures
from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.scenes.animator.camera import Camera
from camgraph.tools.scenes.animator.library import MOTIONS
from camgraph.tools.scenes.animator.messages import tracks
from camgraph.tools.scenes.animator.pose_model import MULTIPOSE, YOLO11N
from camgraph.tools.scenes.animator.scenes import crossing_walks

FPS = 5.0
SURE = 0.3
CAMERAS = tuple(
    Camera(height_m=height, tilt_deg=tilt, fov_deg=fov, heading_deg=90, y=ahead)
    for tilt, fov, height, ahead in ((15, 70, 2.6, 0), (30, 90, 2.6, 1), (40, 100, 2.8, 2), (50, 110, 3.0, 3))
)
"""The nearer people come, and the wider the picture is, the more they lean at its sides."""
STEEP = ((2.8, 2.2), (3.2, 3.2))
"""Heights and distances in metres."""
EDGES: tuple[Edge, ...] = ("", "left", "right")
MODELS = (YOLO11N, MULTIPOSE)
ACTIONS_FPS = 12.5
F64 = NDArray[np.float64]
MIDDLE_M, ASIDE_M = 0.85, 0.1
"""Half the height of a person, and half of what is measured there."""


def appearances(camera: Camera, scenes: range) -> Iterator[tuple[F64, F64]]:
    """Joints (N, 17, 2), of which uncertain ones are NaN, and boxes (N, 4), frame by frame."""
    for seed in scenes:
        for item in tracks(crossing_walks(seed).frames(FPS, seed, camera, MULTIPOSE)):
            joints = item.keypoints.astype(np.float64)
            joints[joints[:, :, 2] < SURE] = np.nan
            yield joints[:, :, :2], item.boxes.astype(np.float64)


@dataclass(frozen=True, slots=True)
class Seen:
    """Of all appearances with a known torso: the leans in degrees, and how long the torsos are in metres."""

    leans: F64
    torsos: F64


def seen(camera: Camera, scenes: range, lens: Lens | None) -> Seen:
    """What rules see of people under the camera, with this lens."""
    found: list[tuple[float, float]] = []
    for joints, boxes in appearances(camera, scenes):
        metre = pixels_a_metre(camera, boxes)
        if lens is not None:
            turns = lens.turns(boxes, joints, camera.size)
            joints, metre = straightened(joints, turns), metre * turns[:, 4]  # noqa: PLW2901
        found += [(row[LEAN], row[TORSO] / pixels) for row, pixels in zip(with_more(joints), metre, strict=True)]
    values = np.array(found, np.float64)
    leans, torsos = values[np.isfinite(values).all(1)].T
    return Seen(leans, torsos)


def pixels_a_metre(camera: Camera, boxes: F64) -> F64:
    """Of what is level and across the picture, at half the height of people who stand in boxes (N, 4)."""
    right, down, ahead = camera.axes()
    middles = (boxes[:, :2] + boxes[:, 2:]) / 2
    x, y = ((middles - np.array(camera.size) / 2) / camera.focal_px).T
    rays = x[:, None] * right + y[:, None] * down + ahead
    depth = (camera.height_m - MIDDLE_M) / -rays[:, 2]
    level = np.stack([-rays[:, 1], rays[:, 0]], 1) / np.hypot(rays[:, 0], rays[:, 1])[:, None]
    at = camera.place + rays * depth[:, None]
    aside = np.concatenate([level * ASIDE_M, np.zeros((len(boxes), 1))], 1)
    ends = [camera.project(at + way)[0] for way in (-aside, aside)]
    pixels: F64 = np.hypot(*(ends[1] - ends[0]).T) / (2 * ASIDE_M)
    return pixels


def learnt(camera: Camera, scenes: range) -> Lens | None:
    estimate = LensEstimate()
    for joints, _ in appearances(camera, scenes):
        estimate.look(joints, camera.size)
    return estimate.lens(camera.size)


def table(scenes: int) -> str:
    """Markdown."""
    ways = ("as seen", "lens known", "lens learnt")
    lines = [f"| camera | lean {' | '.join(ways)} | torso {' | '.join(ways)} |", f"|---|{'---|' * 2 * len(ways)}"]
    for camera in CAMERAS:
        known = Lens.of(camera.tilt_deg, camera.fov_deg, camera.size[0])
        before, watched = range(1000, 1000 + scenes), range(scenes)
        found = [seen(camera, watched, lens) for lens in (None, known, learnt(camera, before))]
        leans = [f"{np.median(one.leans):.0f}°, {np.percentile(one.leans, 95):.0f}°" for one in found]
        torsos = [
            f"{np.median(one.torsos):.2f} m ({np.percentile(one.torsos, 5):.2f} to {np.percentile(one.torsos, 95):.2f})"
            for one in found
        ]
        where = f"{camera.height_m:g} m high, looks down {camera.tilt_deg:g}°, {camera.fov_deg:g}° wide"
        lines.append(f"| {where} | {' | '.join([*leans, *torsos])} |")
    return "\n".join(lines)


@dataclass(slots=True)
class Count:
    """Of trials in which an action had to be found, and of those in which it must not be."""

    found: int = 0
    sought: int = 0
    wrong: int = 0
    silent: int = 0


def steep_trials(seeds: int) -> Iterator[Trial]:
    ways = itertools.product(MOTIONS, MODELS, STEEP, EDGES, range(seeds))
    for number, (motion, model, (height, distance), edge, seed) in enumerate(ways):
        bearing = float(np.random.default_rng([seed, number]).uniform(0, 360))
        yield Trial(motion, View(height, distance, bearing, edge=edge), ACTIONS_FPS, model, seed)


def rules_before(camera: Camera, *, lens: bool) -> RuleSet:
    """All actions of the library that the animator has motions for."""
    head = f"lenses: {{tilt: {camera.tilt_deg:.2f}deg, fov: {camera.fov_deg:.2f}deg}}\n" if lens else ""
    rules = "".join(f"  - {{use: {action}}}\n" for action in CASES)
    return parse_rules(f"version: 1\n{head}rules:\n{rules}", "library")


def counts(seeds: int) -> dict[bool, Count]:
    """Without and with a lens."""
    found = {False: Count(), True: Count()}
    for trial in steep_trials(seeds):
        frames = pictures(trial)
        for lens, count in found.items():
            first: dict[str, float] = {}
            for firing in firings(rules_before(trial.view.camera, lens=lens), frames):
                first.setdefault(firing.rule, firing.at_s - LEAD_S)
            add(count, trial.motion, first)
    return found


def add(count: Count, motion: str, first: Mapping[str, float]) -> None:
    """`first`: action -> when it was found."""
    for action, case in CASES.items():
        at_s = first.get(action)
        if motion in case.fires:
            count.sought += 1
            count.found += at_s is not None and at_s <= case.fires[motion]
        elif motion not in case.may:
            count.silent += 1
            count.wrong += at_s is not None


def table_of_actions(seeds: int) -> str:
    """Markdown."""
    lines = ["| | found | found wrongly |", "|---|---|---|"]
    for lens, count in counts(seeds).items():
        name = "lens known" if lens else "as seen"
        lines.append(f"| {name} | {count.found} of {count.sought} | {count.wrong} of {count.silent:,} |")
    return "\n".join(lines)


@figure_command("benchmarks.lens")
@click.option("--scenes", default=12, show_default=True, help="Of 20 s each, and as many to learn from.")
@click.option("--seeds", default=2, show_default=True, help="How often each motion is done before each steep camera.")
def main(figure: Figure, scenes: int, seeds: int) -> None:
    """Measure what a known lens is good for."""
    cameras = " and ".join(f"{height:g} m high and {distance:g} m away" for height, distance in STEEP)
    about = (
        f"Cameras {cameras}, people in the middle and near the sides, by two models at {ACTIONS_FPS:g} frames a second:"
    )
    figure.publish(f"{figure.written()}\n\n{table(scenes)}\n\n{about}\n\n{table_of_actions(seeds)}\n")


if __name__ == "__main__":
    main()
