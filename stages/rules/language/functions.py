"""The functions of conditions, a row each: whatever those who parse, read and check their calls know of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Range = tuple[float, float]
"""From and to, in the unit of the constant beside it: seconds, degrees, or none."""
ANY: Range = (-math.inf, math.inf)
POSITIVE: Range = (0.0, math.inf)
SHARE: Range = (0.0, 1.0)
DEGREES: Range = (0.0, 180.0)


@dataclass(frozen=True, slots=True)
class Function:
    """A function. `example`: how it is called, for messages. `reading`: the way in which `meaning.Reader` reads it.

    `arguments`: how many it takes, at least and at most; None: its reading knows. `range`: its values; None: those of
    its first argument.

    `cell`, `more`: the kind of the cell that keeps its past, and the cell's times behind the window. `window_at`: the
    place of its window among the arguments, if the window may stand behind the comparison. `usual_ns`: its window if
    there is none.
    """

    example: str
    reading: str
    arguments: tuple[int, int] | None = None
    range: Range | None = ANY
    cell: str = ""
    more: tuple[int, ...] = ()
    window_at: int = 0
    usual_ns: int = 0


_S = 1_000_000_000
_OVER_A_WINDOW: tuple[Literal["over a window"], tuple[int, int]] = ("over a window", (1, 2))
FUNCTIONS: dict[str, Function] = {
    "distance": Function("distance(left_wrist, nose)", "distance", range=POSITIVE),
    "angle": Function("angle(left_shoulder, left_elbow, left_wrist)", "angle", range=DEGREES),
    "abs": Function("abs(left_wrist.x - nose.x)", "measures", range=POSITIVE),
    "min": Function("min(left_wrist.y, right_wrist.y)", "measures"),
    "max": Function("max(left_wrist.y, right_wrist.y)", "measures"),
    "crosses": Function("crosses(gate) or crosses(gate, rightward)", "step"),
    "enters": Function("enters(door)", "step"),
    "leaves": Function("leaves(door)", "step"),
    "since": Function("since(in door)", "time", (1, 1), POSITIVE, "Since"),
    "total": Function("total(in door, 60s)", "time", (2, 2), POSITIVE, "Total"),
    "dwell": Function(
        "dwell(door) or dwell(door, 5s), which survives exits of up to 5 s", "dwell", None, POSITIVE, "Dwell"
    ),
    "drop": Function("drop(hips.y, 0.8s)", *_OVER_A_WINDOW, POSITIVE, "Growth", window_at=1, usual_ns=_S),
    "rise": Function("rise(hips.y, 0.8s)", *_OVER_A_WINDOW, POSITIVE, "Growth", window_at=1, usual_ns=_S),
    "change": Function("change(lean, 1s)", *_OVER_A_WINDOW, POSITIVE, "Change", window_at=1, usual_ns=_S),
    "before": Function("before(hips.y, 1s)", *_OVER_A_WINDOW, None, "Before"),
    "usual": Function("usual(hips.y, 10s)", *_OVER_A_WINDOW, None, "Median"),
    "least": Function("least(hips.y, 10s)", *_OVER_A_WINDOW, None, "Extreme", (1,)),
    "greatest": Function("greatest(hips.y, 10s)", *_OVER_A_WINDOW, None, "Extreme", (-1,)),
    "lowest": Function("lowest(lean, 10s)", *_OVER_A_WINDOW, None, "Extreme", (1,)),
    "highest": Function("highest(lean, 10s)", *_OVER_A_WINDOW, None, "Extreme", (-1,)),
    "average": Function("average(hips.y, 10s)", *_OVER_A_WINDOW, None, "Average"),
    "above": Function("above(left_wrist, left_shoulder)", "along the body"),
    "beside": Function("beside(left_wrist, hips)", "along the body"),
    "beyond": Function("beyond(left_wrist, top)", "beyond"),
    "running": Function("running(other_rule)", "running", (1, 1)),
    "label": Function(
        "label(falling_down), a class of a classifier, compared with a number from 0 to 1", "label", range=SHARE
    ),
    "looks_like": Function("looks_like(fall), compared with a number from 0 to 1", "looks", range=SHARE),
    "either": Function("either(wrist.y < nose.y)", "both sides", (1, 1)),
    "both": Function("both(wrist.y < nose.y)", "both sides", (1, 1)),
    "swings": Function(
        "swings(left_wrist.x, 0.3bl) or swings(left_wrist.x, 0.3bl, 2s)",
        "swings",
        (1, 3),
        POSITIVE,
        "Swings",
        window_at=2,
        usual_ns=2 * _S,
    ),
    "velocity": Function(
        "velocity(hips.y) or velocity(hips.y, 0.5s)",
        *_OVER_A_WINDOW,
        cell="Velocity",
        window_at=1,
        usual_ns=_S * 3 // 10,
    ),
    "speed": Function(
        "speed(left_wrist) or speed(left_wrist, 0.5s)",
        "speed",
        range=POSITIVE,
        cell="Speed",
        window_at=1,
        usual_ns=_S * 3 // 10,
    ),
}
