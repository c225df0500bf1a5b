"""Rules made ready to be judged, out of a file or the settings of a stage.

text --yaml_source--> values with places --> RuleFile --compile--> RuleSet
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal, cast

from camgraph.pipeline.errors import EnvironmentProblem, GraphError, Problem, UserError
from camgraph.pipeline.graph.reading import validated
from camgraph.pipeline.graph.report import Report, dotted
from camgraph.pipeline.graph.yaml_reader import Place
from camgraph.pipeline.graph.yaml_source import load
from camgraph.pipeline.system.disk import read_text
from camgraph.pipeline.system.paths import instead_of_file
from camgraph.pipeline.system.spelling import did_you_mean
from camgraph.stages.events import digest
from camgraph.stages.rules.camera_check import Found, FrameSizes, Used, camera_faults, override_faults
from camgraph.stages.rules.fault import Fault, KeyPath
from camgraph.stages.rules.key_hints import WrittenRules, stands_beside_use
from camgraph.stages.rules.language.condition import Condition, compile_condition
from camgraph.stages.rules.language.counters import Of
from camgraph.stages.rules.language.expression import ExpressionError
from camgraph.stages.rules.language.geometry import Line, Surroundings, Zone, beyond_border, in_pixels, zone_of
from camgraph.stages.rules.language.groups import Nearness
from camgraph.stages.rules.language.incidents import Timing
from camgraph.stages.rules.language.judge import Rule, Why
from camgraph.stages.rules.language.lens import Lens
from camgraph.stages.rules.language.meaning import never_so_long
from camgraph.stages.rules.language.people import LOST_AFTER_NS, Point
from camgraph.stages.rules.language.vocabulary import Scope
from camgraph.stages.rules.library import library
from camgraph.stages.rules.posture_network import posture_network
from camgraph.stages.rules.python_functions import INSTALLED
from camgraph.stages.rules.rule_file import (
    NO_ID,
    UNKNOWN,
    LensDefinition,
    LineDefinition,
    Override,
    RuleDefinition,
    RuleFile,
    degrees,
    duration_ns,
    for_camera,
    heights,
)
from camgraph.stages.rules.rule_remarks import remarks_on
from camgraph.stages.rules.schedule import Schedule, Times
from camgraph.stages.rules.templates import MadeRule, Template, made_rule, trial_of
from camgraph.stages.rules.word_extent import Budget, extents, names_in
from camgraph.stages.video.dates import zone_of as time_zone_of
from camgraph.stages.vision.posture import Network

MAX_OVERRIDES = 2_000
"""Cameras and patterns under `per_camera` of all rules of a file."""
MAX_FILE_CELLS = 2_000
"""Different parts of a file's conditions that look back: with eight times as many, the first frame takes 11 s."""


_SHAPES = ("zones", "lines")
"""What conditions name, as attributes of `Condition`."""


@dataclass(frozen=True, slots=True)
class ReadyRule:
    """A rule with everything that its events need."""

    rule: Rule
    definition: RuleDefinition
    hash: str
    times: Times = field(default_factory=Times)

    @property
    def action(self) -> str:
        return self.definition.action or self.definition.id

    @property
    def zones(self) -> list[str]:
        return sorted({name for one in self.rule.conditions.values() for name in one.zones})

    @property
    def lines(self) -> list[str]:
        return sorted({name for one in self.rule.conditions.values() for name in one.lines})


