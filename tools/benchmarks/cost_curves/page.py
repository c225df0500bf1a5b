"""The curves as tables. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tools.benchmarks.cost_curves.growth import FPS, PICTURE, WAY, Grown, each_more
from tools.benchmarks.cost_curves.hops import Copied, Hop, one_hop_us
from tools.benchmarks.cost_curves.stage_costs import USUAL_PEOPLE, USUAL_RULES, Point


@dataclass(frozen=True, slots=True)
class Curves:
    """All that was measured."""

    cameras: Sequence[Grown]
    people: Sequence[Point]
    rules: Sequence[Point]
    hops: Sequence[Hop]
    copied: Sequence[Copied]


def lines(curves: Curves) -> Iterator[str]:
    """All tables."""
    if curves.cameras:
        yield from _cameras(curves.cameras)
    if curves.people:
        yield from _points(curves.people, "people", f"**People in a frame**, with {USUAL_RULES} rules.")
    if curves.rules:
        yield from _points(curves.rules, "rules", f"**Rules**, with {USUAL_PEOPLE} people in a frame.")
    if curves.hops:
        yield from _hops(curves)


def _cameras(grown: Sequence[Grown]) -> Iterator[str]:
    yield (
        f"**Cameras** of {PICTURE[0]}x{PICTURE[1]}, {FPS:g} fps, {WAY}. Processor time and memory of all processes of "
        "the run:"
    )
    yield ""
    yield "| cameras | frames/s | ms a frame | by process (cores) | processes | memory (MB) | others (cores) |"
    yield "|---|---|---|---|---|---|---|"
    for one in grown:
        stages = ", ".join(f"{name} {used:.3f}" for name, used in one.row.cores.items() if used >= 0.0005)
        yield (
            f"| {one.cameras} | {one.row.frames_fps:.1f} | {one.frame_ms:.2f} | {stages} | {one.row.processes} "
            f"| {one.memory_mb:.0f} | {one.row.other_cores:.2f} |"
        )
    yield ""
    if len(grown) > 1:
        first, last = grown[0], grown[-1]
        more = each_more(first.memory_mb, last.memory_mb, (first.cameras, last.cameras))
        yield f"Each further camera takes {more:.1f} MB."
        yield ""


def _points(points: Sequence[Point], what: str, title: str) -> Iterator[str]:
    stages = list(points[0].rounds)
    yield f"{title} Processor time in ms a frame, in one thread:"
    yield ""
    yield f"| {what} | {' | '.join(stages)} | all | events a frame |"
    yield "|---" * (len(stages) + 3) + "|"
    for one in points:
        figures = " | ".join(f"{one.ms(stage):.3f}" for stage in stages)
        yield f"| {getattr(one, what)} | {figures} | {one.whole_ms:.3f} | {one.events / one.frames:.2f} |"
    yield ""


def _hops(curves: Curves) -> Iterator[str]:
    yield (
        "**A hop** from one process to another: processor time of both sides, that of the same stages in one process "
        "taken off."
    )
    yield ""
    yield "| payload | microseconds a hop |"
    yield "|---|---|"
    yield from (f"| {name} | {us:.0f} |" for name, us in one_hop_us(curves.hops).items())
    yield ""
    yield "Of it, wrapping and unwrapping the message of a picture, and the bytes that are moved:"
    yield ""
    yield (
        "| picture | bytes in the message | bytes copied: made in a slot, elsewhere | wrapping (microseconds): in a "
        "slot, elsewhere | unwrapping |"
    )
    yield "|---|---|---|---|---|"
    for one in curves.copied:
        yield (
            f"| {one.name} | {one.message} | {one.copied[0]}, {one.copied[1]} | {one.encode_us[0]:.0f}, "
            f"{one.encode_us[1]:.0f} | {one.read_us:.0f} |"
        )
