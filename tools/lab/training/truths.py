"""Which classes of `looks_like` the poses of a play show, moment by moment.

Postures are judged by the angles of the body, motions by their kind and speed, gestures by their spans. Moments at
which nobody could say, such as half-way into a crouch, are neither true nor false: the network does not learn them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from camgraph.stages.vision.posture import CLASSES
from camgraph.tools.lab.training.plays import FPS, Play, Span
from camgraph.tools.scenes.animator.body import NODE

F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

COLUMN = {name: number for number, name in enumerate(CLASSES)}

_HOLD_S = 0.4
"""A posture is true if it was kept for so long, and false if it was not taken for so long."""
_RECENT_S = 0.7
"""A jump, kick or blow is still seen in the window for so long."""
_DOWN = 0.32
"""The neck of somebody who has fallen is below this part of their height."""
_FALL_EARLY_S, _FALL_LATE_S = 0.05, 1.0
"""A fall is true from just before the body is down until a second later."""
_FALL_UNSURE_S = (0.35, 0.8)
_FADE_S = (0.15, 0.5)
"""Around a gesture, for so long before and after it, nobody could say."""
_SWINGS_S = 0.55
"""Waving is waving after so long."""
_ALIKE = {
    "waving": ("one_hand_up", "reaching", "pointing"),
    "calling_for_help": ("hands_up", "waving"),
    "hands_up": ("calling_for_help",),
    "one_hand_up": ("reaching", "waving"),
    "reaching": ("one_hand_up", "pointing"),
    "pointing": ("reaching",),
}
"""While one class is shown, these others are neither true nor false."""
_ARM_CLASSES = ("hands_up", "one_hand_up", "calling_for_help", "reaching", "pointing")
_UNSURE = {
    "crouching": ("stoop", "plank", "get up", "lie down", "drop"),
    "bending": ("plank",),
    "kneeling": ("stoop", "plank", "get up", "lie down", "drop"),
    "sitting": ("crouch", "get up", "lie down", "drop"),
    "fall": ("drop",),
}
"""During motions of these kinds, a class is never false."""


@dataclass(frozen=True)
class Truths:
    """(T, C) each: whether a class is true, and whether it is known."""

    true: Mask
    known: Mask


def truths(play: Play, nodes: F64) -> Truths:
    """`nodes` (T, 28, 3): the body in the world, metres."""
    shape = len(nodes), len(CLASSES)
    found = Truths(np.zeros(shape, bool), np.ones(shape, bool))
    for name, shown in _postures(play, nodes).items():
        always, never = _kept(shown, round(_HOLD_S * FPS))
        found.true[:, COLUMN[name]], found.known[:, COLUMN[name]] = always, always | never
    for name, kinds in _UNSURE.items():
        column = COLUMN[name]
        found.known[np.isin(play.kinds, kinds) & ~found.true[:, column], column] = False
    _add_quick(found, play, nodes)
    for span in play.spans:
        _add_gesture(found, span)
    _add_falls(found, play, nodes)
    return found


def _postures(play: Play, nodes: F64) -> dict[str, Mask]:
    kinds, height = play.kinds, play.body.height

    def node(name: str) -> F64:
        return np.asarray(nodes[:, NODE[name]])

    def both(first: str, second: str) -> F64:
        """(T, 2) degrees by which the left and the right limb are turned away from hanging down."""
        return np.stack([180 - _upright(node(f"{s}_{second}") - node(f"{s}_{first}")) for s in ("left", "right")], 1)

    trunk = _upright(node("neck") - node("pelvis"))
    thighs, shins = both("hip", "knee"), both("knee", "ankle")
    knees = np.stack(
        [180 - _between(node(f"{s}_hip"), node(f"{s}_knee"), node(f"{s}_ankle")) for s in ("left", "right")], 1
    )
    hips = node("pelvis")[:, 2] / height
    speed = _speed(node("pelvis")[:, :2])
    return {
        "lying": (trunk > 60) & (thighs.min(1) > 35) & (kinds != "plank"),
        "sitting": (trunk < 50)
        & (thighs.max(1) > 62)
        & (thighs.min(1) > 50)
        & (shins.min(1) < 45)
        & (hips > 0.2)
        & np.isin(kinds, ("sit", "get up", "lie down", "drop")),
        "crouching": (hips < 0.36)
        & (trunk < 75)
        & (knees.min(1) > 80)
        & (shins.min(1) < 60)
        & np.isin(kinds, ("crouch", "stoop", "plank", "lie down", "drop")),
        "bending": (trunk > 50) & (trunk < 125) & (knees.max(1) < 55) & (shins.max(1) < 45) & (hips > 0.4),
        "kneeling": (hips < 0.42) & (trunk < 50) & (knees.max(1) > 70) & np.isin(kinds, ("kneel", "get up")),
        "standing": (trunk < 30) & (thighs.max(1) < 25) & (speed < 0.25) & (hips > 0.45),
        "walking": (kinds == "walk") & (speed > 0.35) & (speed < 2.1),
        "running": (kinds == "walk") & (speed > 2.3),
    }


def _upright(way: F64) -> F64:
    """(T,) degrees between a direction (T, 3) and upwards."""
    return np.asarray(np.degrees(np.arccos(np.clip(way[:, 2] / np.maximum(np.linalg.norm(way, axis=1), 1e-9), -1, 1))))


def _between(first: F64, middle: F64, last: F64) -> F64:
    """(T,) degrees at the middle one of three nodes."""
    one, other = first - middle, last - middle
    lengths = np.maximum(np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1), 1e-9)
    return np.asarray(np.degrees(np.arccos(np.clip((one * other).sum(axis=1) / lengths, -1, 1))))


def _speed(places: F64) -> F64:
    """(T,) metres a second, over half a second."""
    steps = np.linalg.norm(np.gradient(places, 1 / FPS, axis=0), axis=1)
    reach = FPS // 2
    return np.convolve(steps, np.ones(reach) / reach, "same")


def _kept(shown: Mask, count: int) -> tuple[Mask, Mask]:
    """Whether it was shown in all, and in none, of the last `count` frames."""
    total = np.concatenate([[0], np.cumsum(shown)])
    end = np.arange(1, len(total))
    begin = np.maximum(0, end - count)
    times = total[end] - total[begin]
    return times == end - begin, times == 0


def _add_quick(found: Truths, play: Play, nodes: F64) -> None:
    """Jumps and kicks are true for a moment, and unknown during the rest of the motion."""
    height = play.body.height
    ankles = nodes[:, [NODE["left_ankle"], NODE["right_ankle"]], 2] / height
    for name, kind, shown in (("jumping", "jump", ankles.min(1) > 0.1), ("kicking", "kick", ankles.max(1) > 0.16)):
        lately = ~_kept(shown & (play.kinds == kind), round(_RECENT_S * FPS))[1]
        column = COLUMN[name]
        found.true[:, column] = lately
        found.known[(play.kinds == kind) & ~lately, column] = False


def _add_gesture(found: Truths, span: Span) -> None:
    begin, end = round(span.start_s * FPS), round(span.stop_s * FPS)
    around = slice(max(0, begin - round(_FADE_S[0] * FPS)), end + round((_FADE_S[1] + 0.4) * FPS))
    unsure = _ALIKE.get(span.name, ()) if span.name else _ARM_CLASSES
    found.known[around, [COLUMN[name] for name in unsure]] = False
    if not span.name:
        return
    column = COLUMN[span.name]
    found.known[around, column] = False
    late_s = _SWINGS_S if span.name in ("waving", "calling_for_help") else 0.0
    during = slice(begin + round(late_s * FPS), end)
    found.true[during, column] = found.known[during, column] = True


def _add_falls(found: Truths, play: Play, nodes: F64) -> None:
    low = nodes[:, NODE["neck"], 2] / play.body.height < _DOWN
    falls = play.kinds == "fall"
    begins = np.flatnonzero(falls & ~np.concatenate([[False], falls[:-1]]))
    column, (before_s, after_s) = COLUMN["fall"], _FALL_UNSURE_S
    for begin in begins:
        still = np.flatnonzero(~falls[begin:])
        end = begin + still[0] if len(still) else len(falls)
        down = np.flatnonzero(low[begin:end])
        if not len(down):
            continue
        first = begin + down[0] - round(_FALL_EARLY_S * FPS)
        last = begin + down[0] + round(_FALL_LATE_S * FPS)
        found.known[max(0, first - round(before_s * FPS)) : last + round(after_s * FPS), column] = False
        found.true[max(0, first) : last, column] = found.known[max(0, first) : last, column] = True