@dataclass(frozen=True, slots=True)
class RuleSet:
    """All rules of a file, by id; `per_camera`: of those that are different for cameras, (name or pattern, rule)."""

    file: RuleFile
    rules: Mapping[str, ReadyRule]
    used: Used = field(default_factory=dict)
    schedules: Mapping[str, Schedule] = field(default_factory=dict)
    per_camera: Mapping[str, Sequence[tuple[str, ReadyRule]]] = field(default_factory=dict)
    remarks: Sequence[str] = ()
    """In words, on what is right, but perhaps not intended; with the place of each if they are of a file."""

    def asleep(
        self, rules: Iterable[ReadyRule], wall_ns: int | None, changed: Mapping[str, bool] | None = None
    ) -> dict[str, Why]:
        """Rule -> why it is not judged at this time of day (None: there is none, and no schedule counts).

        `changed`: the switches that somebody has set; the others are as in the file.
        """
        found: dict[str, Why] = {}
        if wall_ns is not None and self.schedules:
            resting = (one for one in rules if one.times and not one.times.fit(self.schedules, wall_ns))
            found |= {ready.definition.id: "schedule" for ready in resting}
        off = {name for name, on in {**self.default_switches, **(changed or {})}.items() if not on}
        if off:
            found |= {one.definition.id: "switch" for one in rules if not off.isdisjoint(one.definition.while_)}
        return found

    @property
    def default_switches(self) -> dict[str, bool]:
        """Switch -> whether it is on until somebody sets it."""
        return {name: switch.default for name, switch in self.file.switches.items()}

    @property
    def looking_back(self) -> set[str]:
        """The ids of the rules whose conditions have a part that looks back in time."""
        return {
            rule_id
            for rule_id, ready in self.rules.items()
            if ready.rule.nearness or any(one.temporal for one in ready.rule.conditions.values())
        }

    def of_camera(self, camera: str) -> list[ReadyRule]:
        """Those that a camera is judged by: its name fits, and it has the zones and lines that they use."""
        return [
            self._own(ready, camera)
            for ready in self.rules.values()
            if any(fnmatchcase(camera, pattern) for pattern in ready.definition.cameras)
            and all(for_camera(self.file.zones[name], camera) for name in ready.zones)
            and all(for_camera(self.file.lines[name], camera) for name in ready.lines)
        ]

    def _own(self, ready: ReadyRule, camera: str) -> ReadyRule:
        """The rule as it is for a camera: by its name, else by the first pattern that fits, else as for all."""
        different = self.per_camera.get(ready.definition.id, ())
        fitting = [(pattern != camera, own) for pattern, own in different if fnmatchcase(camera, pattern)]
        return min(fitting, key=lambda one: one[0])[1] if fitting else ready

    def floor(self, camera: str) -> float:
        """The least confidence that a rule of this camera asks of a joint: below it, a joint is known to none."""
        floors = [ready.rule.min_confidence for ready in self.of_camera(camera)]
        return min(floors, default=self.file.min_confidence)

    def zones_of(self, ready: ReadyRule, camera: str, size: tuple[int, int]) -> dict[str, Zone]:
        """The zones that this rule uses, for frames of (width, height) of a camera."""
        return {name: _zone(for_camera(self.file.zones[name], camera), size) for name in ready.zones}

    def open(self) -> None:
        """Load what the conditions need, so that the first frame need not wait, and a mistake ends the start."""
        _network([*self.rules.values(), *(ready for some in self.per_camera.values() for _, ready in some)])

    def surroundings(self, camera: str, size: tuple[int, int]) -> Surroundings:
        """The zones and lines of a camera that its rules and counters use, for frames of (width, height)."""
        file, rules = self.file, self.of_camera(camera)
        counters = file.counters.values()
        zones = sorted({name for ready in rules for name in ready.zones} | {one.zone for one in counters if one.zone})
        lines = sorted({name for ready in rules for name in ready.lines} | {one.line for one in counters if one.line})
        return Surroundings(
            *size,
            {name: _zone(drawn, size) for name in zones if (drawn := for_camera(file.zones.get(name, {}), camera))},
            {name: _line(drawn, size) for name in lines if (drawn := for_camera(file.lines.get(name, {}), camera))},
            lens=_lens(for_camera(file.lenses, camera), size),
            network=_network(rules),
        )


def _network(rules: Iterable[ReadyRule]) -> Network | None:
    """The network that answers `looks_like`, if one of the rules asks."""
    return posture_network() if any(ready.rule.asks_network for ready in rules) else None


def _lens(
    definition: LensDefinition | Literal["learn"] | None, size: tuple[int, int]
) -> Lens | Literal["learn"] | None:
    if definition is None or definition == "learn":
        return definition
    return Lens.of(degrees(definition.tilt), degrees(definition.fov), size[0])


def _zone(corners: Sequence[Point], size: tuple[int, int]) -> Zone:
    return zone_of(beyond_border(in_pixels(corners, size), size))


