"""The cost of judging: processor time of a frame, by people and rules: `python -m camgraph.tools.lab.benchmarks.rules`.

Everybody walks and waves. The rules ask about joints, posture, a zone and speed; those with memory also look back in
time, in six ways. Few are true of anybody: that is how rules are. A second table has actions of the library. Each row
is the best of several rounds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click
import numpy as np

from camgraph.stages.rules.language.condition import compile_condition
from camgraph.stages.rules.language.crowd import Picture
from camgraph.stages.rules.language.geometry import Surroundings, zone_of
from camgraph.stages.rules.language.incidents import Timing
from camgraph.stages.rules.language.judge import Judge, Rule
from camgraph.stages.rules.rule_set import RuleSet, parse_rules
from camgraph.stages.vision.skeleton import COCO_17
from camgraph.tools.lab.action_trials import rules_of
from camgraph.tools.lab.report_page import machine_line

FPS = 25
WIDTH, HEIGHT = 1920, 1080
ZONES = {"door": zone_of([(100, 500), (700, 500), (760, 900), (100, 950)])}
PLAIN = (
    "left_wrist.y < nose.y - 0.{n:03}h and right_wrist.y < nose.y - 0.{n:03}h",
    "in door and speed < 0.0{n:03}h/s",
    "lean > 50.{n:03}deg and box.width > 0.8h",
    "speed > 1.2{n:03}h/s and age > 1s",
    "angle(left_shoulder, left_elbow, left_wrist) < 20.{n:03}deg",
)
LOOKING_BACK = (
    "drop(hips.y, 0.8s) > 1.{n:03}bl",
    "lean > 50.{n:03}deg for 2s",
    "dwell(door) > 100.{n:03}s",
    "swings(left_wrist.x, 0.3bl) >= 9.{n:03}/s",
    "hips.y > usual(hips.y, 10s) + 0.9{n:03}bl",
    "first in door then lean > 60.{n:03}deg within 2s",
)
ACTIONS = (
    *("fall", "lying", "lost_while_low", "crouching", "sitting", "bending", "standing_still", "turned_away"),
    *("hands_up", "one_hand_up", "waving", "calling_for_help", "arms_crossed", "hand_to_face", "reaching", "pointing"),
    *("kicking", "punching", "jumping", "walking"),
)
"""Of the library: 20 that are about one person each, and need no place."""
_JOINTS = np.array(
    [
        *((0, -0.95), (0.02, -0.97), (-0.02, -0.97), (0.05, -0.96), (-0.05, -0.96), (0.12, -0.8), (-0.12, -0.8)),
        *((0.18, -0.65), (-0.18, -0.65), (0.2, -0.5), (-0.2, -0.5), (0.08, -0.5), (-0.08, -0.5)),
        *((0.09, -0.27), (-0.09, -0.27), (0.09, -0.04), (-0.09, -0.04)),
    ]
)
"""Joints of someone who stands, measured from the feet in body heights."""


@dataclass(frozen=True, slots=True)
class At:
    time_ns: int


def crowd(people: int, seq: int) -> Picture:
    """Frame `seq` of so many people who walk and wave."""
    t = seq / FPS
    index = np.arange(people)
    height = 150.0 + 7 * (index % 10)
    x = 200 + (index * 173 + 60 * t) % (WIDTH - 400)
    y = 400 + index * 97 % 600 + 3 * np.sin(5 * t + index)
    joints = np.empty((people, len(COCO_17), 3), np.float32)
    joints[:, :, :2] = np.stack([x, y], 1)[:, None] + _JOINTS[None] * height[:, None, None]
    joints[:, 9, 0] += 0.2 * height * math.sin(2 * math.pi * t)
    joints[:, :, 2] = 0.9
    boxes = np.stack([x - height / 5, y - height, x + height / 5, y], 1).astype(np.float32)
    scores = np.full(people, 0.9, np.float32)
    return Picture(At(round(t * 1e9)), index.astype(np.int64), boxes, scores, joints, (WIDTH, HEIGHT))


def rules(count: int, kinds: Sequence[str]) -> list[Rule]:
    """This many rules, each with other numbers."""
    found = []
    for n in range(count):
        text = kinds[n % len(kinds)].format(n=n)
        condition = compile_condition(text, "person", zones=ZONES, lines=())
        found.append(Rule(f"rule{n}", "person", condition, None, Timing(500_000_000, 500_000_000), 500_000_000, 0.3))
    return found


def frame_ms(people: int, count: int, kinds: Sequence[str], frames: int) -> float:
    """Milliseconds of processor time that a frame takes, after the first second."""
    return _judge_ms(Judge(rules(count, kinds), lambda size: Surroundings(*size, ZONES)), people, frames)


def actions_ms(people: int, actions: RuleSet, frames: int) -> float:
    """The same of actions of the library."""
    ready = [one.rule for one in actions.of_camera("cam")]
    return _judge_ms(Judge(ready, lambda size: actions.surroundings("cam", size)), people, frames)


def _judge_ms(judge: Judge, people: int, frames: int) -> float:
    pictures = [crowd(people, seq) for seq in range(FPS + frames)]
    for picture in pictures[:FPS]:
        list(judge.judge(picture))
    began = time.process_time()
    for picture in pictures[FPS:]:
        list(judge.judge(picture))
    return (time.process_time() - began) * 1e3 / frames


def table(people: Sequence[int], counts: Sequence[int], frames: int, rounds: int) -> Iterator[str]:
    yield "| people | rules | ms a frame | with memory in each rule |"
    yield "|---|---|---|---|"
    for crowd_size in people:
        for count in counts:
            plain, looking_back = (
                min(frame_ms(crowd_size, count, kinds, frames) for _ in range(rounds))
                for kinds in (PLAIN, LOOKING_BACK)
            )
            yield f"| {crowd_size} | {count} | {plain:.3f} | {looking_back:.3f} |"


def table_of_actions(people: Sequence[int], frames: int, rounds: int) -> Iterator[str]:
    yield "| people | actions of the library | ms a frame |"
    yield "|---|---|---|"
    for crowd_size in people:
        for name, actions in (("`fall`", ("fall",)), (str(len(ACTIONS)), ACTIONS)):
            chosen = rules_of(actions)
            cost = min(actions_ms(crowd_size, chosen, frames) for _ in range(rounds))
            yield f"| {crowd_size} | {name} | {cost:.3f} |"


def table_of_looks(people: Sequence[int], frames: int, rounds: int) -> Iterator[str]:
    """What `looks_like` adds for each person: if a rule asks about everybody all the time, and if about nobody."""
    yield f"| people | `looks_like`, ms a person and second at {FPS}/s | asked about nobody |"
    yield "|---|---|---|"
    for crowd_size in people:
        plain, always, never = (
            min(actions_ms(crowd_size, _one_rule(when), frames) for _ in range(rounds))
            for when in ("lean > 50deg", "looks_like(fall) > 1", "lean > 50deg and looks_like(fall) > 1")
        )
        asked, unasked = ((cost - plain) * FPS / crowd_size for cost in (always, never))
        yield f"| {crowd_size} | {asked:.2f} | {unasked:.2f} |"


def _one_rule(when: str) -> RuleSet:
    return parse_rules(f"version: 1\nrules: [{{id: asks, when: '{when}'}}]", "rules.yaml")


@click.command()
@click.option("--people", multiple=True, type=int, default=(1, 5, 20), show_default=True)
@click.option("--rules", "counts", multiple=True, type=int, default=(10, 20, 200), show_default=True)
@click.option("--frames", default=250, show_default=True)
@click.option("--rounds", default=3, show_default=True)
def main(people: tuple[int, ...], counts: tuple[int, ...], frames: int, rounds: int) -> None:
    """Print tables of the processor time that judging a frame takes."""
    for lines in (
        table(people, counts, frames, rounds),
        table_of_actions(people, frames, rounds),
        table_of_looks(people, frames, rounds),
    ):
        for line in (*lines, ""):
            click.echo(line)
    click.echo(machine_line())


if __name__ == "__main__":
    main()
