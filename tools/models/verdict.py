"""Which of the compared models are blessed: those that showed that they lose no more than is allowed. Pure.

What was never measured is no proof: models of other keypoints, frames without anybody, too few frames.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from tools.models.comparison import Compared

ENOUGH_FRAMES = 500


@dataclass(frozen=True)
class Limits:
    """What a model may lose, and how much must have been seen of it.

    ``least``: of people (F1), joints (OKS) and their confidences (F1); ``most_lost``: of AP, absolute;
    ``least_frames``: where no AP is known.
    """

    least: float = 0.95
    most_lost: float = 0.02
    least_frames: int = ENOUGH_FRAMES


def is_blessed(one: Compared, first: Compared, limits: Limits) -> bool:
    """Whether nothing speaks against putting it in the place of the first."""
    return objection(one, first, limits) is None


def objection(one: Compared, first: Compared, limits: Limits) -> str | None:
    """The first of the things that speak against it; None where nothing does."""
    return next(_objections(one, first, limits), None)


def _objections(one: Compared, first: Compared, limits: Limits) -> Iterator[str]:
    """The gravest first."""
    if first.keypoints is None:
        yield "the first dropped all frames"
    if one.dropped:
        yield f"{one.dropped} frame{'' if one.dropped == 1 else 's'} dropped"
    if one.keypoints != first.keypoints:
        yield f"{one.keypoints or 'no'} keypoints, not {first.keypoints or 'none'}"
    if (lost := lost_ap(one, first)) > limits.most_lost:
        yield "no AP to compare" if lost == inf else f"AP {lost:.3f} less"
    yield from _disagreements(one, limits)
    if one.precision is None and one.agreement.frames < limits.least_frames:
        yield f"too few frames to say: {one.agreement.frames} of {limits.least_frames}"


def _disagreements(one: Compared, limits: Limits) -> Iterator[str]:
    found = one.agreement
    if found.f1 is None:
        yield "nobody in these frames"
        return
    if not found.both:
        yield "nobody in both"
    figures = {"people": found.f1}
    if one.keypoints:
        if found.mean_oks is None or found.confidences is None:
            yield "no sure joints to compare"
            return
        figures |= {"OKS": found.mean_oks, "confidences": found.confidences}
    for name, value in figures.items():
        if value < limits.least:
            yield f"{name} below {limits.least:g}"


def lost_ap(one: Compared, first: Compared) -> float:
    """How much less average precision it has than the first; 0 where it has more, or neither has any.

    Infinite where one of them has none: it finds other keypoints than those that are known.
    """
    if one.precision is None or first.precision is None:
        return 0.0 if one.precision is first.precision else inf
    return max(first.precision.ap - one.precision.ap, 0.0)