def _line(definition: LineDefinition, size: tuple[int, int]) -> Line:
    start, end = in_pixels([definition.from_, definition.to], size)
    return Line(start, end)


# ---- compiling


def compile_rules(file: RuleFile, cameras: FrameSizes | None = None) -> tuple[RuleSet, list[Fault]]:
    """The correct rules, and the mistakes in the others.

    `cameras`: those that the rules are for; without them it is not asked whether rules and zones are for any of them.
    """
    vocabulary, wrong_words = _vocabulary(file)
    templates, wrong_templates = _templates(file, vocabulary)
    ids = frozenset(rule.id or rule.use or NO_ID for rule in file.rules)
    vocabulary = replace(vocabulary, rules=ids - {NO_ID})
    compiler = _Compiler(file, vocabulary, templates)
    for index in range(len(file.rules)):
        compiler.take(index)
    schedules, wrong_zone = _schedules(file)
    rules = compiler.rule_set(schedules)
    rules = replace(rules, remarks=[text for _, text in _remarks(rules)])
    faults = [*wrong_zone, *wrong_words, *wrong_templates, *compiler.faults]
    if cameras is not None:
        faults += [Fault(path, text) for path, text in camera_faults(rules.file, rules.used, cameras)]
        faults += [Fault(path, text) for path, text in override_faults(file, cameras)]
    return rules, [*faults, *_too_much_memory(rules), *_circles(rules), *_wrong_counters(file)]


def _remarks(rules: RuleSet) -> Iterator[Found]:
    index_of = {definition.id: index for index, definition in enumerate(rules.file.rules)}
    conditions = (
        (("rules", index_of[rule_id], key), rule_id, condition)
        for rule_id, ready in rules.rules.items()
        for key, condition in ready.rule.conditions.items()
    )
    return remarks_on(rules.file, conditions)


class _Compiler:
    """Takes the rules of a file one after the other, and keeps those that are right, and the mistakes of the others.

    `faults`: so far. A rule with a mistake stands in the file of the set, too, but is not among its rules.
    """

    def __init__(self, file: RuleFile, vocabulary: _Vocabulary, templates: Mapping[str, Template]) -> None:
        self.faults: list[Fault] = []
        self._file, self._vocabulary, self._templates = file, vocabulary, templates
        self._ready: dict[str, ReadyRule] = {}
        self._used: dict[int, tuple[Collection[str], Collection[str]]] = {}
        self._whole: list[RuleDefinition] = []
        self._ids: set[str] = set()
        self._per_camera: dict[str, list[tuple[str, ReadyRule]]] = {}
        self._too_many = sum(len(rule.per_camera) for rule in file.rules) > MAX_OVERRIDES
        if self._too_many:
            text = f"`per_camera` stands for more than {MAX_OVERRIDES:,} cameras and patterns: use fewer patterns"
            self.faults.append(Fault(("rules",), text))

    def rule_set(self, schedules: Mapping[str, Schedule]) -> RuleSet:
        """The rules that are right."""
        file = self._file.model_copy(update={"rules": self._whole})
        return RuleSet(file, self._ready, self._used, schedules, self._per_camera)

    def take(self, index: int) -> None:
        """The rule at this place: itself, and what it is for some cameras."""
        written, path = self._file.rules[index], ("rules", index)
        made, wrong = self._made(written, path)
        definition = made.definition if made else _unreadable(written)
        self._whole.append(definition)
        if definition.id in self._ids - {NO_ID}:
            wrong.append(Fault((*path, "id"), f"a rule `{definition.id}` stands above: each needs its own id"))
        self._ids.add(definition.id)
        if made:
            wrong += self._for_all(made, index, sound=not wrong)
        else:
            wrong += _unknown_names(written, path, self._file)
        if not self._too_many:  # a mistake of the rule itself is found again for each camera
            wrong += [fault for fault in self._for_some(written, path) if fault not in wrong]
        self.faults += wrong

    def _made(
        self, written: RuleDefinition, path: KeyPath, override: tuple[KeyPath, Override] | None = None
    ) -> tuple[MadeRule | None, list[Fault]]:
        file = self._file
        return made_rule(written, path, self._templates, zones=file.zones, lines=file.lines, override=override)

    def _for_all(self, made: MadeRule, index: int, *, sound: bool) -> list[Fault]:
        """Keep the rule as it is for all cameras if it is `sound` and has no further mistake; returns its mistakes."""
        definition = made.definition
        conditions, wrong = _conditions(definition, self._vocabulary, made.fault)
        wrong = [*wrong, *_unknown_names(definition, ("rules", index), self._file)]
        if "when" in conditions:
            used = conditions.values()
            zones, lines = (frozenset(name for one in used for name in getattr(one, kind)) for kind in _SHAPES)
            self._used[index] = (zones, lines)
        if "when" in conditions and sound and not wrong and self._has_shapes(conditions):
            self._ready[definition.id] = _ready(self._file, definition, conditions, self._vocabulary)
        return wrong

    def _has_shapes(self, conditions: Mapping[str, Condition]) -> bool:
        """Whether there are the zones and lines; a counter may name one that there is not, which is its mistake."""
        zones, lines = self._file.zones.keys(), self._file.lines.keys()
        return all(one.zones <= zones and one.lines <= lines for one in conditions.values())

    def _for_some(self, written: RuleDefinition, path: KeyPath) -> list[Fault]:
        """Keep the rule as it is for the cameras of `per_camera`; returns the mistakes there."""
        faults: list[Fault] = []
        for pattern, override in written.per_camera.items():
            own, wrong = self._made(written, path, ((*path, "per_camera", pattern), override))
            if own:
                conditions, more = _conditions(own.definition, self._vocabulary, own.fault)
                wrong += more
                if "when" in conditions and not wrong and self._has_shapes(conditions):
                    different = _ready(self._file, own.definition, conditions, self._vocabulary)
                    self._per_camera.setdefault(own.definition.id, []).append((pattern, different))
            faults += wrong
        return faults


