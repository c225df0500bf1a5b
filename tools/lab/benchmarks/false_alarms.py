"""False alarms per hour: the library of actions over hours of ordinary life among the animator's people.

python -m camgraph.tools.lab.benchmarks.false_alarms [--hours N] [--night-hours N] [--report docs/actions.md]

Each room is watched for as long at each frame rate, and the room at night for longer at the lower one; hours alternate
between the noise of two models. The stage `track` follows everybody, as in a run. `DONE` says what people really do in
a room: incidents of that are no alarms. Actions about places are left out, because they fire for everybody who passes.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import click

from camgraph.stages.rules.library import library
from camgraph.tools.lab.action_trials import Firing, firings, followed, rules_of
from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.lab.report_page import at_most, table_head, table_row
from camgraph.tools.scenes.animator import MULTIPOSE, YOLO11N, PoseModel, Scene
from camgraph.tools.scenes.animator.pose_model import in_the_dark
from camgraph.tools.scenes.animator.scenes import ROOM, care_room, night, office, shop

RATES = (12.5, 5.0)
MODELS: tuple[PoseModel, ...] = (YOLO11N, MULTIPOSE)
DARK = frozenset({"night"})
"""Rooms without light, before cameras with infrared lamps."""
WEEK_H = 168
ROOMS: Mapping[str, Callable[..., Scene]] = {"office": office, "ward": care_room, "shop": shop, "night": night}
_ANYWHERE = frozenset(
    {"somebody", "walking", "standing_still", "turned_away", "too_close", "approaching", "leaving_group"}
)
DONE: Mapping[str, frozenset[str]] = {
    "office": _ANYWHERE
    | {"sitting", "bending", "reaching", "one_hand_up", "hand_to_face", "arms_crossed", "nobody_there"},
    "ward": _ANYWHERE | {"sitting", "lying", "bending", "hand_to_face"},
    "shop": _ANYWHERE | {"bending", "crouching", "reaching", "one_hand_up", "crowd"},
    "night": _ANYWHERE | {"sitting", "lying", "nobody_there"},
}


@dataclass(frozen=True)
class Watch:
    """A room that was watched for `hours` at a frame rate."""

    room: str
    fps: float
    hours: float
    fired: Counter[str]


def asked() -> list[str]:
    """The actions that need no zone and no line."""
    actions = library().templates.items()
    return [name for name, one in actions if all(value.default is not None for value in one.parameters.values())]


def watched(room: str, fps: float, hours: float, *, told: Callable[[str], None]) -> Watch:
    """A room hour by hour, each with other people."""
    rules, fired = rules_of(asked()), Counter[str]()
    begun, hour = time.monotonic(), 0
    while hour < hours:
        length = min(1.0, hours - hour)
        usual = MODELS[hour % 2]
        frames = ROOMS[room](hour, hours=length).frames(fps, hour, ROOM, in_the_dark(usual) if room in DARK else usual)
        found = firings(rules, followed(frames, usual))
        fired.update(one.rule for one in found)
        for line in _alarms(room, found):
            told(f"{room}, {fps:g}/s, hour {hour}: {line}")
        hour += 1
    told(f"{room} at {fps:g}/s: {time.monotonic() - begun:.0f} s")
    return Watch(room, fps, hours, fired)


def _alarms(room: str, found: Sequence[Firing]) -> Iterator[str]:
    for one in found:
        if one.rule not in DONE[room]:
            yield f"{one.rule} at {one.at_s:.1f} s of {one.ids}"


def table(watches: Sequence[Watch]) -> str:
    """Markdown: alarms an hour, of each action that ever fired where nobody does it, and how many there are at most."""
    names = [name for name in asked() if any(one.fired[name] and name not in DONE[one.room] for one in watches)]
    lines = table_head("action", *(f"{one.room} at {one.fps:g}/s" for one in watches), "at most, with 95 %")
    for name in names:
        cells = ["done" if name in DONE[one.room] else f"{one.fired[name] / one.hours:.2g}" for one in watches]
        ordinary = [one for one in watches if name not in DONE[one.room]]
        most = at_most(sum(one.fired[name] for one in ordinary), sum(one.hours for one in ordinary))
        lines.append(table_row(f"`{name}`", *cells, f"{most:.2g}"))
    silent = [
        f"`{name}`" for name in asked() if name not in names and not all(name in DONE[one.room] for one in watches)
    ]
    hours = sum(one.hours for one in watches)
    each = ", ".join(f"{one.hours:g} of the {one.room} at {one.fps:g}/s" for one in watches)
    none = (
        f"None at all: {', '.join(silent)}: with 95 % confidence at most {at_most(0, hours):.2g} an hour, or one in "
        f"{1 / at_most(0, hours):.0f} hours. To show one a week or fewer, {at_most(0, 1 / WEEK_H):.0f} hours without "
        "any are needed."
    )
    return "\n".join([*lines, "", f"In {hours:g} hours: {each}. {none}"])


@figure_command("benchmarks.false_alarms")
@click.option("--hours", default=1.0, show_default=True, help="Of each room at each frame rate.")
@click.option("--night-hours", default=24.0, show_default=True, help="Of the room at night, at the lower frame rate.")
@click.option("--room", "rooms", multiple=True, type=click.Choice(list(ROOMS)), help="Only this room.")
def main(figure: Figure, hours: float, night_hours: float, rooms: tuple[str, ...]) -> None:
    """Count what the library of actions says of ordinary life."""
    asked_for = [
        (room, fps, night_hours if room in DARK and fps == min(RATES) else hours)
        for room in rooms or tuple(ROOMS)
        for fps in RATES
    ]
    figure.publish(table([watched(*one, told=click.echo) for one in asked_for]))


if __name__ == "__main__":
    main()
