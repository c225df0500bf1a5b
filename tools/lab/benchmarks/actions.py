"""The library of actions over animated people: where each fires, how soon, and where it should not.

python -m camgraph.tools.lab.benchmarks.actions [--seeds N] [--action NAME] [--report docs/actions.md]

With `--action`, only the row of that action is renewed on the page, and for `fall` also the falls seen in part.

Each motion of the animator is done once per seed, seen from several heights, distances and sides, by two models and at
five frame rates. The stage `track` follows everybody, as in a run. Ordinary scenes, in which nothing happens, give the
false alarms per hour.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import click
import numpy as np

from camgraph.stages.rules.library import library
from camgraph.tools.lab.action_cases import CASES, FALLS
from camgraph.tools.lab.action_places import PLACES as ACTION_PLACES
from camgraph.tools.lab.action_places import Cast, before
from camgraph.tools.lab.action_places import rules as place_rules
from camgraph.tools.lab.action_trials import LEAD_S, Edge, Trial, View, firings, followed, rules_of, run
from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.lab.report_page import table_head, table_row
from camgraph.tools.scenes.animator.library import MOTIONS
from camgraph.tools.scenes.animator.pose_model import MULTIPOSE, YOLO11N
from camgraph.tools.scenes.animator.scene import Scene
from camgraph.tools.scenes.animator.scenes import FRONT, crossing_walks

RATES = (25.0, 12.5, 8.0, 5.0, 3.0)
MODELS = (YOLO11N, MULTIPOSE)
PLACES = ((1.6, 4.0), (2.6, 5.0), (3.5, 7.0))
"""Heights and distances of the camera, in metres."""
BORDERS: dict[str, tuple[Edge, ...]] = {
    "in the picture": ("",),
    "at a side of it": ("left", "right"),
    "at its lower border": ("bottom",),
}
STANDING_S = 1.0
"""How long somebody stands in a motion before the fall begins."""
HEAD_IN_PART = "### Falls that are seen in part"
BEFORE = ((2.6, 5.5), (3.0, 7.0), (4.0, 9.0))
"""Heights and distances of the camera before a place."""
OF_PLACES = """\
Each in a scene of it, and in others that look a little like it, from three heights and distances and by two models.
Zones and lines are large; `loitering`, `queue`, `crowd` and `nobody_there` have shorter times and smaller numbers."""
IN_PART = """\
Falls of 0.9 to 1.1 s from a stand, of which only the first part is seen: then nobody is found there any more, and
`fall` goes by whether they have turned wide. 0.7 s after they began, the shoulders have come down by a fifth to a
quarter of their height: that may as well be somebody who ducks or walks out of the picture, so it is no fall yet. In
each trial, the fall begins at another moment between two frames."""


@dataclass
class Figures:
    """Figures of one action: by rate, how many of the trials that had to fire did; delays; false trials."""

    found: dict[float, list[bool]] = field(default_factory=lambda: defaultdict(list))
    delays_s: list[float] = field(default_factory=list)
    wrong: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    silent: int = 0

    def recall(self, rate: float) -> str:
        return f"{100 * np.mean(self.found[rate]):.0f} %" if self.found[rate] else "-"


def trials(motion: str, seeds: int) -> Iterator[Trial]:
    """Every model and rate from another side in each seed, half of them mirrored."""
    for number, (model, rate, place, seed) in enumerate(itertools.product(MODELS, RATES, PLACES, range(seeds))):
        bearing = float(np.random.default_rng([seed, number]).uniform(0, 360))
        yield Trial(motion, View(*place, bearing, mirrored=bool(number % 2)), rate, model, seed)


def measured(actions: Sequence[str], seeds: int) -> dict[str, Figures]:
    """The figures of these actions over all motions."""
    rules = rules_of(actions)
    figures = {action: Figures() for action in actions}
    for motion in MOTIONS:
        for trial in trials(motion, seeds):
            first: dict[str, float] = {}
            for firing in firings(rules, run(trial)):
                first.setdefault(firing.rule, firing.at_s - LEAD_S)
            for action in actions:
                _count(figures[action], action, trial, first.get(action))
    return figures


def _count(figures: Figures, action: str, trial: Trial, at_s: float | None) -> None:
    case = CASES[action]
    if trial.motion in case.fires:
        in_time = at_s is not None and at_s <= case.fires[trial.motion]
        figures.found[trial.fps].append(in_time)
        if in_time and at_s is not None:
            figures.delays_s.append(at_s)
    elif trial.motion not in case.may:
        figures.silent += 1
        figures.wrong[trial.motion] += at_s is not None


def falls_in_part(seeds: int) -> str:
    """Markdown: how many falls are found of which the end is not seen."""
    lines = table_head("seen", *(f"at {rate:g}/s" for rate in RATES))
    rules = rules_of(["fall"])
    odd = range(1, 2 * seeds, 2)
    for (where, edges), seen_s in itertools.product(BORDERS.items(), (0.7, 0.8, 0.9)):
        cells = []
        for rate in RATES:
            trials = [
                _cut_short(Trial(motion, View(*place, edge=edge), rate, model, seed), seen_s)
                for motion, place, edge, model, seed in itertools.product(FALLS, PLACES, edges, MODELS, odd)
            ]
            cells.append(f"{100 * np.mean([bool(firings(rules, run(trial))) for trial in trials]):.0f} %")
        lines.append(table_row(f"for {seen_s:g} s, {where}", *cells))
    return "\n".join(lines)


def _cut_short(fall: Trial, seen_s: float) -> Trial:
    """A fall that is lost `seen_s` after it began, at any moment between two frames, seen from any side."""
    view = fall.view
    rng = np.random.default_rng(
        [fall.seed, len(fall.motion), len(view.edge), round(10 * view.height_m), len(fall.model.name)]
    )
    seen_from = replace(view, bearing_deg=float(rng.uniform(0, 360)))
    lead_s = LEAD_S + float(rng.uniform(0, 1 / fall.fps))
    return replace(fall, view=seen_from, gone_s=STANDING_S + seen_s, lead_s=lead_s)


def in_places(seeds: int) -> str:
    """Markdown: the actions about places and several people, each in a scene of it and in some that look like it."""
    lines = table_head("action", *(f"found at {rate:g}/s" for rate in RATES), "fires wrongly in")
    for action, place in ACTION_PLACES.items():
        cells, wrong, silent = [], Counter[str](), 0
        for rate in RATES:
            told = _first_told(action, place.shown, rate, seeds)
            cells.append(f"{100 * np.mean([at <= place.within_s + 2 / rate for at in told]):.0f} %")
            for name, cast in place.others.items():
                told = _first_told(action, cast, rate, seeds)
                silent += len(told)
                wrong[name] += sum(at < math.inf for at in told)
        often = ", ".join(name for name, count in wrong.most_common() if count)
        cells.append(f"{wrong.total()} of {silent}" + (f" ({often})" if often else ""))
        lines.append(table_row(f"`{action}`", *cells))
    return "\n".join(lines)


def _first_told(action: str, cast: Cast, rate: float, seeds: int) -> list[float]:
    """When it is told first, in seconds, seen from each height and distance by each model; infinity for never."""
    found = []
    for (height, distance), model, seed in itertools.product(BEFORE, MODELS, range(seeds)):
        aside = float(np.random.default_rng([seed, int(distance)]).uniform(-25, 25))
        frames = Scene(action, cast()).frames(rate, seed, before(height, distance, aside), model)
        found.append(min((one.at_s for one in firings(place_rules(action), followed(frames, model))), default=math.inf))
    return found


def alarms_per_hour(actions: Sequence[str], seeds: int, minutes: float = 2.0) -> tuple[float, dict[str, int]]:
    """Hours of people who walk past each other, and how often each action fires."""
    rules = rules_of(actions)
    counts = dict.fromkeys(actions, 0)
    for seed in range(seeds):
        scene = crossing_walks(seed, people=4, duration_s=60 * minutes)
        frames = scene.frames(8.0, seed, FRONT, YOLO11N)
        for firing in firings(rules, followed(frames, YOLO11N)):
            counts[firing.rule] += 1
    return seeds * minutes / 60, counts


def table(figures: dict[str, Figures], walks: tuple[float, dict[str, int]]) -> str:
    """Markdown: a row for each action."""
    found_at = (f"found at {rate:g}/s" for rate in RATES)
    lines = table_head("action", *found_at, "in the median after", "fires wrongly in", "on walks")
    hours, counts = walks
    for action, found in figures.items():
        often = sorted(((n, motion) for motion, n in found.wrong.items() if n), reverse=True)[:3]
        total = sum(found.wrong.values())
        named = f" ({', '.join(motion for _, motion in often)})" if often else ""
        delay = f"{np.median(found.delays_s):.1f} s" if found.delays_s else "-"
        cells = [f"`{action}`", *(found.recall(rate) for rate in RATES), delay]
        cells += [f"{total} of {found.silent}{named}", f"{round(counts[action] / hours, 1):g} an hour"]
        lines.append(table_row(*cells))
    return "\n".join(lines)


def renewed(standing: str, text: str, actions: Sequence[str]) -> str:
    """The figures that are ``standing``, with the rows of these actions, and the falls seen in part, from ``text``."""
    rows, _, in_part = text.partition(HEAD_IN_PART)
    standing, _, in_part_before = standing.partition(HEAD_IN_PART)
    lines = standing.splitlines(keepends=True)
    for action in actions:
        begin = f"| `{action}` |"
        row = next(line for line in rows.splitlines() if line.startswith(begin))
        place = next(number for number, line in enumerate(lines) if line.startswith(begin))
        lines[place] = f"{row}\n"
    return "".join(lines) + HEAD_IN_PART + (in_part or in_part_before)


@figure_command("benchmarks.actions")
@click.option("--seeds", default=1, show_default=True, help="How often each motion is done in each setting.")
@click.option("--action", "actions", multiple=True, help="Only this action; may be given several times.")
def main(figure: Figure, seeds: int, actions: tuple[str, ...]) -> None:
    """Measure the actions of the library on animated people."""
    unknown = [action for action in actions if action not in CASES]
    if unknown:
        known = ", ".join(name for name in library().templates if name in CASES)
        raise click.UsageError(f"no motion is known to show `{unknown[0]}`; known: {known}")
    names = actions or tuple(CASES)
    text = table(measured(names, seeds), alarms_per_hour(names, 3 * seeds))
    if not actions:
        text += f"\n\n### Places and people\n\n{OF_PLACES}\n\n{in_places(seeds)}"
    if "fall" in names:
        text += f"\n\n{HEAD_IN_PART}\n\n{IN_PART}\n\n{falls_in_part(seeds)}"
    if actions and (standing := figure.standing()):
        text = renewed(standing, text, actions)
    figure.publish(text)


if __name__ == "__main__":
    main()