def _too_much_memory(rules: RuleSet) -> Iterator[Fault]:
    """More parts that look back than can be made in a moment, for each person who is seen."""
    ready = [*rules.rules.values(), *(one for own in rules.per_camera.values() for _, one in own)]
    cells = {cell for one in ready for condition in one.rule.conditions.values() for cell in condition.cells}
    if len(cells) > MAX_FILE_CELLS:
        text = (
            f"the conditions of this file have {len(cells):,} different parts that look back in time: expected at most "
            f"{MAX_FILE_CELLS:,}; ask the same of all, by words, or divide the rules among several stages"
        )
        yield Fault(("rules",), text)


def _circles(rules: RuleSet) -> Iterator[Fault]:
    """Rules that ask by `running(...)` about their own incidents."""
    asked = {rule_id: one.rule.asks_about for rule_id, one in rules.rules.items()}
    for index, definition in enumerate(rules.file.rules):
        way = _way_back(definition.id, asked)
        if way:
            circle = " -> ".join(way)
            text = f"the rule asks about its own incidents by `running(...)`: {circle}; ask in one direction only"
            yield Fault(("rules", index, "when" if definition.when != UNKNOWN else "id"), text)


def _way_back(start: str, asked: Mapping[str, Collection[str]]) -> list[str]:
    """From a rule over those that it asks about to itself; empty if there is no such way."""
    came_from: dict[str, str] = {}
    todo = [start]
    while todo:
        here = todo.pop()
        for there in sorted(asked.get(here, ())):
            if there == start:
                way = [start, here]
                while way[-1] != start:
                    way.append(came_from[way[-1]])
                return way[::-1]
            if there not in came_from:
                came_from[there] = here
                todo.append(there)
    return []


def _ready(
    file: RuleFile,
    definition: RuleDefinition,
    conditions: Mapping[str, Condition],
    vocabulary: _Vocabulary,
) -> ReadyRule:
    rule = _rule(definition, conditions, file.min_confidence)
    times = Times(tuple(definition.during), tuple(definition.not_during))
    return ReadyRule(rule, definition, _hash(file, definition, rule, vocabulary), times)


