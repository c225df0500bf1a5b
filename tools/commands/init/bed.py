"""The actions about a bed, for `camgraph init`: the zone that they ask about is drawn later."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from camgraph.stages.rules.library import library

BED = "bed"
"""The zone, and the parameter of the actions that ask about it."""
_GUESS = "[[0.3, 0.4], [0.7, 0.4], [0.7, 0.8], [0.3, 0.8]]"
"""A place for the bed to begin with, in fractions of the picture."""
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
    """Those that ask about the bed, and about no other place."""
    return [name for name in actions if _required(name) == [BED]]


def _required(action: str) -> list[str]:
    """The parameters that need a value."""
    return [name for name, one in library().templates[action].parameters.items() if one.default is None]


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
