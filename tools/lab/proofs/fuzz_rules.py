"""Hands files of rules that nobody would write to `check`, and judges frames by those that are right.

`python -m camgraph.tools.lab.proofs.fuzz_rules --report docs/proof.md`. A case is a file of the package or of its
documentation with a few changes, or a file of conditions that are made at random from the grammar, some of them changed
as well. `check` must answer with its list of mistakes, or with none. By the rules of a file that are right, frames of
people are judged, with people who come, hide, stand still, have joints that are no numbers, and leave. A traceback is a
fault, and so is more than a second of processor time for all of it. A case is known by the seed and its number, and is
the same on every machine.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import click
import numpy as np
import yaml

from camgraph.pipeline.errors import GraphError
from camgraph.pipeline.testing import stamp
from camgraph.stages.messages import Tracks
from camgraph.stages.rules.library import library
from camgraph.stages.rules.onlooker import Onlooker
from camgraph.stages.rules.rule_set import RuleSet, examined_rules
from camgraph.stages.vision.skeleton import COCO_17
from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.lab.proofs.fuzz_check import RULES, Tried, changed, fuzz, report, try_each

ROOT = Path(__file__).resolve().parents[3]
FRAMES = 12
_CASE_S = 0.02
_SIZE = (640, 480)
_YAML_BLOCK = re.compile(r"```yaml\n(.*?)```", re.DOTALL)
_HEAD = """\
version: 1
other_cameras: ["*"]
zones: {door: [[0.1, 0.1], [0.6, 0.1], [0.6, 0.9]], yard: {front: [[0, 0], [1, 0], [1, 1]]}}
lines: {gate: {from: [0.5, 0], to: [0.5, 1]}}
counters: {visitors: {line: gate}, inside: {zone: door}}
define: {far: 0.8bl, bowed: lean > 40deg, tip: left_wrist}
rules:
"""

_LOOKING_BACK = """\
version: 1
zones: {door: [[0.1, 0.1], [0.6, 0.1], [0.6, 0.9]], Küche: {"*": [[0, 0], [1, 0], [1, 1]]}}
lines: {gate: {from: [0.5, 0], to: [0.5, 1]}}
define: {bowed: lean > 40deg, quick: {means: 'speed > 1h/s or plunging', about: Quick}}
rules:
  - id: falls
    when: first upright then drop(shoulders.y) > 0.5bl within 0.8s then (low or lost while low) within 1s for 2s
    gap: 1.5s
  - id: waves
    when: raised_hand and either(swings(wrist.x - shoulder.x, 0.2 * size, 2s) >= 0.8/s)
    update: 5s
  - {id: leaves, when: gone while (was quick within 0.4s), lost_after: 2s, once: true}
  - {id: lost, when: not bowed and (lost while in Küche for 3s), cooldown: 10s}
  - {id: was, when: "was (enters(door) or crosses(gate, leftward)) within 3s and total(in door, 60s) > 2s", merge: 5s}
  - {id: group, scope: group, near: 0.6h, together: 1s, who: in Küche, when: count >= 2 and people < 9, for: 1s}
  - id: pair
    scope: pair
    when: first drop(distance(a.feet, b.feet), 3s) > 0.2h then a.quick and not b.bowed within 2s
  - id: scene
    scope: scene
    who: dwell(door, 5s) > 1s or running(was)
    when: first count >= 1 then count >= 2 within 9s