def _schedules(file: RuleFile) -> tuple[dict[str, Schedule], list[Fault]]:
    if not file.schedules:
        return {}, []
    if file.time_zone is None:
        text = "expected `time_zone` beside `schedules`, such as `time_zone: Europe/Berlin`: whose clock is meant?"
        return {}, [Fault(("schedules",), text)]
    zone = time_zone_of(file.time_zone)
    return {name: Schedule(periods, zone, file.holidays) for name, periods in file.schedules.items()}, []


def _counters(file: RuleFile) -> dict[str, tuple[Of, str]]:
    lines = {name: ("line", one.line) for name, one in file.counters.items() if one.line}
    zones = {name: ("zone", one.zone) for name, one in file.counters.items() if one.zone}
    return cast(dict[str, tuple[Of, str]], {**lines, **zones})


def _wrong_counters(file: RuleFile) -> Iterator[Fault]:
    for name, one in file.counters.items():
        for kind, shape, known in (("line", one.line, file.lines), ("zone", one.zone, file.zones)):
            if shape not in (None, NO_ID) and shape not in known:
                guess = did_you_mean(shape, known) or (f"; known: {', '.join(known)}" if known else "")
                yield Fault(("counters", name, kind), f"there is no {kind} `{shape}`{guess}")
        if one.reset is not None and file.time_zone is None:
            text = "expected `time_zone` beside it, such as `time_zone: Europe/Berlin`: whose clock is meant?"
            yield Fault(("counters", name, "reset"), text)


def _unknown_names(definition: RuleDefinition, path: KeyPath, file: RuleFile) -> Iterator[Fault]:
    """Schedules and switches that the file does not have."""
    asked: tuple[tuple[str, Sequence[str], str, Collection[str]], ...] = (
        ("during", definition.during, "schedule", file.schedules),
        ("not_during", definition.not_during, "schedule", file.schedules),
        ("while", definition.while_, "switch", file.switches),
    )
    for key, names, kind, known in asked:
        for name in names:
            if name not in known:
                plural = f"{kind}es" if kind == "switch" else f"{kind}s"
                listed = f"; known: {', '.join(known)}" if known else f": this file has no `{plural}`"
                text = f"there is no {kind} `{name}`{did_you_mean(name, known) or listed}"
                yield Fault((*path, key), text, section=plural)


def _unreadable(written: RuleDefinition) -> RuleDefinition:
    """Stands for a rule of which no whole one can be made."""
    keys = {"id": written.id or NO_ID, "when": UNKNOWN, "cameras": written.cameras}
    return RuleDefinition.model_validate(keys)


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    """The names that conditions may use besides those of the language. `wrong`: words with mistakes of their own."""

    zones: frozenset[str]
    lines: frozenset[str]
    words: Mapping[str, str]
    budget: Budget
    wrong: frozenset[str] = frozenset()
    rules: frozenset[str] | None = None
    """The ids that `running(...)` may name; None for any."""
    actions: frozenset[str] = frozenset()
    """What a rule may `use`."""
    counters: Mapping[str, tuple[Of, str]] = field(default_factory=dict)

    def compiled(self, text: str, scope: Scope, lost_after_ns: int = LOST_AFTER_NS) -> Condition:
        """Raises ExpressionError."""
        self.budget.take(text, scope, lost_after_ns)
        return compile_condition(
            text,
            scope,
            zones=self.zones,
            lines=self.lines,
            words=self.words,
            rules=self.rules,
            lost_after_ns=lost_after_ns,
            counters=self.counters,
            functions=INSTALLED,
            actions=self.actions,
        )

    def behind(self, *texts: str) -> dict[str, str]:
        """The words that these texts use, directly or by other words."""
        found: dict[str, str] = {}
        todo = list(texts)
        while todo:
            names = set(names_in(todo.pop())) & self.words.keys() - found.keys()
            found |= {name: self.words[name] for name in names}
            todo += [self.words[name] for name in names]
        return found


