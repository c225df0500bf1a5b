"""How cost grows, as tables and as a picture.

python -m camgraph.tools.lab.benchmarks.cost_curves [--curve NAME] ...
"""

from __future__ import annotations

import logging
from typing import Any

import click
import structlog

from camgraph.tools.lab.benchmarks.cost_curves import growth, hops, stage_costs
from camgraph.tools.lab.benchmarks.cost_curves.page import Curves, lines, plot
from camgraph.tools.lab.benchmarks.cost_curves.stage_costs import USUAL_PEOPLE, USUAL_RULES, Point
from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.lab.report_page import machine_line
from camgraph.tools.measuring.plots import has_matplotlib

PICTURE = "cost_curves.png"
_CURVES = ("cameras", "people", "rules", "hops")
_ABOUT_S = {"cameras": 35.0, "people": 3.0, "rules": 2.0, "hops": 10.0}
"""A point of it, in the usual number of rounds."""
_COPIES = {"640 x 640 x 3": (640, 640, 3), "1280 x 720 x 3": (720, 1280, 3)}
_TIMES = 300


@figure_command("benchmarks.cost_curves")
@click.option("--curve", "curves", multiple=True, type=click.Choice(_CURVES), default=_CURVES, help="All by default.")
@click.option("--cameras", multiple=True, type=int, default=(1, 4, 16, 64), show_default=True, help="Repeatable.")
@click.option("--people", multiple=True, type=click.IntRange(0, 100), default=(0, 1, 5, 10, 20, 50, 100))
@click.option("--rules", multiple=True, type=click.IntRange(1, 999), default=(1, 10, 50, 100, 200), help="Repeatable.")
@click.option("--seconds", default=8.0, show_default=True, help="How long each number of cameras is looked at.")
@click.option("--rounds", default=3, show_default=True, help="Of people, rules and hops.")
@click.option("--frames", default=3000, show_default=True, help="Messages of a run that measures hops.")
def main(figure: Figure, **options: Any) -> None:
    """Measure how cost grows with cameras, people and rules, and the cost of a hop."""
    wanted = set(options["curves"])
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    figure.takes(_about_s(options), f"{', '.join(name for name in _CURVES if name in wanted)}, one after the other")
    hopped = [hops.Hop(name, size) for name, size in hops.SIZES.items() if "hops" in wanted]
    if hopped:
        hopped.insert(1, hops.Hop(f"16 bytes, {hops.MANY} cameras", 16, cameras=hops.MANY))
        hopped.insert(2, hops.Hop(f"16 bytes, one every {hops.IDLE_MS} ms", 16, pace_ms=hops.IDLE_MS))
    hops.measure(hopped, options["rounds"], options["frames"])
    copied = [hops.copied(name, shape, _TIMES) for name, shape in _COPIES.items() if "hops" in wanted]
    figure.look()
    people = [Point(count, USUAL_RULES) for count in options["people"] if "people" in wanted]
    rules = [Point(USUAL_PEOPLE, count) for count in options["rules"] if "rules" in wanted]
    stage_costs.measure([*people, *rules], options["rounds"])
    figure.look()
    cameras = [growth.measured(count, options["seconds"]) for count in options["cameras"] if "cameras" in wanted]
    _publish(figure, Curves(cameras, people, rules, hopped, copied), options)


def _about_s(options: dict[str, Any]) -> float:
    points = {name: len(options[name]) for name in ("cameras", "people", "rules")}
    points["hops"] = (len(hops.SIZES) + 2) * options["rounds"]
    return sum(_ABOUT_S[name] * points[name] for name in options["curves"])


def _publish(figure: Figure, curves: Curves, options: dict[str, Any]) -> None:
    head = [figure.written(but=_usual(options)), "", f"{machine_line()}. {figure.others()}", ""]
    if figure.page and has_matplotlib():
        plot(curves, figure.page.parent / PICTURE)
        head += [f"![How cost grows]({PICTURE})", ""]
    figure.publish("\n".join([*head, *lines(curves)]))


def _usual(options: dict[str, Any]) -> list[str]:
    """The options at their defaults, which do not stand on the page: lists would be long."""
    usual = {option.name: option.default for option in main.params}
    return [name for name, value in options.items() if value == usual[name]]


if __name__ == "__main__":
    main()
