"""What the rules say of a camera now, to be shown: the rules that fire, and where its zones and lines lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from camgraph.stages.rules.evidence import in_words
from camgraph.stages.rules.language.geometry import in_pixels
from camgraph.stages.rules.language.judge import Verdict
from camgraph.stages.rules.language.people import Point
from camgraph.stages.rules.rule_file import for_camera
from camgraph.stages.rules.rule_set import ReadyRule, RuleSet

ONCE_NS = 2_000_000_000
"""How long, in stream time, an incident is shown that is reported once."""


@dataclass(frozen=True, slots=True)
class Firing:
    """A rule that fires now: its name in events, its person (nobody for a scene), and the reason, in a few words.

    `about`: what the rule says it is about, "" if nothing.
    """

    action: str
    ids: tuple[int, ...]
    why: str
    shapes: tuple[str, ...] = ()
    """The zones and lines that the rule asks about."""
    until_ns: int | None = None
    about: str = ""


@dataclass(slots=True)
class FiringRules:
    """Those of one camera, from their verdicts. Times in stream time."""

    _known: dict[tuple[str, tuple[int, ...]], Firing] = field(default_factory=dict)

    def note(self, ready: ReadyRule, verdict: Verdict, now_ns: int) -> None:
        """Take the next verdict about this rule."""
        self._drop_over(now_ns)  # also if nobody ever asks for `now`
        key = (verdict.rule.id, verdict.ids)
        once = ready.definition.once
        if verdict.phase == "end":
            if not once:
                self._known.pop(key, None)
            return
        until_ns = now_ns + ONCE_NS if once else None
        if verdict.phase == "start" or not once:
            why = in_words(verdict.evidence)
            ids = verdict.everyone if verdict.rule.scope == "group" else verdict.ids
            self._known[key] = Firing(
                ready.action, ids, why, (*ready.zones, *ready.lines), until_ns, ready.definition.about or ""
            )

    def now(self, now_ns: int) -> tuple[Firing, ...]:
        """Those that fire at this time."""
        self._drop_over(now_ns)
        return tuple(self._known.values())

    def _drop_over(self, now_ns: int) -> None:
        over = [key for key, one in self._known.items() if one.until_ns is not None and one.until_ns <= now_ns]
        for key in over:
            del self._known[key]


@dataclass(frozen=True, slots=True)
class Shapes:
    """All that is drawn for a camera, also what no rule uses. `lines`: from and to; `rightward` goes to their right."""

    zones: Mapping[str, Sequence[Point]] = field(default_factory=dict)
    lines: Mapping[str, tuple[Point, Point]] = field(default_factory=dict)


def shapes_of(rules: RuleSet, camera: str, size: tuple[int, int]) -> Shapes:
    """In pixels of frames of `size`."""
    zones: dict[str, Sequence[Point]] = {}
    lines: dict[str, tuple[Point, Point]] = {}
    for name, shapes in rules.file.zones.items():
        if corners := for_camera(shapes, camera):
            zones[name] = in_pixels(corners, size)
    for name, definitions in rules.file.lines.items():
        if definition := for_camera(definitions, camera):
            start, end = in_pixels([definition.from_, definition.to], size)
            lines[name] = (start, end)
    return Shapes(zones, lines)