def _vocabulary(file: RuleFile) -> tuple[_Vocabulary, list[Fault]]:
    """All words, of which those of the file are checked by themselves."""
    words = {name: word.means for name, word in {**library().words, **file.define}.items()}
    measured = extents(words)
    too_much = {name: why for name in file.define if (why := measured[name].why_too_much)}
    first = [name for name in too_much if too_much.keys().isdisjoint(names_in(words[name]))]
    # Neither they nor their users are expanded.
    words |= dict.fromkeys(too_much, UNKNOWN)
    budget = Budget(extents(words))
    vocabulary = _Vocabulary(
        frozenset(file.zones),
        frozenset(file.lines),
        words,
        budget,
        actions=frozenset(library().templates) | frozenset(file.templates),
        counters=_counters(file),
    )
    wrong = {name for name, text in words.items() if text == UNKNOWN}
    faults = [Fault(("define", name, "means"), f"`{name}`: {too_much[name]}") for name in first]
    elsewhere: dict[str, list[ExpressionError]] = {}
    for name in [name for name in file.define if name not in wrong]:
        found = _fewest_errors(vocabulary, name)
        own = [one for one in found if one.word == name]
        faults += [Fault(("define", name, "means"), str(one), one.at) for one in own]
        if own:
            wrong.add(name)
        elif found:
            elsewhere[name] = found
    for name, errors in elsewhere.items():  # circles, and words that are right for another scope
        others = [one for one in errors if one.word not in wrong or one.word in elsewhere]
        texts = [f"{one} (in the definition of `{one.word}`)" for one in others]
        faults += [Fault(("define", name, "means"), text) for text in texts]
        wrong.add(name)
    return replace(vocabulary, wrong=frozenset(wrong)), faults


def _uses(word: str) -> tuple[tuple[str, Scope], ...]:
    """How a word may stand in a condition: it is right if its definition is in one of these."""
    return (word, "person"), (word, "scene"), (f"either({word})", "person")


def _fewest_errors(vocabulary: _Vocabulary, word: str) -> list[ExpressionError]:
    """The mistakes in the definition of a word where it fits best."""
    found: list[list[ExpressionError]] = []
    for text, scope in _uses(word):
        found.append(_word_errors(vocabulary, text, scope))
        if not found[-1]:
            break
    return min(found, key=len)


def _word_errors(vocabulary: _Vocabulary, text: str, scope: Scope) -> list[ExpressionError]:
    """The mistakes in the definition of a word. That it is a value, and no condition, is none."""
    try:
        vocabulary.compiled(text, scope)
    except ExpressionError as error:
        return [one for one in error.all if one.word]
    return []


def _templates(file: RuleFile, vocabulary: _Vocabulary) -> tuple[dict[str, Template], list[Fault]]:
    """Those of the library and of the file, which are checked by themselves."""
    found = {name: Template(name, definition) for name, definition in library().templates.items()}
    faults: list[Fault] = []
    for name, definition in file.templates.items():
        template = Template(name, definition, ("templates", name))
        wrong = _template_faults(template, vocabulary)
        found[name] = replace(template, sound=not wrong)
        faults += wrong
    return found, faults


def _template_faults(template: Template, vocabulary: _Vocabulary) -> list[Fault]:
    assert template.path is not None
    path = template.path
    trial, faults = trial_of(template)
    if trial is None:
        return faults

    def fault(key: str, text: str, offset: int) -> Fault:
        at = trial.texts[key].raw(offset) if key in trial.texts else offset
        return Fault((*path, key), text, at)

    more = replace(vocabulary, zones=vocabulary.zones | trial.zones, lines=vocabulary.lines | trial.lines)
    return _conditions(trial.definition, more, fault)[1]


