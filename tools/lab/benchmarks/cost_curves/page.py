"""The curves as tables, and as a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from camgraph.tools.lab.benchmarks.cost_curves.growth import FPS, PICTURE, WAY, Grown, each_more
from camgraph.tools.lab.benchmarks.cost_curves.hops import Copied, Hop, one_hop_us
from camgraph.tools.lab.benchmarks.cost_curves.stage_costs import USUAL_PEOPLE, USUAL_RULES, Point
from camgraph.tools.measuring.plots import COLOURS, draw, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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


def plot(curves: Curves, path: Path) -> None:
    """Draw all curves. Raises EnvironmentProblem without matplotlib."""
    draw(path, (11.0, 7.5), lambda figure: _draw(curves, figure))


def _draw(curves: Curves, figure: Figure) -> None:
    [[cameras, hops], [people, rules]] = figure.subplots(2, 2)
    if curves.cameras:
        _draw_cameras(cameras, curves.cameras)
    if curves.hops:
        _draw_hops(hops, curves.hops)
    if curves.people:
        _draw_stages(people, curves.people, "people", f"people in a frame, {USUAL_RULES} rules")
    if curves.rules:
        _draw_stages(rules, curves.rules, "rules", f"rules, {USUAL_PEOPLE} people in a frame")


def _draw_cameras(axes: Axes, grown: Sequence[Grown]) -> None:
    numbers = [one.cameras for one in grown]
    axes.plot(numbers, [one.frame_ms for one in grown], marker="o", color=COLOURS[0])
    axes.set_ylim(bottom=0)
    plain(axes, "cameras, model that does nothing", "cameras", "processor time: ms a frame")
    memory = axes.twinx()
    memory.plot(numbers, [one.memory_mb for one in grown], marker="s", color=COLOURS[1])
    memory.set_ylim(bottom=0)
    memory.set_ylabel("memory of all processes: MB", fontsize=9, color=COLOURS[1])
    memory.tick_params(labelsize=8)
    memory.spines["top"].set_visible(False)


def _draw_hops(axes: Axes, hops: Sequence[Hop]) -> None:
    costs = one_hop_us(hops)
    axes.bar(range(len(costs)), list(costs.values()), width=0.6, color=COLOURS[2])
    axes.set_xticks(range(len(costs)), list(costs))
    plain(axes, "a hop between two processes", "payload", "processor time: microseconds")


def _draw_stages(axes: Axes, points: Sequence[Point], what: str, title: str) -> None:
    stages = list(points[0].rounds)
    numbers = [getattr(one, what) for one in points]
    costs = [[one.ms(stage) for one in points] for stage in stages]
    axes.stackplot(numbers, costs, labels=stages, colors=COLOURS[: len(stages)], alpha=0.85)
    axes.legend(loc="upper left", fontsize=8)
    axes.set_xlim(numbers[0], numbers[-1])
    plain(axes, title, what, "processor time: ms a frame")
