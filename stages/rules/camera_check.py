"""Whether rules, zones and lines are for cameras that there are, and lie within their frames. Pure.

A rule for a camera that nobody has would never fire, and nobody would know: that is a mistake, unless the camera stands
under `other_cameras`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from camgraph.pipeline.system.spelling import did_you_mean
from camgraph.stages.rules.language.geometry import is_fraction, outside
from camgraph.stages.rules.language.people import Point
from camgraph.stages.rules.rule_file import EVERY_CAMERA, RuleDefinition, RuleFile, duration_ns, for_camera

FrameSizes = Mapping[str, tuple[int, int] | None]
"""Camera -> width and height of its frames in pixels, None if only opening it would tell."""
Found = tuple[tuple[str | int, ...], str]
"""The path of a key in a file of rules, and the mistake there."""
Used = Mapping[int, tuple[Collection[str], Collection[str]]]
"""Rule, by its place -> the zones and the lines that it uses."""
_SHOWN = 6
_OF_MOTION = re.compile(r"\bspeed\b|\bage\s*>=?|\bcrosses\b|\benters\b|\bleaves\b")


def camera_faults(file: RuleFile, used: Used, sizes: FrameSizes) -> Iterator[Found]:
    """Mistakes in these rules for these cameras. `used`: of the rules whose conditions could be read."""
    for index, rule in enumerate(file.rules):
        yield from _names_of_rule(file, rule, index, used, sizes)
    for path, per_camera in _shapes(file):
        yield from _names_of_shape(path, per_camera, file.other_cameras, sizes)
    yield from _names_of_shape(("lenses",), file.lenses, file.other_cameras, sizes)
    yield from outside_frames(file, sizes)


def override_faults(file: RuleFile, sizes: FrameSizes) -> Iterator[Found]:
    """Cameras under `per_camera` that there are not, or that the rule is not for."""
    for index, rule in enumerate(file.rules):
        for pattern in rule.per_camera:
            path = ("rules", index, "per_camera", pattern)
            if not _known(pattern, sizes, file.other_cameras):
                yield path, _no_camera(pattern, sizes)
            elif pattern in sizes and not any(fnmatchcase(pattern, name) for name in rule.cameras):
                yield path, f"the rule is not for `{pattern}`: it has `cameras: [{', '.join(rule.cameras)}]`"


def outside_frames(file: RuleFile, sizes: FrameSizes) -> Iterator[Found]:
    """Pixels beyond the frame: if they were measured in a picture of another size, nobody would ever be inside."""
    for path, per_camera in _shapes(file):
        yield from _outside_frames(path, per_camera, sizes)


def _shapes(file: RuleFile) -> Iterator[tuple[tuple[str, str], Mapping[str, Any]]]:
    """All zones and lines, each with its path."""
    for kind, shapes in (("zones", file.zones), ("lines", file.lines)):
        for name, per_camera in shapes.items():
            yield (kind, name), per_camera


def unwatched(file: RuleFile, used: Used, sizes: FrameSizes) -> Iterator[str]:
    """In words, the cameras that no rule is for."""
    named = {pattern for rule in file.rules for pattern in rule.cameras} | set(file.other_cameras)
    for camera in sizes:
        if not any(_is_for(file, rule, used.get(index), camera) for index, rule in enumerate(file.rules)):
            yield f"no rule is for the camera {camera}{did_you_mean(camera, named - {camera})}"


def impossible_alone(file: RuleFile, cameras: Sequence[str], looking_back: Collection[str] = ()) -> Iterator[str]:
    """In words, features that rules use but photographs, each a moment by itself, do not have.

    `looking_back`: the ids of the rules whose conditions have a part that looks back in time.
    """
    for rule in file.rules:
        named = ", ".join(camera for camera in cameras if any(fnmatchcase(camera, name) for name in rule.cameras))
        word = _OF_MOTION.search(rule.when)
        if named and duration_ns(rule.for_):
            yield (
                f"the rule {rule.id} cannot be true of {named}: it asks for `for: {rule.for_}`, and photographs are "
                "judged one by one"
            )
        elif named and word:
            yield f"the rule {rule.id} asks for `{word[0]}`, and nothing moves in the photographs of {named}"
        elif named and rule.id in looking_back:
            yield f"the rule {rule.id} looks back in time, and nothing came before each of the photographs of {named}"


_SLACK = 0.9
"""Of the frames that a rule needs: a camera of 7.5 frames a second is as good as one of 8."""


def too_few_frames(rules: Iterable[RuleDefinition], rates: Mapping[str, float]) -> Iterator[str]:
    """In words, rules that need more frames a second than their cameras bring. `rates`: frames a second, at most."""
    for rule in rules:
        few = [
            f"{camera} brings {rate:.3g}"
            for camera, rate in rates.items()
            if any(fnmatchcase(camera, name) for name in rule.cameras) and rate < _SLACK * (rule.least_fps or 0)
        ]
        if few:
            yield f"the rule {rule.id} needs {rule.least_fps:g} frames a second, or it misses most: {', '.join(few)}"


def _is_for(
    file: RuleFile, rule: RuleDefinition, uses: tuple[Collection[str], Collection[str]] | None, camera: str
) -> bool:
    fits = any(fnmatchcase(camera, pattern) for pattern in rule.cameras)
    return fits and (uses is None or not _missing(file, uses, camera))


def _missing(file: RuleFile, uses: tuple[Collection[str], Collection[str]], camera: str) -> list[str]:
    """The zones and lines that a rule uses and a camera does not have, in words."""
    zones, lines = uses
    missing = [f"zone `{name}`" for name in sorted(zones) if _lacks(file.zones.get(name), camera)]
    return missing + [f"line `{name}`" for name in sorted(lines) if _lacks(file.lines.get(name), camera)]


def _lacks(per_camera: Mapping[str, Any] | None, camera: str) -> bool:
    """Whether a shape is not drawn for the camera. `per_camera`: None for one that could not be read."""
    return per_camera is not None and not for_camera(per_camera, camera)


def _names_of_rule(file: RuleFile, rule: RuleDefinition, index: int, used: Used, sizes: FrameSizes) -> Iterator[Found]:
    wrong = False
    for at, pattern in enumerate(rule.cameras):
        path = ("rules", index, "cameras", at)
        if not _known(pattern, sizes, file.other_cameras):
            wrong = True
            yield path, _no_camera(pattern, sizes)
        elif pattern in sizes and (missing := index in used and _missing(file, used[index], pattern)):
            wrong = True
            yield path, f"`{pattern}` has no {' and no '.join(missing)}, so this rule would never fire there: draw it"
    if wrong or file.other_cameras or not sizes:
        return
    if not any(_is_for(file, rule, used.get(index), camera) for camera in sizes):
        yield (
            ("rules", index),
            "no camera has all the zones and lines that this rule uses, so it would never fire: draw them for one",
        )


def _names_of_shape(
    path: tuple[str, ...], per_camera: Iterable[str], others: Sequence[str], sizes: FrameSizes
) -> Iterator[Found]:
    for camera in per_camera:
        if camera == EVERY_CAMERA or camera in sizes or any(fnmatchcase(camera, other) for other in others):
            continue
        if _is_pattern(camera):
            yield (*path, camera), f'expected the name of one camera or "*" for every other, got the pattern `{camera}`'
        else:
            yield (*path, camera), _no_camera(camera, sizes)


def _known(pattern: str, cameras: Iterable[str], others: Sequence[str]) -> bool:
    """Whether a name or pattern is for any camera."""
    if pattern == EVERY_CAMERA or any(fnmatchcase(camera, pattern) for camera in cameras):
        return True
    return any(fnmatchcase(pattern, other) or fnmatchcase(other, pattern) for other in others)


def _is_pattern(text: str) -> bool:
    return re.search(r"[*?\[]", text) is not None


def _no_camera(pattern: str, cameras: FrameSizes) -> str:
    listed = ", ".join([*list(cameras)[:_SHOWN], *(["..."] if len(cameras) > _SHOWN else [])])
    what = f"fits `{pattern}`" if _is_pattern(pattern) else f"is called `{pattern}`"
    guess = did_you_mean(pattern, cameras) or (f"; there is {listed}" if listed else "")
    return f"no camera of the graph {what}{guess} (one that comes later belongs under `other_cameras`)"


# ---- frames


def _outside_frames(path: tuple[str, str], per_camera: Mapping[str, Any], sizes: FrameSizes) -> Iterator[Found]:
    for written, shape in per_camera.items():
        own = {written: sizes.get(written)} if written != EVERY_CAMERA else sizes
        affected = {camera: size for camera, size in own.items() if size and for_camera(per_camera, camera) is shape}
        for camera, size in affected.items():
            found = _first_outside(shape, size)
            if found:
                where, point = found
                at = (*path, *(() if written == EVERY_CAMERA else (written,)), where)
                yield at, _too_far(point, camera, size)
                break  # of many cameras one is named


def _too_far(point: Point, camera: str, size: tuple[int, int]) -> str:
    return (
        f"({point[0]:g}, {point[1]:g}) lies outside of the frames of `{camera}`, which are {size[0]} x {size[1]}: "
        "measure in a picture of that size, or give fractions from 0 to 1"
    )


def _first_outside(shape: Any, size: tuple[int, int]) -> tuple[str | int, Point] | None:
    points: dict[str | int, Point] = (
        dict(enumerate(shape)) if isinstance(shape, list) else {"from": shape.from_, "to": shape.to}
    )
    if is_fraction(list(points.values())):
        return None
    return next(((at, point) for at, point in points.items() if outside(point, size)), None)
