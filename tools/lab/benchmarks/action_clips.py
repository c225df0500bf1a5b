"""The library of actions over real clips: a list of every incident, with a picture of each for somebody to judge.

python -m camgraph.tools.lab.benchmarks.action_clips CLIP... --model MODEL [--model MODEL] [--pictures FOLDER] [--cache
FOLDER]

A CLIP is a video, or a folder of videos. Each is watched by each model as `camgraph watch` would do it, and judged by
every action with its usual values. Actions that need a place get the middle third of the picture as their zone and an
upright line through its middle; some get other values, which `VALUES` lists, because these clips are short. The last
lines have how many an hour that makes, and how many it can be at most: with more, so few would come in one of 20 cases.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import av
import click
import cv2
import numpy as np
from numpy.typing import NDArray

from camgraph.pipeline.messages import Stamp
from camgraph.stages.messages import Tracks
from camgraph.stages.people.track import TrackSettings
from camgraph.stages.rules.language.judge import Judge, Verdict
from camgraph.stages.rules.library import library
from camgraph.stages.rules.onlooker import picture_of
from camgraph.stages.rules.parameters import kind_of
from camgraph.stages.rules.rule_set import RuleSet, parse_rules
from camgraph.stages.vision.decoding.score_ranges import score_range
from camgraph.stages.vision.drawing import draw_caption, draw_people
from camgraph.stages.vision.tracking import Tracker
from camgraph.tools.commands.watching.size import choose_sides, of_files
from camgraph.tools.lab.report_page import at_most
from camgraph.tools.models.pose_estimators import Estimator, Poses, multipose, session, yolo

U8 = NDArray[np.uint8]

VIDEOS = (".mp4", ".mkv", ".avi", ".mov", ".webm")
PLACES = """\
zones: {middle: [[0.33, 0], [0.67, 0], [0.67, 1], [0.33, 1]]}
lines: {middle: {from: [0.5, 1], to: [0.5, 0]}}
"""
VALUES: Mapping[str, dict[str, str]] = {
    "loitering": {"stay": "10s"},
    "crowd": {"more_than": "7"},
    "nobody_there": {"empty": "10s"},
}
BEFORE_S = (1.2, 0.8, 0.4, 0.0)
"""The moments of a picture, before the incident is told."""
CELL_HEIGHT = 240


@dataclass(frozen=True)
class Watched:
    """A clip as a model saw it: the people of each frame."""

    times_ns: Sequence[int]
    found: Sequence[Poses]
    size: tuple[int, int]
    max_fps: float

    @property
    def hours(self) -> float:
        return (self.times_ns[-1] - self.times_ns[0]) / 3.6e12


@dataclass(frozen=True)
class Incident:
    """The start of one: `at_s` and `since_s` in the clip's time, `frame` the number of its frame."""

    clip: Path
    model: str
    action: str
    at_s: float
    since_s: float
    frame: int
    verdict: Verdict

    @property
    def name(self) -> str:
        return f"{self.clip.stem}-{self.model}-{self.action}-{self.at_s:06.1f}"


def videos_in(paths: Sequence[Path]) -> list[Path]:
    """The clips themselves, and those in folders."""
    inside = [sorted(one.iterdir()) if one.is_dir() else [one] for one in paths]
    return [clip for some in inside for clip in some if clip.suffix.lower() in VIDEOS]


def pictures_of(clip: Path, max_fps: float) -> Iterator[tuple[int, U8]]:
    """Time in nanoseconds and picture (H, W, 3) BGR of each frame, at most ``max_fps`` of them a second."""
    next_s = -1.0
    with av.open(str(clip)) as container:
        for number, frame in enumerate(container.decode(video=0)):
            seconds = frame.time if frame.time is not None else number / 25
            if seconds >= next_s - 1e-3:
                next_s = max(next_s + 1 / max_fps, seconds)
                yield round(seconds * 1e9), np.asarray(frame.to_ndarray(format="bgr24"), np.uint8)


# ---- people


def format_of(model: Path) -> str:
    """Which of the two known formats the model's outputs have."""
    return "yolo_pose" if len(session(model).get_outputs()) == 1 else "movenet_multipose"


def estimator(model: Path, clip: Path) -> Estimator:
    """The estimator that `camgraph watch` would set up for this clip."""
    kind = format_of(model)
    weak = score_range(kind).weak
    if kind == "yolo_pose":
        return yolo(session(model), weak)
    return multipose(session(model), choose_sides(model, of_files({"clip": clip}))["clip"].side, weak)


