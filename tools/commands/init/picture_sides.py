"""The size of the model's picture for live cameras, by the pictures that came while they were tried."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from camgraph.stages.people.preprocess import USUAL_MAX_SIDE
from camgraph.stages.vision.planes import U8
from camgraph.tools.commands.watching.picture_size import LOOKING
from camgraph.tools.commands.watching.size import NOBODY, UNKNOWN, Choice, Frames, choose_sides


def larger_sides(model: Path, pictures: Mapping[str, Sequence[U8]], show: Callable[[str], None]) -> dict[str, int]:
    """Camera -> the longest side, for those whose people are too far away for the usual one; `show` gets a line each.

    `pictures`: some of each camera, (H, W, 3) BGR. No side is smaller than the usual one: who stands at the lens while
    a camera is tried is not one of those whom it is for.
    """
    if not pictures or not model.is_file():
        return {}
    show(f"{LOOKING[0].upper()}{LOOKING[1:]} ...")
    choices = choose_sides(model, {camera: _some(taken) for camera, taken in pictures.items()})
    for camera, choice in choices.items():
        show(f"  {camera}: {_in_words(choice)}")
    return {camera: choice.side for camera, choice in choices.items() if choice.side > USUAL_MAX_SIDE}


def _some(taken: Sequence[U8]) -> Frames:
    return lambda count: taken[:count]


def _in_words(choice: Choice) -> str:
    if choice.why == NOBODY:
        return (
            "nobody is in it now, so the model's picture gets the size that suits most rooms. If people will be far "
            "away: camgraph help no_events"
        )
    if choice.why.startswith(UNKNOWN):
        return choice.why
    if choice.side <= USUAL_MAX_SIDE:
        return "people are close enough for a small picture, which is quick"
    times = (choice.side / USUAL_MAX_SIDE) ** 2
    larger = f"a larger picture ({choice.side} pixels), which takes {times:.1f} times as long"
    return f"people are far away, so the model gets {larger}"
