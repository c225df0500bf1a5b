"""Rules that `camgraph init` makes of what the library has: those that need a bed, and anybody at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

BED = "bed"
"""The zone that the rules about a bed ask about."""
_GUESS = "[[0.3, 0.4], [0.7, 0.4], [0.7, 0.8], [0.3, 0.8]]"
"""A place for the bed to begin with, in fractions of the picture."""


@dataclass(frozen=True, slots=True)
class OwnRule:
    """`keys`: those of the rule, as YAML. `offered`: what it means, for somebody who chooses."""

    keys: str
    about: str
    offered: str
    needs_bed: bool = False


SOMEBODY = "somebody"
OWN_RULES: Mapping[str, OwnRule] = {
    # One incident, however many they are, until nobody has been there for a while.
    SOMEBODY: OwnRule(
        f"id: {SOMEBODY}, scope: scene, when: people > 0, for: 1s, hold: 10s",
        "Somebody is there at all.",
        "Somebody is there at all",
    ),
    "on_the_floor": OwnRule(
        f"id: on_the_floor, use: lying, when: lying and hips not in {BED}",
        "Somebody lies on the floor, outside of the bed.",
        "Somebody lies on the floor, outside of the bed (you draw the bed on the page)",
        needs_bed=True,
    ),
    "out_of_bed": OwnRule(
        f"id: out_of_bed, use: leaves_zone, with: {{zone: {BED}}}",
        "Somebody leaves the bed.",
        "Somebody leaves the bed (you draw the bed on the page)",
        needs_bed=True,
    ),
}
_ALSO_CALLED = {
    "lying_on_the_floor": "on_the_floor",
    "lies_on_the_floor": "on_the_floor",
    "leaves_bed": "out_of_bed",
    "leaves_the_bed": "out_of_bed",
}


def as_name(words: str) -> str:
    """The name of an action that somebody wrote in words, such as `Out of bed`."""
    name = words.strip().lower().replace(" ", "_").replace("-", "_")
    return _ALSO_CALLED.get(name, name)


def need_bed(actions: Iterable[str]) -> list[str]:
    """Those that ask about the bed."""
    return [name for name in actions if name in OWN_RULES and OWN_RULES[name].needs_bed]


def bed_zones(cameras: Iterable[str]) -> Iterator[str]:
    """The lines of a file of rules with a bed for each of these cameras, to be drawn by somebody; names as YAML."""
    yield "zones:"
    yield '  # A guess: draw the bed. On the page, open the camera and choose "Draw zones and lines".'
    yield f"  {BED}:"
    yield from (f"    {camera}: {_GUESS}" for camera in cameras)


def draw_bed(actions: Iterable[str], rules_file: str, *, page: bool) -> str:
    """What is left to do; "" if none of these asks about a bed."""
    asking = need_bed(actions)
    if not asking:
        return ""
    how = (
        'open the camera on the page, choose "Draw zones and lines", and drag the corners of `bed`'
        if page
        else f"write its corners into {rules_file}, under `zones`"
    )
    verb = "goes" if len(asking) == 1 else "go"
    return f"Nobody knows yet where the bed is, and {' and '.join(asking)} {verb} by a guess: {how}."
