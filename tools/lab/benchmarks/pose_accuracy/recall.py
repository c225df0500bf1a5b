"""Whom pose models find in real clips, by what the people do.

    python -m camgraph.tools.lab.benchmarks.pose_accuracy.recall

Of the clips with known events (see `tools.lab.benchmarks.real_actions`), those with one person are looked at once a
second, for up to four seconds of each event. Every way of looking gets the same pictures.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from numpy.typing import NDArray

from camgraph.stages.vision.cropping import crop_bgr, crop_fits
from camgraph.stages.vision.decoding.movenet import decode_movenet_single
from camgraph.stages.vision.decoding.score_ranges import ScoreRange, score_range
from camgraph.stages.vision.letterbox import keypoints_to_frame
from camgraph.tools.assets import asset_path
from camgraph.tools.lab.benchmarks.action_clips import pictures_of
from camgraph.tools.lab.benchmarks.pose_accuracy.sizes import LONG_SIDES
from camgraph.tools.lab.benchmarks.real_actions.people import Finder
from camgraph.tools.lab.benchmarks.real_actions.truth import FALL, Clip, read_truth
from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.lab.report_page import machine_line
from camgraph.tools.models.pose_estimators import PAD, U8, Estimator, Poses, multipose, session, yolo

GROUPS: Mapping[str, Sequence[str]] = {
    "upright": ("walking", "standing"),
    "sitting": ("sitting",),
    "bent": ("bending", "crouching"),
    "falling": (FALL,),
    "lying": ("lying",),
}
DARK, NOBODY = "in the dark", "nobody there"
_DARK_GREY = 45.0
"""A picture is dark if its mean grey is below, of 0 to 255."""
_SEEN, _TRUNK = 0.3, (5, 6, 11, 12)
"""The trunk is seen if shoulders and hips have this confidence."""
_SECONDS, _STEP_S = 4.0, 1.0
_RATE, _LOOK_BACK_S, _SECOND_MARGIN = 10.0, 3.0, 2.0
_MULTIPOSE, _THUNDER = "movenet-multipose.onnx", "movenet-thunder.onnx"
_MIDDLE = 384


class Moment(NamedTuple):
    """A picture (H, W, 3) BGR to look at. ``before``: the box of the person when last found for certain, or None."""

    group: str
    picture: U8
    before: NDArray[np.float32] | None


@dataclass
class Tally:
    """Of one group by one way of looking: pictures, those with somebody, those in which the trunk is seen."""

    pictures: int = 0
    found: int = 0
    trunk: int = 0


@dataclass
class Look:
    """A way of looking at a moment. ``spent_s``: processor time of all moments, on one thread."""

    name: str
    see: Callable[[Moment], Poses]
    scores: ScoreRange
    tallies: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    spent_s: float = 0.0
    looks: int = 0

    def judge(self, moment: Moment, groups: Sequence[str]) -> None:
        """Look, and count for each of the groups. Who begins no track is not found, where nobody is."""
        begun = time.process_time()
        found = self.see(moment)
        self.spent_s += time.process_time() - begun
        self.looks += 1
        best = float(found.scores.max(initial=0.0))
        for group in groups:
            tally = self.tallies[group]
            tally.pictures += 1
            tally.found += best >= (self.scores.new if group == NOBODY else self.scores.good)
            if best >= self.scores.good:
                tally.trunk += bool((found.keypoints[found.scores.argmax(), _TRUNK, 2] >= _SEEN).all())


def times_of(clip: Clip) -> list[tuple[float, str]]:
    """(Seconds, group) of each moment of a clip, in order. After a fall somebody lies."""
    found = []
    for one in clip.events:
        if not one.sure:
            continue
        group = next((name for name, actions in GROUPS.items() if one.action in actions), "")
        if one.action == FALL:
            found.append(((one.start_s + one.end_s) / 2, group))
            found += _spread(one.end_s, one.over_s, "lying")
        elif one.action == "nobody":
            found += _spread(one.start_s, one.end_s, NOBODY)
        elif group:
            found += _spread(one.start_s, one.end_s, group)
    return sorted(set(found))


def _spread(start_s: float, end_s: float, group: str) -> Iterator[tuple[float, str]]:
    """Not at the very beginning and end, which are known to half a second."""
    last_s = min(end_s - _STEP_S / 4, start_s + _SECONDS)
    return ((float(at_s), group) for at_s in np.arange(start_s + _STEP_S / 2, last_s, _STEP_S))


def moments_of(clip: Clip, folder: Path, finder: Finder) -> Iterator[Moment]:
    """The pictures at these times; with whom `finder` had found before."""
    wanted = times_of(clip)
    if not wanted:
        return
    seen = finder.find(folder / clip.file, _RATE)
    certain = [
        (time_ns / 1e9, one.boxes_xyxy[one.scores.argmax()])
        for time_ns, one in zip(seen.times_ns, seen.found, strict=True)
        if one.scores.max(initial=0) >= finder.scores.good
    ]
    for time_ns, picture in pictures_of(folder / clip.file, 30.0):
        at_s = time_ns / 1e9
        while wanted and wanted[0][0] <= at_s:
            before = [box for when_s, box in certain if at_s - _LOOK_BACK_S <= when_s < at_s]
            yield Moment(wanted.pop(0)[1], picture, before[-1] if before else None)
        if not wanted:
            return


# ---- ways of looking


def looks(models: Sequence[Path]) -> list[Look]:
    """MoveNet MultiPose at each size, its people once more by Thunder, a second look, and the YOLOs of `models`."""
    movenet, usual = score_range("movenet_multipose"), score_range("yolo_pose")
    opened = session(asset_path(_MULTIPOSE), 1)
    at = {side: multipose(opened, side, movenet.weak) for side in LONG_SIDES if side <= 640}
    thunder = session(asset_path(_THUNDER), 1)
    result = [Look(f"MoveNet MultiPose, {side}", _whole(estimate), movenet) for side, estimate in at.items()]
    result.append(Look(f"the same at {_MIDDLE}, and Thunder on each crop", _by_thunder(at[_MIDDLE], thunder), movenet))
    second = multipose(opened, 256, movenet.weak)
    result.append(
        Look(
            f"the same at {_MIDDLE}, and 256 on a crop if nobody is found",
            _twice(at[_MIDDLE], second, movenet),
            movenet,
        )
    )
    return result + [Look(f"{model.stem}, 640", _whole(yolo(session(model, 1), usual.weak)), usual) for model in models]


def _whole(estimate: Estimator) -> Callable[[Moment], Poses]:
    return lambda moment: estimate(moment.picture)


def _by_thunder(find: Estimator, thunder: Any) -> Callable[[Moment], Poses]:
    """The joints of each person by a model that looks at one person alone; whom it finds is as before."""
    size = (256, 256)
    name = thunder.get_inputs()[0].name

    def see(moment: Moment) -> Poses:
        found = find(moment.picture)
        joints = found.keypoints.copy()
        for row, fit in enumerate(crop_fits(found.boxes_xyxy, size, 1.25)):
            crop = _cropped(moment.picture, fit, size)
            points = decode_movenet_single(thunder.run(None, {name: crop[None]})[0][0], size=size, min_score=0.0)
            joints[row] = keypoints_to_frame(points.keypoints, fit)[0]
        return found._replace(keypoints=joints)

    return see


def _twice(find: Estimator, again: Estimator, scores: ScoreRange) -> Callable[[Moment], Poses]:
    """Where nobody is found, look once more around the place of the person who was there."""

    def see(moment: Moment) -> Poses:
        found = find(moment.picture)
        if moment.before is None or found.scores.max(initial=0.0) >= scores.good:
            return found
        size = (256, 256)
        fit = crop_fits(moment.before[None], size, _SECOND_MARGIN)[0]
        # Back to BGR: an estimator takes a picture as it came.
        return again(np.ascontiguousarray(_cropped(moment.picture, fit, size)[..., ::-1]))

    return see


def _cropped(picture: U8, fit: NDArray[np.float32], size: tuple[int, int]) -> U8:
    crop = np.empty((size[1], size[0], 3), np.uint8)
    crop_bgr(picture, fit, crop, PAD)
    return crop


# ---- the report


def report(ways: Sequence[Look]) -> str:
    """A row for each way of looking."""
    groups = [*GROUPS, DARK, NOBODY]
    counts = [f"{group} ({ways[0].tallies[group].pictures})" for group in groups]
    lines = [f"| model | {' | '.join(counts)} | processor time |", "|---" * (len(groups) + 2) + "|"]
    first = ways[0].spent_s / max(ways[0].looks, 1)
    for look in ways:
        cells = [_cell(look.tallies[group], group) for group in groups]
        lines.append(f"| {look.name} | {' | '.join(cells)} | {look.spent_s / max(look.looks, 1) / first:.1f} |")
    return "\n".join(lines)


def _cell(tally: Tally, group: str) -> str:
    if not tally.pictures:
        return "-"
    found = f"{tally.found / tally.pictures:.0%}"
    return found if group == NOBODY else f"{found}, {tally.trunk / tally.pictures:.0%}"


@figure_command("benchmarks.pose_accuracy.recall")
@click.option(
    "--clips", type=click.Path(exists=True, file_okay=False, path_type=Path), required=True, help="With a truth.yaml."
)
@click.option("--cache", type=click.Path(file_okay=False, path_type=Path), required=True, help="Keeps who is found.")
@click.option("--model", "models", type=click.Path(exists=True, path_type=Path), multiple=True, help="YOLOs of poses.")
def main(figure: Figure, clips: Path, cache: Path, models: tuple[Path, ...]) -> None:
    """Tell whom models find, and of whom they see the trunk, in clips with one person and known events."""
    ways = looks(models)
    finder = Finder(asset_path(_MULTIPOSE), cache)
    for clip in read_truth(clips):
        if clip.people not in (0, 1):
            continue
        for moment in moments_of(clip, clips, finder):
            dark = moment.group != NOBODY and float(moment.picture.mean()) < _DARK_GREY
            for look in ways:
                look.judge(moment, [moment.group, DARK] if dark else [moment.group])
    ms = 1000 * ways[0].spent_s / max(ways[0].looks, 1)
    spent = f"Processor time of a picture on one thread, over that of the first row, which took {ms:.0f} ms. "
    figure.publish(f"{figure.written(but=['cache'])}\n\n{report(ways)}\n\n{spent}{machine_line()}.")


if __name__ == "__main__":
    main()