def _conditions(
    definition: RuleDefinition,
    vocabulary: _Vocabulary,
    fault: Callable[[str, str, int], Fault | None],
) -> tuple[dict[str, Condition], list[Fault]]:
    """`when`, `until` and `who` of a rule, compiled, by key, and the mistakes in them.

    `fault` makes a mistake of key, text and offset. A condition with a mistake is left out.
    """
    faults: list[Fault | None] = []

    def compiled(key: str, text: str, scope: Scope) -> Condition | None:
        if text == UNKNOWN:
            return None
        try:
            return vocabulary.compiled(text, scope, duration_ns(definition.lost_after))
        except ExpressionError as error:
            faults.extend(in_section(of_text(key, one), one.unknown) for one in error.all)
            return None

    def of_text(key: str, error: ExpressionError) -> Fault | None:
        if not error.word:
            return fault(key, str(error), error.at)
        if error.word in vocabulary.wrong:
            return None
        return fault(key, f"{error} (in the definition of `{error.word}`)", error.used_at)

    def in_section(fault: Fault | None, kind: str) -> Fault | None:
        return replace(fault, section=f"{kind}s") if fault and kind else fault

    own: Scope = "scene" if definition.scope == "group" else definition.scope
    when = compiled("when", definition.when, own)
    until = compiled("until", definition.until, own) if definition.until else None
    who = compiled("who", definition.who, "person") if definition.who else None
    for key, text in _wrong_together(definition, when):
        found = fault(key, text, 0)
        faults.append(replace(found, offset=None) if found else None)
    conditions = {key: one for key, one in (("when", when), ("until", until), ("who", who)) if one}
    return conditions, [one for one in faults if one is not None]


def _wrong_together(definition: RuleDefinition, when: Condition | None) -> Iterator[tuple[str, str]]:
    """Keys that do not fit the others, and why."""
    if when and duration_ns(definition.for_) >= when.at_most_ns:
        yield "for", never_so_long(definition.for_, when.at_most_ns)
    if definition.merge and definition.scope in ("scene", "group"):
        yield (
            "merge",
            f"`merge` needs `scope: person` or `scope: pair`: a {definition.scope} has one incident at a time",
        )
    if definition.who and definition.scope not in ("scene", "group"):
        yield "who", f"`who` needs `scope: scene` or `scope: group`, got `scope: {definition.scope}`"
    for key in ("near", "together"):
        if key in definition.model_fields_set and definition.scope != "group":
            yield key, f"`{key}` needs `scope: group`, got `scope: {definition.scope}`"


def _rule(definition: RuleDefinition, conditions: Mapping[str, Condition], min_confidence: float) -> Rule:
    timing = Timing(
        for_ns=duration_ns(definition.for_),
        hold_ns=duration_ns(definition.hold),
        cooldown_ns=duration_ns(definition.cooldown),
        update_ns=duration_ns(definition.update) if definition.update else None,
        min_visible=definition.min_visible,
    )
    floor = min_confidence if definition.min_confidence is None else definition.min_confidence
    group = definition.scope == "group"
    nearness = Nearness(heights(definition.near), duration_ns(definition.together)) if group else None
    when, until, who = conditions["when"], conditions.get("until"), conditions.get("who")
    gap_ns = duration_ns(definition.gap)
    return Rule(definition.id, definition.scope, when, who, timing, gap_ns, floor, nearness, until)


def _hash(file: RuleFile, definition: RuleDefinition, rule: Rule, vocabulary: _Vocabulary) -> str:
    ready = ReadyRule(rule, definition, "")
    shapes = file.model_dump(mode="json", by_alias=True, include={"zones", "lines"})
    zones = {name: shapes["zones"][name] for name in ready.zones}
    lines = {name: shapes["lines"][name] for name in ready.lines}
    own = definition.model_dump(
        mode="json", by_alias=True, exclude_defaults=True, exclude={"about", "least_fps", "caution"}
    )
    if file.lenses:
        own["lenses"] = file.model_dump(mode="json", include={"lenses"})["lenses"]
    words = vocabulary.behind(definition.when, definition.until or "", definition.who or "")
    code = {name: of for one in rule.conditions.values() for name, of in one.functions.items()}
    named = {*definition.during, *definition.not_during}
    if named:
        times = file.model_dump(mode="json", by_alias=True, include={"schedules", "time_zone", "holidays"})
        times["schedules"] = {name: times["schedules"].get(name) for name in named}
        return digest(own, rule.min_confidence, zones, lines, words, times, *filter(None, [code]))[:16]
    return digest(own, rule.min_confidence, zones, lines, words, *filter(None, [code]))[:16]


# ---- reading


def read_rules(path: Path) -> RuleSet:
    """The rules of a file. Raises GraphError with all problems and their places, UserError or EnvironmentProblem."""
    return parse_rules(rules_text(path), str(path))


