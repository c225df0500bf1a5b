"""Remarks on rules that are right, but perhaps not intended: each with the path of the key that it is about. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from camgraph.stages.rules.camera_check import Found
from camgraph.stages.rules.fault import KeyPath
from camgraph.stages.rules.language.condition import Condition
from camgraph.stages.rules.language.people import Point
from camgraph.stages.rules.rule_file import EVERY_CAMERA, RuleFile
from camgraph.stages.rules.schedule import PeriodDefinition

_MOST_PERCENT = 100
Judged = tuple[KeyPath, str, Condition]
"""A condition of a rule: its path, the rule's id, and what was compiled."""


def remarks_on(file: RuleFile, conditions: Iterable[Judged]) -> Iterator[Found]:
    """All remarks on a file, and on those of its conditions that are right."""
    for path, rule_id, condition in conditions:
        for text in condition.never:
            yield path, f"the rule {rule_id}: {text}"
    for kind, shapes in (("zones", file.zones), ("lines", file.lines)):
        for name, per_camera in shapes.items():
            for camera, shape in per_camera.items():
                path = (kind, name) if camera == EVERY_CAMERA else (kind, name, camera)
                yield from _perhaps_percent(path, f"the {kind[:-1]} {name}", shape)
    for name, periods in file.schedules.items():
        yield from _whole_days(name, periods)
    yield from _cautions(file)


def _cautions(file: RuleFile) -> Iterator[Found]:
    for index, rule in enumerate(file.rules):
        if rule.caution:
            yield ("rules", index), f"do not rely on the rule {rule.id}: {rule.caution}"


def _perhaps_percent(path: KeyPath, what: str, shape: Any) -> Iterator[Found]:
    """Pixels near the corner, which somebody may have meant as percent."""
    points: Sequence[Point] = shape if isinstance(shape, list) else (shape.from_, shape.to)
    values = [value for point in points for value in point]
    if max(values) > _MOST_PERCENT or any(0 < value <= 1 for value in values) or max(values) <= 1:
        return
    width, height = (max(axis) - min(axis) for axis in zip(*points, strict=True))
    x, y = points[0]
    yield (
        path,
        f"{what} is in pixels, as numbers above 1 are: {width:g} x {height:g} pixels in the upper left corner; shares "
        f"of the frame are from 0 to 1, so for percent write [{x / 100:g}, {y / 100:g}] instead of [{x:g}, {y:g}]",
    )


def _whole_days(name: str, periods: Sequence[PeriodDefinition]) -> Iterator[Found]:
    for at, period in enumerate(periods):
        if period.from_ == period.to:
            path = ("schedules", name, at) if len(periods) > 1 else ("schedules", name)
            yield path, f"the schedule {name}: from {period.from_} to {period.to} is 24 hours, to the next day"
