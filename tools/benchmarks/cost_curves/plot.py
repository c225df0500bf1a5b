"""The curves as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tools.benchmarks.cost_curves.growth import Grown
from tools.benchmarks.cost_curves.hops import Hop, one_hop_us
from tools.benchmarks.cost_curves.page import Curves
from tools.benchmarks.cost_curves.stage_costs import USUAL_PEOPLE, USUAL_RULES, Point
from tools.measuring.plots import COLOURS, draw, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot(curves: Curves, path: Path) -> None:
    """Draw all curves. Raises EnvironmentProblem without matplotlib."""
    draw(path, (11.0, 7.5), lambda figure: _draw(curves, figure))


def _draw(curves: Curves, figure: Figure) -> None:
    [[cameras, hops], [people, rules]] = figure.subplots(2, 2)
    if curves.cameras:
        _cameras(cameras, curves.cameras)
    if curves.hops:
        _hops(hops, curves.hops)
    if curves.people:
        _stages(people, curves.people, "people", f"people in a frame, {USUAL_RULES} rules")
    if curves.rules:
        _stages(rules, curves.rules, "rules", f"rules, {USUAL_PEOPLE} people in a frame")


def _cameras(axes: Axes, grown: Sequence[Grown]) -> None:
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


def _hops(axes: Axes, hops: Sequence[Hop]) -> None:
    costs = one_hop_us(hops)
    axes.bar(range(len(costs)), list(costs.values()), width=0.6, color=COLOURS[2])
    axes.set_xticks(range(len(costs)), list(costs))
    plain(axes, "a hop between two processes", "payload", "processor time: microseconds")


def _stages(axes: Axes, points: Sequence[Point], what: str, title: str) -> None:
    stages = list(points[0].rounds)
    numbers = [getattr(one, what) for one in points]
    costs = [[one.ms(stage) for one in points] for stage in stages]
    axes.stackplot(numbers, costs, labels=stages, colors=COLOURS[: len(stages)], alpha=0.85)
    axes.legend(loc="upper left", fontsize=8)
    axes.set_xlim(numbers[0], numbers[-1])
    plain(axes, title, what, "processor time: ms a frame")
