"""Conditions of one's own for rules: a function of somebody and their past, which rules call by its name.

    from camgraph.stages.rules.conditions import Answer, Past, Seconds, condition

    @condition(past_s=2)
    def holds_still(past: Past, up_to: float = 0.05, over: Seconds = 1.0) -> Answer:
        recent = past.boxes[past.times_s >= -over]
        moved = float((recent[:, :2].max(axis=0) - recent[:, :2].min(axis=0)).max() / past.height)
        return Answer(moved < up_to, moved=moved)

`docs/write_a_condition.md` says how a package brings such a function, and how rules use it: `when: holds_still(0.02)`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from camgraph.stages.vision.skeleton import COCO_17

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

ParameterKind = Literal["number", "time", "length", "angle", "joint", "word"]
Gives = Literal["truth", "number", "time", "length", "angle", "rate"]

Seconds = Annotated[float, "time"]
"""A parameter that rules give as a time: `2s`."""
Pixels = Annotated[float, "length"]
"""A parameter that rules give as a length: `0.3bl`. The function gets it in pixels."""
Degrees = Annotated[float, "angle"]
"""A parameter that rules give as an angle: `60deg`."""
Joint = Annotated[str, "joint"]
"""A parameter that rules give as a joint: `left_wrist`."""

LONGEST_S = 600.0
MOST_PARAMETERS = 8
MOST_REPORTED = 16
MOST_CHARACTERS = 200


@dataclass(frozen=True)
class Past:
    """Somebody now and before: one row for each frame in which they were seen, the newest last. Read-only.

    `times_s` (T,): seconds, 0 for the present frame and negative before it. `boxes` (T, 4): xyxy. `scores` (T,).
    `keypoints` (T, 17, 3): x, y, confidence, in the order of COCO; x and y are NaN for joints below the rule's
    `min_confidence`. All in pixels of the frame, x to the right, y down. `frame_size`: width and height.

    T is at least 1. At high frame rates a long past is thinned evenly to at most 256 rows.
    """

    times_s: F64
    boxes: F32
    scores: F32
    keypoints: F32
    frame_size: tuple[int, int]

    def __len__(self) -> int:
        return len(self.times_s)

    @property
    def seconds(self) -> float:
        """How far back the oldest row lies."""
        return -float(self.times_s[0])

    @property
    def height(self) -> float:
        """Of the box now, in pixels."""
        return float(self.boxes[-1, 3] - self.boxes[-1, 1])

    def joint(self, name: str) -> F32:
        """(T, 3): x, y, confidence of `left_wrist` and the like."""
        row: F32 = self.keypoints[:, COCO_17.index(name)]
        return row


@dataclass(frozen=True, init=False)
class Answer:
    """An answer, with values that explain it: events have them under `evidence`.

    `value`: True, False or None (unknown), or a number if the function gives one.
    """

    value: Any
    reported: Mapping[str, float | str | bool]

    def __init__(self, value: Any, **reported: float | str | bool) -> None:
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "reported", reported)


@dataclass(frozen=True)
class Parameter:
    """`choices`: of a word, the words that it may be."""

    name: str
    kind: ParameterKind
    required: bool
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Declared:
    """How rules may call a function. `every_s`: it is asked so often, and its answer holds in between."""

    past_s: float
    gives: Gives = "truth"
    every_s: float = 0.0
    parameters: tuple[Parameter, ...] = field(default=())


AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])
DECLARED = "__camgraph_condition__"


def condition(*, past_s: float, gives: Gives = "truth", every_s: float = 0.0) -> Callable[[AnyFunction], AnyFunction]:
    """Declare a function (past, parameters...) as a condition, or as a value that conditions compare.

    `past_s`: how far back it looks, at most 600 s. `gives`: a truth, or the kind of the number. `every_s`: if it takes
    long, ask it so often for each person, in stream time; its answer holds in between.

    The function must depend on nothing but its arguments, and change nothing: the same frames give the same events.
    Raises TypeError or ValueError for a function that rules could not call.
    """
    if not 0 < past_s <= LONGEST_S:
        raise ValueError(f"past_s: expected more than 0 and at most {LONGEST_S:g} seconds, got {past_s}")
    if not 0 <= every_s <= LONGEST_S:
        raise ValueError(f"every_s: expected 0 to {LONGEST_S:g} seconds, got {every_s}")
    if gives not in get_args(Gives):
        raise ValueError(f"gives: expected one of {', '.join(get_args(Gives))}, got {gives!r}")

    def declared(function: AnyFunction) -> AnyFunction:
        setattr(function, DECLARED, Declared(past_s, gives, every_s, _parameters(function)))
        return function

    return declared


def _parameters(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """The parameters behind the past. Raises TypeError."""
    name = getattr(function, "__name__", repr(function))
    found = list(inspect.signature(function).parameters.values())
    if not found or found[0].kind not in (found[0].POSITIONAL_ONLY, found[0].POSITIONAL_OR_KEYWORD):
        raise TypeError(f"{name}: expected `past: Past` as its first parameter")
    if len(found) - 1 > MOST_PARAMETERS:
        raise TypeError(f"{name}: expected at most {MOST_PARAMETERS} parameters behind `past`, got {len(found) - 1}")
    hints = get_type_hints(function, include_extras=True)
    return tuple(_parameter(name, one, hints.get(one.name, float)) for one in found[1:])


def _parameter(function: str, one: inspect.Parameter, hint: Any) -> Parameter:
    if one.kind not in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD):
        raise TypeError(
            f"{function}: rules give values by their place, so `{one.name}` cannot be {one.kind.description}"
        )
    required = one.default is one.empty
    if get_origin(hint) is Annotated and get_args(hint)[1] in get_args(ParameterKind):
        return Parameter(one.name, get_args(hint)[1], required)
    if get_origin(hint) is Literal and all(isinstance(word, str) and word.isidentifier() for word in get_args(hint)):
        return Parameter(one.name, "word", required, get_args(hint))
    if hint in (float, int):
        return Parameter(one.name, "number", required)
    raise TypeError(
        f"{function}: `{one.name}` is {hint}: expected float, Seconds, Pixels, Degrees, Joint or a Literal of words"
    )
