"""What was found, missed and told falsely: the incidents of a clip against its truth.

A fall is found if one is told from 0.5 s before its beginning to 2 s after somebody is no longer down. If it is told
again in this time, that is counted by itself. Each other one is false, unless it is told of a fall that is not `sure`.
Another action is found if one of its incidents runs in the time of an event; between two events nothing is claimed, so
it is false only in clips whose `right_actions` do not name it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tools.benchmarks.real_actions.incidents import Told
from tools.benchmarks.real_actions.truth import EARLY_S, FALL, LATE_S, Clip, Happening


@dataclass
class Score:
    """Of one action. `delays_s`: from the end of a fall, or the beginning of another action, until it was told.

    `ordinary_s`: how long the clips are in which nobody does it.
    """

    found: list[tuple[Clip, Happening]] = field(default_factory=list)
    missed: list[tuple[Clip, Happening]] = field(default_factory=list)
    false: list[tuple[Clip, Told]] = field(default_factory=list)
    again: list[tuple[Clip, Told]] = field(default_factory=list)
    delays_s: list[float] = field(default_factory=list)
    ordinary_s: float = 0.0

    @property
    def events(self) -> int:
        return len(self.found) + len(self.missed)

    def add(self, other: Score) -> None:
        self.found += other.found
        self.missed += other.missed
        self.false += other.false
        self.again += other.again
        self.delays_s += other.delays_s
        self.ordinary_s += other.ordinary_s


def score(action: str, clip: Clip, told: Sequence[Told]) -> Score:
    """`told`: all incidents of the clip."""
    own = [one for one in told if one.action == action]
    result = _of_falls(clip, own) if action == FALL else _of_others(action, clip, own)
    result.ordinary_s = 0.0 if action in clip.named else clip.duration_s
    return result


def _of_falls(clip: Clip, told: Sequence[Told]) -> Score:
    result, found = Score(), list[Happening]()
    falls, unsure = clip.of(FALL, sure=True), clip.of(FALL, sure=False)
    for one in told:
        meant = [fall for fall in falls if fall.is_told_at(one.at_s)]
        # If two falls overlap, the later one is meant: of the earlier one it would have been told before.
        new = max((fall for fall in meant if fall not in found), key=lambda fall: fall.start_s, default=None)
        if new:
            found.append(new)
            result.delays_s.append(one.at_s - new.end_s)
        elif meant:
            result.again.append((clip, one))
        elif not any(fall.is_told_at(one.at_s) for fall in unsure):
            result.false.append((clip, one))
    result.found = [(clip, fall) for fall in falls if fall in found]
    result.missed = [(clip, fall) for fall in falls if fall not in found]
    return result


def _of_others(action: str, clip: Clip, told: Sequence[Told]) -> Score:
    result = Score()
    for event in clip.of(action, sure=True):
        own = [one for one in told if one.at_s <= event.over_s + LATE_S and one.until_s >= event.start_s - EARLY_S]
        (result.found if own else result.missed).append((clip, event))
        if own:
            result.delays_s.append(max(0.0, own[0].at_s - event.start_s))
    if action not in clip.right_actions:
        result.false = [(clip, one) for one in told]
    return result