"""
"""Every way to look back, and every scope."""

# ---- cases


@cache
def files() -> tuple[str, ...]:
    """The files of rules that the package and its documentation have."""
    configs = [path.read_text() for path in sorted((ROOT / "configs").glob("*rules.yaml"))]
    blocks = [block for page in ("rules", "actions") for block in _YAML_BLOCK.findall(_page(page)) if "rules:" in block]
    return (RULES, *[_LOOKING_BACK] * 4, *configs, *blocks, _whole_library())


def _page(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text()


def _whole_library() -> str:
    """All words and actions of the library as definitions of a file."""
    rulebook = ROOT / "stages" / "rules"
    data = yaml.safe_load((rulebook / "words.yaml").read_text()) | yaml.safe_load(
        (rulebook / "actions.yaml").read_text()
    )
    named = {"zone": "door", "bed": "door", "line": "gate"}
    used = [
        {"use": name, "with": {key: named[key] for key in named if key in template.parameters}}
        for name, template in library().templates.items()
    ]
    return str(yaml.safe_dump({**yaml.safe_load(_HEAD), **data, "rules": used}, sort_keys=False, width=200))


def case_of(seed: int, number: int) -> str:
    """The file of this number. Pure."""
    chance = random.Random(f"{seed}:{number}")  # noqa: S311 - no secret
    if chance.random() < 0.5:
        return changed(chance.choice(files()), chance)
    text = _HEAD + "".join(_rules(chance))
    return changed(text, chance) if chance.random() < 0.3 else text


def _rules(chance: random.Random) -> Iterator[str]:
    for number in range(chance.randint(1, 8)):
        scope = chance.choice(("person", "person", "pair", "scene", "group"))
        when = _Conditions(chance, "scene" if scope == "group" else scope).whole(chance.choice((1, 2, 3, 3, 60)))
        rule = {"id": f"r{number}", "scope": scope, "when": when[:2500], "for": _time(chance), "gap": _time(chance)}
        if chance.random() < 0.2:
            rule["until"] = _Conditions(chance, "scene" if scope == "group" else scope).whole(2)
        if scope in ("scene", "group") and chance.random() < 0.7:
            rule["who"] = _Conditions(chance, "person").whole(2)
        if scope == "group" and chance.random() < 0.5:
            rule |= {"near": chance.choice(("0.8h", "0.1h", "5h", "1px")), "together": _time(chance)}
        yield f"  - {yaml.safe_dump(rule, default_flow_style=True, allow_unicode=True, width=10_000).strip()}\n"


def _time(chance: random.Random) -> str:
    return chance.choice(("0s", "0.1s", "500ms", "2s", "9s", "1min", "600s", "1e3s", "999999999s", "0.0000001s"))


class _Conditions:
    """Conditions from the grammar: most mean something, and few are ever true."""

    def __init__(self, chance: random.Random, scope: str) -> None:
        self._chance = chance
        self._scope = scope

    def whole(self, depth: int) -> str:
        """`depth` bounds how deeply parts stand within each other."""
        chance = self._chance
        if depth > 10:
            return self._deep(depth)
        if chance.random() < 0.2 and depth > 1:
            steps = [f"{self._part(depth - 1)}{self._limit()}" for _ in range(chance.randint(1, 4))]
            return f"first {self._part(depth - 1)} then " + " then ".join(steps)
        return self._part(depth)

    def _deep(self, depth: int) -> str:
        inner = self._leaf()
        around = ("({})", "not {}", "not ({})", "({} for 1s)", "was ({}) within 1s", "({} or in door)", "either({})")
        for _ in range(self._chance.randint(2, depth)):
            inner = self._chance.choice(around).format(inner)
        return inner

    def _limit(self) -> str:
        return self._chance.choice(("", f" within {self._window()}", f" within {self._window()} for {self._window()}"))

    def _window(self) -> str:
        return self._chance.choice(("0.1s", "0.5s", "2s", "8s", "1min", "10min", "1ms", "11min"))

    def _part(self, depth: int) -> str:
        chance = self._chance
        if depth <= 0 or chance.random() < 0.3:
            return self._leaf()
        inner = self._part(depth - 1)
        return chance.choice(
            (
                f"({inner}) {chance.choice(('and', 'or'))} ({self._part(depth - 1)})",
                f"not ({inner})",
                f"({inner}) for {self._window()}",
                f"was ({inner}) within {self._window()}",
                f"lost while ({inner})",
                f"gone while ({inner})",
                f"(first {inner} then {self._part(depth - 1)}{self._limit()})",
                f"either({inner})",
                f"both({inner})",
                f"since({inner}) > {self._window()}",
                f"total({inner}, {self._window()}) > {self._window()}",
            )
        )

    def _leaf(self) -> str:
        chance = self._chance
        if chance.random() < 0.6:
            kind = chance.choice(("length", "x", "y", "angle", "speed", "number"))
            other = kind if chance.random() < 0.9 else "time"
            sign = chance.choice(("<", "<=", ">", ">=", "==", "!="))
            return f"{self._value(kind, 2)} {sign} {self._value(other, 1)}"
        return chance.choice(
            (
                f"{self._whose()}feet in door",
                f"{self._point()} not in yard",
                "in door",
                "lost",
                "gone",
                f"swings({self._point()}.x, 0.2bl, {self._window()}) > 1/s",
                f"velocity({self._point()}.y) > 1bl/s within {self._window()}",
                "enters(door)",
                "leaves(yard)",
                "crosses(gate)",
                "crosses(gate, leftward)",
                f"running(r{chance.randint(0, 8)})",
                f"beyond({self._point()}, {chance.choice(('top', 'bottom', 'left', 'right'))})",
                f"dwell(door, {self._window()}) > {self._window()}",
                "bowed",
                f"{self._whose()}bowed",
                "visitors.inside > 2",
                "age > 0.3s",
            )
        )

    def _whose(self) -> str:
        return {"person": "", "pair": self._chance.choice(("a.", "b.")), "scene": ""}[self._scope]

    def _point(self) -> str:
        names = (*COCO_17, "shoulders", "hips", "knees", "wrists", "feet", "center", "wrist", "other_wrist", "tip")
        return f"{self._whose()}{self._chance.choice(names)}"

    def _value(self, kind: str, depth: int) -> str:
        chance = self._chance
        if self._scope == "scene" and chance.random() < 0.9:
            return chance.choice(
                ("count", "people", "visitors.rightward", "inside.entered", "2", "count / people", "0")
            )
        if kind in ("length", "x", "y") and depth and chance.random() < 0.4:
            return self._past(kind, depth)
        unit = {"length": ("h", "bl", "bh", "px", "fh", "fw"), "x": ("fw", "px"), "y": ("fh", "px"), "angle": ("deg",)}
        number = chance.choice(("0", "0.1", "1", "50", "1e9", "000001", "999999", "1000001", "0.00000001", "-3"))
        whose = self._whose()
        known = {
            "length": (
                f"{whose}torso",
                f"{whose}body_height",
                f"{whose}box.width",
                f"distance({self._point()}, {self._point()})",
                "far",
            ),
            "x": (f"{self._point()}.x", f"{whose}box.left"),
            "y": (f"{self._point()}.y", f"{whose}box.top", f"{self._point()}.y - {number}h"),
            "angle": (f"{whose}lean", f"angle({self._point()}, {self._point()}, {self._point()})"),
            "speed": (f"{whose}speed", f"speed({self._point()})", "0.5h/s", "0.5bh/s", "20px/s", f"{whose}torso / 1s"),
            "number": (f"{whose}score", "0.5", f"{whose}torso / {whose}box.height", f"{whose}frontal", number),
            "time": (f"{whose}age", "2s", "500ms"),
        }[kind]
        if kind in unit and chance.random() < 0.4:
            return f"{number}{chance.choice(unit[kind])}"
        return chance.choice(known)

    def _past(self, kind: str, depth: int) -> str:
        inner, window = self._value(kind, depth - 1), self._window()
        if kind == "length":
            name = self._chance.choice(("drop", "rise", "change", "abs", "usual", "average", "greatest"))
            return f"abs({inner})" if name == "abs" else f"{name}({inner}, {window})"
        return f"{self._chance.choice(('before', 'usual', 'average', 'least'))}({inner}, {window})"


# ---- trying


def answer_to(text: str) -> str:
    """The answer of `check`, after people were judged by the rules that are right. Raises errors that are faults."""
    try:
        rules, problems = examined_rules(text, "rules.yaml")
    except GraphError as error:
        rules, problems = None, list(error.problems)
    if rules is not None and rules.rules:
        judge_some(rules)
    if not problems:
        return "right"
    listed = GraphError(problems)
    if not str(listed) or not listed.with_excerpts:
        raise AssertionError("it is not said what is wrong")
    return "wrong in part" if rules is not None and rules.rules else "wrong"


def judge_some(rules: RuleSet) -> None:
    """Judge the people of some frames, then those of a photograph."""
    onlooker = Onlooker(rules)
    for item in film():
        onlooker.judge(item)
    last = film()[-1]
    onlooker.judge(replace(last, stamp=last.stamp._replace(alone=True)))


@cache
def film() -> tuple[Tracks, ...]:
    """Of four people one walks, one is found in every second frame, one leaves, and one has joints without a place."""
    chance = np.random.default_rng(1)
    found = []
    for seq in range(FRAMES):
        ids = [1, *([2] if seq % 2 else []), *([3] if seq < FRAMES // 2 else []), 4]
        count, spot = len(ids), np.array(ids, np.float32) * 110
        x = spot + np.where(np.array(ids) == 1, 8 * seq, 0)
        boxes = np.stack([x - 20, np.full(count, 100.0), x + 20, np.full(count, 300.0)], 1).astype(np.float32)
        joints = chance.uniform(0, 1, (count, len(COCO_17), 3)).astype(np.float32)
        joints[:, :, 0] = boxes[:, None, 0] + 40 * joints[:, :, 0]
        joints[:, :, 1] = 100 + 200 * joints[:, :, 1]
        joints[-1, ::2] = np.nan
        joints[-1, 1::4] = 1e30
        at = stamp(seq, "front", fps=10)
        scores = np.full(count, 0.9, np.float32)
        found.append(Tracks(at, boxes, scores, joints, _SIZE, np.zeros(count, np.int64), "coco-17", np.array(ids)))
    return tuple(found)


def _share(seed: int, numbers: Sequence[int]) -> Tried:
    for text in (RULES, _whole_library()):  # the first answers take longer: modules are imported, the library is read
        answer_to(text)
    return try_each(numbers, lambda number: answer_to(case_of(seed, number)))


@figure_command("proofs.fuzz_rules")
@click.option("--cases", default=100_000, show_default=True, help="How many files.")
@click.option("--seed", default=1, show_default=True, help="Other cases for another one.")
@click.option("--processes", default=1, show_default=True, help="Among how many it is spread.")
def main(figure: Figure, cases: int, seed: int, processes: int) -> None:
    """Hand files of rules made at random to `check`, and judge by them; status 1 if one of them fails or takes long."""
    figure.takes(_CASE_S * cases / processes, f"{cases} cases")
    tried = fuzz(seed, cases, processes, click.echo, _share)
    head = [figure.head(), figure.others(), ""]
    figure.publish("\n".join([*head, *report(tried, f"{cases} files of rules")]), tried.faults)


if __name__ == "__main__":
    main()