def watched(clip: Path, model: Path, max_fps: float, cache: Path | None) -> Watched:
    """The people that the model finds in a clip; from ``cache``, if it has the answer."""
    kept = cache / f"{clip.stem}-{model.stem}-{max_fps:g}.npz" if cache else None
    if kept and kept.exists():
        with np.load(kept) as stored:
            ends = np.cumsum(stored["counts"])[:-1]
            parts = [np.split(stored[name], ends) for name in Poses._fields]
            people = [Poses(*one) for one in zip(*parts, strict=True)]
            width, height = stored["size"].tolist()
            return Watched(stored["times_ns"].tolist(), people, (width, height), max_fps)
    estimate = estimator(model, clip)
    times, found, size = [], [], (0, 0)
    for time_ns, picture in pictures_of(clip, max_fps):
        times.append(time_ns)
        found.append(estimate(picture))
        size = (picture.shape[1], picture.shape[0])
    if kept:
        kept.parent.mkdir(parents=True, exist_ok=True)
        arrays: dict[str, Any] = {name: np.concatenate([getattr(one, name) for one in found]) for name in Poses._fields}
        arrays |= {"times_ns": times, "counts": [len(one.scores) for one in found], "size": size}
        np.savez_compressed(kept, allow_pickle=False, **{name: np.asarray(values) for name, values in arrays.items()})
    return Watched(times, found, size, max_fps)


def tracks_of(seen: Watched, kind: str) -> Iterator[Tracks]:
    """The tracks that the stage `track` makes of these people."""
    usual = score_range(kind)
    thresholds = {f"{name}_score": getattr(usual, name) for name in ("weak", "good", "new", "sure")}
    tracker = Tracker(TrackSettings.model_validate(thresholds).options())
    for number, (at, found) in enumerate(zip(seen.times_ns, seen.found, strict=True)):
        boxes, scores, joints = (part.astype(np.float64) for part in found)
        followed = tracker.follow(at, boxes, scores, None, joints)
        rows = followed.rows
        people = (found.boxes_xyxy[rows], found.scores[rows], found.keypoints[rows])
        kinds = np.zeros(len(rows), np.int64)
        stamp = Stamp("cam", 0, number, at, at, at, at)
        yield Tracks(stamp, *people, seen.size, kinds, ids=followed.ids, continues=followed.continues)


# ---- actions


def rules_of(actions: Sequence[str]) -> RuleSet:
    """These actions, with a place for those that need one."""
    lines = []
    for action in actions:
        needed = {name: one for name, one in library().templates[action].parameters.items() if one.default is None}
        values = {name: "middle" for name, one in needed.items() if kind_of(one) in ("zone", "line")}
        given = ", ".join(f"{name}: {value}" for name, value in {**values, **VALUES.get(action, {})}.items())
        lines.append(f"  - {{use: {action}, with: {{{given}}}}}\n")
    return parse_rules(f"version: 1\n{PLACES}rules:\n{''.join(lines)}", "library")


def incidents(clip: Path, model: Path, seen: Watched, actions: Sequence[str]) -> list[Incident]:
    """Every incident of a clip."""
    rules = rules_of(actions)
    judge = Judge([one.rule for one in rules.of_camera("cam")], lambda size: rules.surroundings("cam", size))
    found = []
    for number, item in enumerate(tracks_of(seen, format_of(model))):
        for verdict in judge.judge(picture_of(item)):
            if verdict.phase == "start":
                times_s = (item.stamp.time_ns / 1e9, verdict.incident.begun.time_ns / 1e9)
                found.append(Incident(clip, model.stem, verdict.rule.id, *times_s, number, verdict))
    return found


# ---- pictures


def draw(clip: Path, seen: Watched, found: Sequence[Incident], folder: Path) -> None:
    """A picture of each incident: the people of whom it is, at a few moments before it is told."""
    wanted: dict[int, list[tuple[Incident, int]]] = {}
    times = np.array(seen.times_ns)
    for one in found:
        for column, before_s in enumerate(BEFORE_S):
            number = int(np.abs(times - (one.at_s - before_s) * 1e9).argmin())
            wanted.setdefault(number, []).append((one, column))
    cells: dict[tuple[str, tuple[int, ...]], dict[int, U8]] = {}
    for number, (_, picture) in enumerate(pictures_of(clip, seen.max_fps)):
        for one, column in wanted.get(number, ()):
            key = (one.name, one.verdict.ids)
            cells.setdefault(key, {})[column] = _cell(picture, seen.found[number], one, number == one.frame)
    folder.mkdir(parents=True, exist_ok=True)
    for one in found:
        row = cells[(one.name, one.verdict.ids)]
        strip = np.concatenate([row[column] for column in sorted(row)], axis=1)
        draw_caption(strip, f"{one.action} {one.at_s:.1f} s", one.model)
        ids = "_".join(map(str, one.verdict.ids)) or "all"
        cv2.imwrite(str(folder / f"{one.name}-{ids}.jpg"), strip, [cv2.IMWRITE_JPEG_QUALITY, 78])