def rules_text(path: Path) -> str:
    """The text of a file of rules. Raises UserError or EnvironmentProblem."""
    other = instead_of_file(path)
    if other:
        raise UserError(
            f"{path} is {other}: expected a file of rules in YAML; `camgraph help rules` describes them",
            error_id="rules-file",
        )
    try:
        return read_text(path)
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(
            f"there is no rules file {path}: `camgraph help rules` says how to write one", error_id="rules-file"
        ) from None
    except UnicodeDecodeError:
        raise UserError(
            f"{path} is no text file: expected rules in YAML; `camgraph help rules` describes them",
            error_id="rules-file",
        ) from None
    except OSError as error:
        raise EnvironmentProblem(
            f"cannot read the rules file {path}: {error.strerror}", error_id="rules-file"
        ) from error


def parse_rules(text: str, name: str) -> RuleSet:
    """As `read_rules`, for a text that messages call `name`."""
    rules, problems = examined_rules(text, name)
    if problems or rules is None:
        raise GraphError(problems)
    return rules


def examined_rules(text: str, name: str, cameras: FrameSizes | None = None) -> tuple[RuleSet | None, list[Problem]]:
    """The rules of a text as far as they are right, and all that is wrong with it.

    `cameras`: those that the rules are for; without them it is not asked whether rules and zones are for any of them.
    Raises GraphError for a text that is no YAML.
    """
    report = Report(load(text, name), error_id="rule-mistake")
    if not isinstance(report.source.data, dict):
        report.add((), "expected `key: value` lines: version, zones, lines and rules")
        return None, report.problems
    file = validated(WrittenRules, report.source.data, report)
    if file is None:
        return None, report.problems
    rules, faults = compile_rules(file, cameras)
    new = [fault for fault in faults if not _follows(fault, report)]
    remarks = [str(report.source.problem(path, text)) for path, text in _remarks(rules)]
    return replace(rules, remarks=remarks), [*report.problems, *(_problem(report, fault) for fault in new)]


def _follows(fault: Fault, report: Report) -> bool:
    """Whether a mistake is there only because of one that has been reported."""
    if report.covers(fault.path) or stands_beside_use(report.source.data, fault.path):
        return True
    if fault.path[:1] == ("rules",) and len(fault.path) == 2 and report.covers((*fault.path, "use")):
        return True  # it lacks what its template would have given
    return bool(fault.section) and report.covers((fault.section,))


def _problem(report: Report, fault: Fault) -> Problem:
    """A fault at its place; inside a condition, at the very word."""
    line, column = report.source.position(fault.path)
    short = isinstance(_value(report.source.data, fault.path[:-1]), str)
    words = f"{dotted(fault.path[:-1] if short else fault.path)}: {fault.text}"
    if fault.also:
        words += f"; it stands in line {report.source.position(fault.also).line}"
    if fault.offset is not None:
        whole = str(_value(report.source.data, fault.path))
        line, column = _place_within(report.source.lines, Place(line, column), whole, fault.offset)
    return report.source.shown_in(Problem(report.source.file, line, column, words, error_id="rule-mistake"))


def _place_within(rows: Sequence[str], place: Place, text: str, offset: int) -> Place:
    """The place of a character of a text that begins at a place; that place if its rows are written otherwise."""
    at = 0
    for number in range(place.line, len(rows) + 1):
        row, begin = rows[number - 1], 0
        if number == place.line:
            begin = place.column - 1
            if row[begin : begin + 1] in ("|", ">"):
                continue
            begin += row[begin : begin + 1] in ('"', "'")
        begin += len(row[begin:]) - len(row[begin:].lstrip())
        piece = row[begin:].rstrip()[: len(text) - at]
        if not piece or not text.startswith(piece, at):
            break
        if offset <= at + len(piece):
            return Place(number, begin + offset - at + 1)
        at += len(piece) + 1
    return place


def _value(data: object, path: KeyPath) -> object:
    """The value there, None if there is none; of a short form, which stands for a mapping, the whole."""
    for part in path:
        if isinstance(data, str):
            return data
        if isinstance(data, list) and isinstance(part, int) and part < len(data):
            data = data[part]
        else:
            data = data.get(part) if isinstance(data, dict) else None
    return data
