"""Which of the compared models are blessed: those that showed that they lose no more than is allowed. Pure.

Without a measurement there is no proof: models of other keypoints, frames without anybody, too few frames. A verdict
names its comparisons: a detector has no keypoints, and is good by its boxes, scores and classes alone, and a classifier
by its classes and their scores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from camgraph.tools.models.compare.agreement import OFTEN
from camgraph.tools.models.compare.comparison import Compared

ENOUGH_FRAMES = 500
ENOUGH_PICTURES = 100
ENOUGH_PEOPLE = 200
"""A person that only one of two models finds moves AP by about 1 / 200 then; the allowed loss of 0.02 is four."""


@dataclass(frozen=True)
class Limits:
    """The allowed losses of a model, and how much must have been seen of it.

    ``least``: of people (F1), their scores and classes, joints (OKS) and their confidences (F1); ``most_lost``: of AP,
    absolute; ``least_frames``: if no AP is known, or too few labels: fewer than ``least_pictures`` with
    ``least_people``.
    """

    least: float = 0.95
    most_lost: float = 0.02
    least_frames: int = ENOUGH_FRAMES
    least_pictures: int = ENOUGH_PICTURES
    least_people: int = ENOUGH_PEOPLE


def is_blessed(one: Compared, first: Compared, limits: Limits) -> bool:
    """Whether nothing speaks against putting it in the place of the first."""
    return objection(one, first, limits) is None


def objection(one: Compared, first: Compared, limits: Limits) -> str | None:
    """The first of the things that speak against it; None if nothing does."""
    return next(_objections(one, first, limits), None)


def _objections(one: Compared, first: Compared, limits: Limits) -> Iterator[str]:
    """The gravest first."""
    if first.keypoints is None:
        yield "the first dropped all frames"
    if one.dropped:
        yield f"{one.dropped} frame{'' if one.dropped == 1 else 's'} dropped"
    if one.keypoints != first.keypoints:
        yield f"{one.keypoints or 'no'} keypoints, not {first.keypoints or 'none'}"
    if one.is_unclear or first.is_unclear:
        yield "scores from 0 to 1 that do not add up to 1: add --activation"
    if (lost := lost_ap(one, first)) > limits.most_lost:
        yield "no AP to compare" if lost == inf else f"AP {lost:.3f} less"
    yield from _disagreements(one, limits)
    if one.agreement.frames < limits.least_frames:
        yield from _too_little(one, limits)


def _too_little(one: Compared, limits: Limits) -> Iterator[str]:
    """If there are labels, they prove more than many frames, unless they are too few themselves."""
    pictures, people = one.labelled
    if one.precision is None:
        yield f"too few frames to say: {one.agreement.frames} of {limits.least_frames}"
    elif pictures < limits.least_pictures or people < limits.least_people:
        yield (
            f"too few labels to say: {pictures} pictures of {limits.least_pictures}, "
            f"{people} people of {limits.least_people}"
        )


def _disagreements(one: Compared, limits: Limits) -> Iterator[str]:
    found = one.agreement
    if found.f1 is None:
        yield "nobody in these frames"
        return
    if found.scores is None or found.classes is None:
        yield "nobody in both"
        return
    figures = {"people": found.f1, "classes": found.classes, "scores": found.scores}
    if one.classifies:
        del figures["people"]  # it calls each frame something
        if found.classes_alike is not None:
            figures["classes, counted alike,"] = found.classes_alike
    if one.keypoints:
        if found.mean_oks is None or found.confidences is None:
            yield "no sure joints to compare"
            return
        figures |= {"OKS": found.mean_oks, "confidences": found.confidences}
    for name, value in figures.items():
        if value < limits.least:
            yield f"{name} below {limits.least:g}"
    if one.classifies and found.classes_alike is None:
        yield f"fewer than two classes in {OFTEN} frames or more"


def compared_parts(one: Compared) -> tuple[str, ...]:
    """The comparisons of a model with the first one."""
    parts = ["classes", "scores"] if one.classifies else ["boxes", "scores", "classes"]
    if not one.agreement.both:
        parts = []
    if one.keypoints and one.agreement.oks:
        parts.append("keypoints")
    return (*parts, *(["AP"] if one.precision is not None else []))


def lost_ap(one: Compared, first: Compared) -> float:
    """How much less average precision it has than the first; 0 if it has more, or neither has any.

    Infinite if one of them has none: it finds other keypoints than the known ones.
    """
    if one.precision is None or first.precision is None:
        return 0.0 if one.precision is first.precision else inf
    return max(first.precision.ap - one.precision.ap, 0.0)
