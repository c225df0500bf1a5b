"""In which of the animator's motions each action of the library must fire, and in which it may.

In every other motion an action must be silent. Times count from the motion's beginning, with the pause before a fall.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Case:
    """`fires`: motion -> within how many seconds. `may`: motions that hold the action for a moment, or look like it."""

    fires: Mapping[str, float]
    may: frozenset[str] = field(default_factory=frozenset)
    share: float = 0.75
    """The share of views, from all sides, from which the action must fire."""


FALLS = ("falling forward", "falling backward", "falling sideways", "slumping")
LYING_DOWN = ("lying down on the back", "lying down on the front", "lying down on a side")
ON_THE_FLOOR = frozenset(
    {*FALLS, *LYING_DOWN, "falling from a chair", "falling and getting up", "rolling over", "push-ups", "tripping"}
)

WALKS = frozenset({"tripping", "loitering"})
STANDING_UP = frozenset({"ducking", "tying shoes", "tying shoes bent down", "kneeling"})

CASES: dict[str, Case] = {
    "fall": Case(
        {**dict.fromkeys(FALLS, 4.0)},
        frozenset({"falling from a chair", "falling and getting up", "tripping", "push-ups"}),
    ),
    "lying": Case(
        {**dict.fromkeys(FALLS, 6.0), **dict.fromkeys(LYING_DOWN, 9.0)},
        frozenset({"falling and getting up", "falling from a chair", "rolling over", "push-ups", "tripping"}),
    ),
    "crouching": Case({"crouching": 3.0}, ON_THE_FLOOR | {"ducking", "tying shoes"}),
    "sitting": Case(
        {"sitting down": 5.0, "sitting down fast": 4.0, "standing up": 2.5},
        frozenset({"falling from a chair", *LYING_DOWN}),
    ),
    "bending": Case({"bending": 2.5, "tying shoes bent down": 4.0}),
    "hands_up": Case({"hands up": 2.5, "calling for help": 3.0}),
    "one_hand_up": Case({"one hand up": 2.5, "waving": 3.5}, ON_THE_FLOOR | {"reaching"}),
    "waving": Case({"waving": 5.0, "calling for help": 3.0}, ON_THE_FLOOR | {"one hand up", "reaching"}, 0.5),
    "calling_for_help": Case({"calling for help": 4.0}),
    "arms_crossed": Case({"arms crossed": 4.5}, ON_THE_FLOOR, 0.5),
    "hand_to_face": Case({"phoning": 3.0, "drinking": 3.0}, ON_THE_FLOOR | {"punching"}),
    "reaching": Case({"one hand up": 3.0, "reaching": 3.0}, frozenset({"pointing"}), 0.5),
    "pointing": Case({"pointing": 3.5}, frozenset({"reaching"}), 0.5),
    "kicking": Case({"kicking": 3.5}, share=0.5),
    "punching": Case(
        {"punching": 3.5}, ON_THE_FLOOR | STANDING_UP | {"jumping", "kicking", "waving", "reaching", "phoning"}
    ),
    "jumping": Case({"jumping": 3.0}, frozenset({"kicking"})),
    "walking": Case(
        {"walking": 3.0, "walking round a corner": 3.0, "carrying": 3.5},
        WALKS | {"running", "walking slowly"} | ON_THE_FLOOR,
    ),
}