def _cell(picture: U8, found: Poses, one: Incident, told: bool) -> U8:
    """The part of a frame around the incident's people, with everybody's joints."""
    shown = picture.copy()
    certain = np.flatnonzero(found.scores >= 0.15)
    numbers = list(range(len(certain)))
    joints, boxes = found.keypoints[certain], np.full((len(certain), 4), np.nan, np.float32)
    draw_people(shown, boxes, joints, numbers, [""] * len(numbers), min_confidence=0.2)
    height, width = picture.shape[:2]
    area = np.array([0, 0, width, height])
    if one.verdict.rows:
        people = one.verdict.picture.boxes[list(one.verdict.rows)]
        low, high = people[:, :2].min(axis=0), people[:, 2:].max(axis=0)
        middle, side = (low + high) / 2, 1.35 * float((high - low).max())
        if told:
            cv2.rectangle(shown, low.astype(int).tolist(), high.astype(int).tolist(), (50, 50, 240), 1)
        area = np.concatenate([middle - side / 2, middle + side / 2]).round().astype(int)
    left, top, right, bottom = np.clip(area, 0, [width, height, width, height])
    cut = shown[top:bottom, left:right]
    scale = CELL_HEIGHT / cut.shape[0]
    resized = cv2.resize(cut, (max(1, round(cut.shape[1] * scale)), CELL_HEIGHT), interpolation=cv2.INTER_AREA)
    return np.asarray(resized, np.uint8)


# ---- the list


def listed(found: Sequence[Incident], hours: Mapping[str, float], actions: Sequence[str]) -> Iterator[str]:
    """A line for each incident, and how many an hour each action makes on all clips together."""
    for one in sorted(found, key=lambda one: (one.clip.name, one.model, one.action, one.at_s)):
        people = " and ".join(map(str, one.verdict.ids)) or "-"
        lasted = one.at_s - one.since_s
        yield f"{one.clip.name}  {one.model}  {one.action}  {one.at_s:.1f} s (for {lasted:.1f} s)  of {people}"
    by_kind = sorted(found, key=lambda one: (one.model, one.action))
    for (model, action), some in groupby(by_kind, key=lambda one: (one.model, one.action)):
        count = len(list(some))
        often = f"{count / hours[model]:.0f} an hour, at most {at_most(count, hours[model]):.0f}"
        yield f"{model}  {action}: {count} in {60 * hours[model]:.1f} minutes, {often}"
    for model, watched_h in hours.items():
        silent = sorted(set(actions) - {one.action for one in found if one.model == model})
        limit = f"{60 * watched_h:.1f} minutes, at most {at_most(0, watched_h):.0f} an hour"
        yield f"{model}  none in {limit}: {', '.join(silent)}"


@click.command()
@click.argument("clips", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("--model", "models", multiple=True, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("--action", "actions", multiple=True, help="Only this action; may be given several times.")
@click.option("--max-fps", default=30.0, show_default=True, help="Take at most so many frames a second.")
@click.option("--pictures", type=click.Path(path_type=Path), help="Draw each incident into this folder.")
@click.option("--cache", type=click.Path(path_type=Path), help="Keep here whom the models find, for the next time.")
def main(
    *,
    clips: tuple[Path, ...],
    models: tuple[Path, ...],
    actions: tuple[str, ...],
    max_fps: float,
    pictures: Path | None,
    cache: Path | None,
) -> None:
    """List what the library of actions finds in clips."""
    found: list[Incident] = []
    hours: dict[str, float] = {}
    for clip in videos_in(clips):
        for model in models:
            seen = watched(clip, model, max_fps, cache)
            some = incidents(clip, model, seen, actions or tuple(library().templates))
            found += some
            hours[model.stem] = hours.get(model.stem, 0.0) + seen.hours
            if pictures:
                draw(clip, seen, some, pictures)
    click.echo("\n".join(listed(found, hours, actions or tuple(library().templates))))


if __name__ == "__main__":
    main()
