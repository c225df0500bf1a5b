"""How cost grows, as tables and as a picture.

python -m camgraph.tools.lab.benchmarks.cost_curves [--curve NAME] ...
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import click
import structlog

from camgraph.tools.lab.benchmarks.cost_curves import growth, hops, stage_costs
from camgraph.tools.lab.benchmarks.cost_curves.page import Curves, lines, plot
from camgraph.tools.lab.benchmarks.cost_curves.stage_costs import USUAL_PEOPLE, USUAL_RULES, Point
from camgraph.tools.lab.report_page import estimate, machine_line, publish, report_option, written_by
from camgraph.tools.measuring.plots import has_matplotlib
from camgraph.tools.measuring.processor_time import cpu_time, others_line

TOOL = "benchmarks.cost_curves"
PICTURE = "cost_curves.png"
_CURVES = ("cameras", "people", "rules", "hops")
_ABOUT_S = {"cameras": 35.0, "people": 3.0, "rules": 2.0, "hops": 10.0}
"""A point of it, in the usual number of rounds."""
_COPIES = {"640 x 640 x 3": (640, 640, 3), "1280 x 720 x 3": (720, 1280, 3)}
_TIMES = 300


@click.command()
@click.option("--curve", "curves", multiple=True, type=click.Choice(_CURVES), default=_CURVES, help="All by default.")
@click.option("--cameras", multiple=True, type=int, default=(1, 4, 16, 64), show_default=True, help="Repeatable.")
@click.option("--people", multiple=True, type=click.IntRange(0, 100), default=(0, 1, 5, 10, 20, 50, 100))
@click.option("--rules", multiple=True, type=click.IntRange(1, 999), default=(1, 10, 50, 100, 200), help="Repeatable.")
@click.option("--seconds", default=8.0, show_default=True, help="How long each number of cameras is looked at.")
@click.option("--rounds", default=3, show_default=True, help="Of people, rules and hops.")
@click.option("--frames", default=3000, show_default=True, help="Messages of a run that measures hops.")
@report_option(TOOL)
def main(target: Path | None, **options: Any) -> None:
    """Measure how cost grows with cameras, people and rules, and the cost of a hop."""
    wanted = set(options["curves"])
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    estimate(_about_s(options), f"{', '.join(name for name in _CURVES if name in wanted)}, one after the other")
    times = [cpu_time()]
    hopped = [hops.Hop(name, size) for name, size in hops.SIZES.items() if "hops" in wanted]
    if hopped:
        hopped.insert(1, hops.Hop(f"16 bytes, {hops.MANY} cameras", 16, cameras=hops.MANY))
        hopped.insert(2, hops.Hop(f"16 bytes, one every {hops.IDLE_MS} ms", 16, pace_ms=hops.IDLE_MS))
    hops.measure(hopped, options["rounds"], options["frames"])
    copied = [hops.copied(name, shape, _TIMES) for name, shape in _COPIES.items() if "hops" in wanted]
    times.append(cpu_time())
    people = [Point(count, USUAL_RULES) for count in options["people"] if "people" in wanted]
    rules = [Point(USUAL_PEOPLE, count) for count in options["rules"] if "rules" in wanted]
    stage_costs.measure([*people, *rules], options["rounds"])
    times.append(cpu_time())
    cameras = [growth.measured(count, options["seconds"]) for count in options["cameras"] if "cameras" in wanted]
    times.append(cpu_time())
    _publish(Curves(cameras, people, rules, hopped, copied), others_line(times), target)


def _about_s(options: dict[str, Any]) -> float:
    points = {name: len(options[name]) for name in ("cameras", "people", "rules")}
    points["hops"] = (len(hops.SIZES) + 2) * options["rounds"]
    return sum(_ABOUT_S[name] * points[name] for name in options["curves"])


def _publish(curves: Curves, others: str, target: Path | None) -> None:
    head = [written_by(TOOL, _shown(click.get_current_context().params)), "", f"{machine_line()}. {others}", ""]
    if target and has_matplotlib():
        plot(curves, target.parent / PICTURE)
        head += [f"![How cost grows]({PICTURE})", ""]
    publish("\n".join([*head, *lines(curves)]), target, TOOL)


def _shown(params: dict[str, Any]) -> dict[str, Any]:
    """Without options at their defaults: lists would be long."""
    usual = {option.name: option.default for option in main.params}
    return {name: value for name, value in params.items() if value != usual.get(name)}


if __name__ == "__main__":
    main()
