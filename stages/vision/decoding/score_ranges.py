"""How sure a model is of people: each kind of model scores in a range of its own.

    0    weak            good     new          sure               1
    +-----+---------------+--------+------------+-----------------+
    nobody  only continues tracks  begins one    confirmed at once

Measured on a street with known people (docs/tracking.md): people whom YOLO finds score 0.79 in the middle and 0.13 in
the lowest fiftieth; with MoveNet MultiPose it is 0.49 and 0.09.
"""

from __future__ import annotations

from typing import NamedTuple


class ScoreRange(NamedTuple):
    """Scores in [0, 1], ascending. `certain`: people from here on count where nobody follows them over time."""

    weak: float
    good: float
    new: float
    sure: float
    certain: float

    def at_least(self, score: float) -> ScoreRange:
        """The same if all people below ``score`` are left out: those who are not are certain."""
        weak, good, new, sure = (max(score, one) for one in self[:4])
        return ScoreRange(weak, good, new, sure, certain=score)


_USUAL = ScoreRange(weak=0.1, good=0.3, new=0.4, sure=0.7, certain=0.3)
_MOVENET = ScoreRange(weak=0.05, good=0.2, new=0.3, sure=0.45, certain=0.2)
_OF_FORMATS = {"movenet_multipose": _MOVENET, "movenet_people": _MOVENET}


def score_range(format_name: str | None) -> ScoreRange:
    """The range of the models of a format; the usual one if it is not known."""
    return _OF_FORMATS.get(format_name or "", _USUAL)
