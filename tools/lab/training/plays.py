"""What one animated person does: some motions, one after the other, with random lengths, speeds and gestures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from camgraph.tools.scenes.animator import gestures, library
from camgraph.tools.scenes.animator.body import Body, Side, any_body
from camgraph.tools.scenes.animator.motion import Adjust, Motion, Take
from camgraph.tools.scenes.animator.pose import COLUMN, Posture, row_of
from camgraph.tools.scenes.animator.walking import walk

F64 = NDArray[np.float64]
Rng = np.random.Generator
T = TypeVar("T")

FPS = 30

_QUICK_LYING_S = 1.3
"""Whoever lies down in less time drops: that is hardly another thing than a fall."""


@dataclass(frozen=True)
class Span:
    """A gesture from `start_s` to `stop_s`. Without a class, the arms move in a way that is no class."""

    name: str
    start_s: float
    stop_s: float


@dataclass(frozen=True)
class Part:
    """One motion. `kind`: what it is, such as `fall` or `walk`. `spans`: seconds since the motion began."""

    motion: Motion
    kind: str
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True)
class Play:
    """`poses` (T, 32) at `FPS`, the kind of the motion of each (T,), and the gestures in it."""

    body: Body
    poses: F64
    kinds: NDArray[np.str_]
    spans: tuple[Span, ...]


def play(rng: Rng) -> Play:
    """Somebody who starts on their feet, on a chair or on the floor."""
    state, posture = _start(rng)
    body, start = any_body(rng), row_of(posture)
    start[COLUMN["yaw"]] = rng.uniform(-np.pi, np.pi)
    poses, kinds, spans, begun_s = [], [], [], 0.0
    for _ in range(rng.integers(3, 6)):
        part, state = _NEXT[state](rng)
        take, kind = _hurried(part.motion.begin(body, start, rng), part, rng)
        moments = np.arange(max(2, int(take.duration_s * FPS))) / FPS
        poses.append(take.sample(moments))
        kinds += [kind] * len(moments)
        spans += [Span(one.name, begun_s + one.start_s, begun_s + one.stop_s) for one in part.spans]
        start, begun_s = take.end(), begun_s + len(moments) / FPS
    return Play(body, np.concatenate(poses), np.array(kinds), tuple(spans))


def _start(rng: Rng) -> tuple[str, Posture]:
    draw = rng.random()
    if draw < 0.2:
        return "sits", library.SITTING
    if draw < 0.32:
        return "lies", _one(rng, list(library.LYING.values()))
    return "stands", {}


def _hurried(take: Take, part: Part, rng: Rng) -> tuple[Take, str]:
    """Half of the motions without gestures go slower or faster than usual."""
    if part.kind not in ("fall", "walk") and not part.spans and rng.random() < 0.5:
        pace, calm = float(rng.uniform(0.8, 2.2)), take
        take = Take(calm.duration_s / pace, lambda t: calm.sample(t * pace))
    drops = part.kind == "lie down" and take.duration_s < _QUICK_LYING_S
    return take, "drop" if drops else part.kind


# ---- what may come next

_Next = Callable[[Rng], tuple[Part, str]]
"""A part, and the state after it: `stands`, `sits`, `lies`, or `in bed`."""


def _chosen(*choices: tuple[float, _Next]) -> _Next:
    """One of several with their weights."""
    weights = np.array([weight for weight, _ in choices])

    def choose(rng: Rng) -> tuple[Part, str]:
        return choices[rng.choice(len(choices), p=weights / weights.sum())][1](rng)

    return choose


def _then(state: str, kind: str, motion: Callable[[Rng], Motion]) -> _Next:
    return lambda rng: (Part(motion(rng), kind), state)


def _with_arms(state: str, kind: str, motion: Callable[[Rng], Motion]) -> _Next:
    def choose(rng: Rng) -> tuple[Part, str]:
        adjust, spans = _gesture(rng)
        base = motion(rng)
        return Part(base.with_arms(base.name, adjust), kind, spans), state

    return choose


def _fall(rng: Rng) -> Motion:
    seconds = float(rng.uniform(0.5, 1.7))
    lie_s = float(rng.uniform(1, 6))
    way = rng.integers(6)
    if way == 0:
        return library.slump(max(0.8, seconds), lie_s=lie_s)
    if way == 1:
        return library.trip([_place(rng, 6)], rng.uniform(0.8, 1.8), after_s=rng.uniform(0.8, 2), lie_s=lie_s)
    return library.fall(_one(rng, get_args(library.Way)), seconds, lie_s=lie_s)


def _walk(rng: Rng) -> Motion:
    return walk([_place(rng, 4) for _ in range(rng.integers(1, 3))], rng.uniform(0.4, 1.8))


def _run(rng: Rng) -> Motion:
    return walk([_place(rng, 6) for _ in range(rng.integers(1, 3))], rng.uniform(2.4, 4), name="running")


def _place(rng: Rng, far: float) -> tuple[float, float]:
    return float(rng.uniform(-far, far)), float(rng.uniform(-far, far))


def _side(rng: Rng) -> library.LyingSide:
    return _one(rng, tuple(library.LYING))


def _one(rng: Rng, choices: Sequence[T]) -> T:
    return choices[int(rng.integers(len(choices)))]


_NEXT: dict[str, _Next] = {
    "stands": _chosen(
        (30, _then("lies", "fall", _fall)),
        (6, _then("stands", "walk", _walk)),
        (3, _then("stands", "walk", _run)),
        (6, _with_arms("stands", "walk", _walk)),
        (24, _with_arms("stands", "stand", lambda rng: library.standing(rng.uniform(3, 6)))),
        (4, _then("stands", "stand", lambda rng: library.standing(rng.uniform(1, 4)))),
        (2, _then("stands", "stand", lambda rng: library.turning_round())),
        (6, _then("sits", "sit", lambda rng: library.sit_down(rng.uniform(0.5, 2.5)))),
        (5, _then("stands", "bend", lambda rng: library.bend(rng.uniform(0.3, 3)))),
        (5, _then("stands", "crouch", lambda rng: library.crouch(rng.uniform(0.2, 4)))),
        (2, _then("stands", "stoop", lambda rng: library.duck(rng.uniform(0.1, 0.8)))),
        (2, _then("stands", "stoop", lambda rng: library.tie_shoes(rng.uniform(1, 4)))),
        (2, _then("stands", "stoop", lambda rng: library.tie_shoes_bent(rng.uniform(1, 4)))),
        (3, _then("stands", "kneel", lambda rng: library.kneel(rng.uniform(0.5, 4)))),
        (3, _then("stands", "plank", lambda rng: library.push_ups(int(rng.integers(1, 5)), rng.uniform(1, 2.2)))),
        (8, _then("lies", "lie down", lambda rng: library.lie_down(_side(rng), rng.uniform(2.2, 6)))),
        (2, _then("stands", "jump", lambda rng: library.jump(int(rng.integers(1, 4))))),
        (2, _then("stands", "kick", lambda rng: library.kick(int(rng.integers(1, 3))))),
    ),
    "sits": _chosen(
        (35, _with_arms("sits", "sit", lambda rng: library.sitting(rng.uniform(3, 6)))),
        (20, _then("sits", "sit", lambda rng: library.sitting(rng.uniform(2, 6)))),
        (25, _then("stands", "sit", lambda rng: library.stand_up(rng.uniform(0.8, 3)))),
        (
            12,
            _then("lies", "fall", lambda rng: library.fall_from_chair(rng.uniform(0.6, 1.4), lie_s=rng.uniform(1, 6))),
        ),
        (8, _then("in bed", "lie down", lambda rng: library.lie_on_bed(_side(rng), seconds=rng.uniform(2.5, 6)))),
    ),
    "lies": _chosen(
        (40, _then("stands", "get up", lambda rng: library.get_up(rng.uniform(2, 6)))),
        (30, _then("lies", "lie", lambda rng: library.roll_over(_side(rng), rng.uniform(0.8, 3)))),
        (30, _then("lies", "lie", lambda rng: library.waiting(rng.uniform(1, 5)))),
    ),
    "in bed": _chosen(
        (50, _then("sits", "get up", lambda rng: library.rise_from_bed(seconds=rng.uniform(2, 5)))),
        (50, _then("in bed", "lie", lambda rng: library.waiting(rng.uniform(1, 5)))),
    ),
}


# ---- arms

Gesture = Callable[[Rng, float, float], Adjust]


def _hand(rng: Rng) -> Side:
    return "left" if rng.random() < 0.5 else "right"


def _at_the_head(rng: Rng, start: float, stop: float) -> Adjust:
    """A phone or a cup."""
    if rng.random() < 0.5:
        return gestures.phoning(_hand(rng), start, stop)
    return gestures.drinking(_hand(rng), start, stop - start)


def _before_the_belly(rng: Rng, start: float, stop: float) -> Adjust:
    """Arms that do something, and show no class."""
    if rng.random() < 1 / 3:
        return gestures.texting(_hand(rng), start, stop)
    return _one(rng, (gestures.carrying, gestures.typing))(start, stop)


_GESTURES: dict[str, Gesture] = {
    "hands_up": lambda rng, start, stop: gestures.hands_up(start, stop, in_s=rng.uniform(0.3, 0.8)),
    "one_hand_up": lambda rng, start, stop: gestures.one_hand_up(_hand(rng), start, stop),
    "waving": lambda rng, start, stop: gestures.waving(_hand(rng), start, stop, hz=rng.uniform(0.9, 2.4)),
    "calling_for_help": lambda rng, start, stop: gestures.calling_for_help(start, stop, hz=rng.uniform(0.7, 1.8)),
    "hand_to_face": _at_the_head,
    "arms_crossed": lambda rng, start, stop: gestures.arms_crossed(start, stop),
    "reaching": lambda rng, start, stop: gestures.reaching(_hand(rng), start, stop),
    "pointing": lambda rng, start, stop: gestures.pointing(_hand(rng), start, stop),
    "": _before_the_belly,
}
_QUICK_S = 0.45
"""A gesture counts from so long after it begins to so long before it ends: the arms need the time."""


def _gesture(rng: Rng) -> tuple[Adjust, tuple[Span, ...]]:
    name = _one(rng, (*_GESTURES, "punching", "quick raises"))
    start_s = float(rng.uniform(0.3, 1))
    stop_s = start_s + float(rng.uniform(1.5, 5))
    if name == "punching":
        blows = [1.2 + 0.7 * number + float(rng.uniform(0, 0.2)) for number in range(rng.integers(1, 4))]
        spans = [Span(name, at - 0.1, at + 0.4) for at in blows]
        return gestures.punching(_hand(rng), blows), (Span("", 0, blows[-1] + 1.5), *spans)
    if name == "quick raises":
        raises = [0.8 + 1.1 * number for number in range(rng.integers(1, 4))]
        return gestures.quick_raise(raises, rng.uniform(0.2, 0.4)), (Span("", 0, raises[-1] + 1.5),)
    spans = [Span(name, start_s + _QUICK_S, stop_s - _QUICK_S)] if name else []
    return _GESTURES[name](rng, start_s, stop_s), tuple(spans)
