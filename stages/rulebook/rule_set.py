"""Rules made ready to be judged, out of a file or the settings of a stage.

text --yaml_source--> values with places --> RuleFile --compile--> RuleSet
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from pipeline.errors import EnvironmentProblem, GraphError, Problem, UserError
from pipeline.graph.reading import validated
from pipeline.graph.report import Report, dotted
from pipeline.graph.yaml_source import load
from pipeline.system.disk import read_text
from pipeline.system.paths import instead_of_file
from stages.events import digest
from stages.rulebook.camera_check import FrameSizes, Used, camera_faults
from stages.rulebook.rule_file import (
    NO_ID,
    UNKNOWN,
    LineDefinition,
    RuleDefinition,
    RuleFile,
    duration_ns,
    for_camera,
)
from stages.vision.rules.condition import Condition, Scope, compile_condition
from stages.vision.rules.expression import ExpressionError
from stages.vision.rules.geometry import Line, Surroundings, Zone, in_pixels, zone_of
from stages.vision.rules.incidents import Timing
from stages.vision.rules.judge import Rule

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class ReadyRule:
    """A rule with everything that its events need."""

    rule: Rule
    definition: RuleDefinition
    hash: str

    @property
    def action(self) -> str:
        return self.definition.action or self.definition.id

    @property
    def zones(self) -> list[str]:
        return sorted(self.rule.when.zones | (self.rule.who.zones if self.rule.who else frozenset()))

    @property
    def lines(self) -> list[str]:
        return sorted(self.rule.when.lines | (self.rule.who.lines if self.rule.who else frozenset()))


@dataclass(frozen=True, slots=True)
class RuleSet:
    """All rules of a file, by id."""

    file: RuleFile
    rules: Mapping[str, ReadyRule]
    used: Used = field(default_factory=dict)

    def of_camera(self, camera: str) -> list[ReadyRule]:
        """Those that a camera is judged by: its name fits, and it has the zones and lines that they use."""
        return [
            ready
            for ready in self.rules.values()
            if any(fnmatchcase(camera, pattern) for pattern in ready.definition.cameras)
            and all(for_camera(self.file.zones[name], camera) for name in ready.zones)
            and all(for_camera(self.file.lines[name], camera) for name in ready.lines)
        ]

    def zones_of(self, ready: ReadyRule, camera: str, size: tuple[int, int]) -> dict[str, Zone]:
        """The zones that this rule uses, for frames of (width, height) of a camera."""
        return {name: zone_of(in_pixels(for_camera(self.file.zones[name], camera), size)) for name in ready.zones}

    def surroundings(self, camera: str, size: tuple[int, int]) -> Surroundings:
        """The zones and lines of a camera that its rules use, for frames of (width, height)."""
        rules = self.of_camera(camera)
        zones = sorted({name for ready in rules for name in ready.zones})
        lines = sorted({name for ready in rules for name in ready.lines})
        return Surroundings(
            *size,
            {name: zone_of(in_pixels(for_camera(self.file.zones[name], camera), size)) for name in zones},
            {name: _line(for_camera(self.file.lines[name], camera), size) for name in lines},
        )


def _line(definition: LineDefinition, size: tuple[int, int]) -> Line:
    start, end = in_pixels([definition.from_, definition.to], size)
    return Line(start, end)


# ---- compiling


@dataclass(frozen=True, slots=True)
class Fault:
    """A mistake in a rule: the path of its key, the text, and its offset in the text of a condition."""

    path: KeyPath
    text: str
    offset: int | None = None


def compile_rules(file: RuleFile, cameras: FrameSizes | None = None) -> tuple[RuleSet, list[Fault]]:
    """The correct rules, and the mistakes in the others.

    `cameras`: those that the rules are for; without them it is not asked whether rules and zones are for any of them.
    """
    faults: list[Fault] = []
    ready: dict[str, ReadyRule] = {}
    used: dict[int, tuple[Collection[str], Collection[str]]] = {}
    ids: set[str] = set()
    for index, definition in enumerate(file.rules):
        when, who, wrong = _conditions(definition, index, file.zones, file.lines)
        if definition.id in ids - {NO_ID}:
            wrong.append(Fault(("rules", index, "id"), f"a rule `{definition.id}` stands above: each needs its own id"))
        ids.add(definition.id)
        faults += wrong
        if when:
            used[index] = (
                when.zones | (who.zones if who else frozenset()),
                when.lines | (who.lines if who else frozenset()),
            )
        if when and not wrong:
            rule = _rule(definition, when, who, file.min_confidence)
            ready[definition.id] = ReadyRule(rule, definition, _hash(file, definition, rule))
    if cameras is not None:
        faults += [Fault(path, text) for path, text in camera_faults(file, used, cameras)]
    return RuleSet(file, ready, used), faults


def _conditions(
    definition: RuleDefinition, index: int, zones: Collection[str], lines: Collection[str]
) -> tuple[Condition | None, Condition | None, list[Fault]]:
    """`when` and `who` of a rule, compiled, and the mistakes in them."""
    faults: list[Fault] = []

    def compiled(key: str, text: str, scope: Scope) -> Condition | None:
        if text == UNKNOWN:
            return None
        try:
            return compile_condition(text, scope, zones=zones, lines=lines)
        except ExpressionError as error:
            faults.extend(Fault(("rules", index, key), str(one), one.at) for one in error.all)
            return None

    when = compiled("when", definition.when, definition.scope)
    who = compiled("who", definition.who, "person") if definition.who else None
    if definition.who and definition.scope != "scene":
        faults.append(Fault(("rules", index, "who"), f"`who` needs `scope: scene`, got `scope: {definition.scope}`"))
    return when, who, faults


def _rule(definition: RuleDefinition, when: Condition, who: Condition | None, min_confidence: float) -> Rule:
    timing = Timing(
        for_ns=duration_ns(definition.for_),
        hold_ns=duration_ns(definition.hold),
        cooldown_ns=duration_ns(definition.cooldown),
        update_ns=duration_ns(definition.update) if definition.update else None,
        min_visible=definition.min_visible,
    )
    floor = min_confidence if definition.min_confidence is None else definition.min_confidence
    return Rule(definition.id, definition.scope, when, who, timing, duration_ns(definition.gap), floor)


def _hash(file: RuleFile, definition: RuleDefinition, rule: Rule) -> str:
    ready = ReadyRule(rule, definition, "")
    shapes = file.model_dump(mode="json", by_alias=True, include={"zones", "lines"})
    zones = {name: shapes["zones"][name] for name in ready.zones}
    lines = {name: shapes["lines"][name] for name in ready.lines}
    return digest(definition.model_dump(mode="json", by_alias=True), rule.min_confidence, zones, lines)[:16]


# ---- reading


def read_rules(path: Path) -> RuleSet:
    """The rules of a file. Raises GraphError with all problems and their places, UserError or EnvironmentProblem."""
    return parse_rules(rules_text(path), str(path))


def rules_text(path: Path) -> str:
    """The text of a file of rules. Raises UserError or EnvironmentProblem."""
    other = instead_of_file(path)
    if other:
        raise UserError(f"{path} is {other}: expected a file of rules in YAML; `camgraph help rules` describes them")
    try:
        return read_text(path)
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(f"there is no rules file {path}: `camgraph help rules` says how to write one") from None
    except UnicodeDecodeError:
        raise UserError(
            f"{path} is no text file: expected rules in YAML; `camgraph help rules` describes them"
        ) from None
    except OSError as error:
        raise EnvironmentProblem(f"cannot read the rules file {path}: {error.strerror}") from error


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
    report = Report(load(text, name))
    if not isinstance(report.source.data, dict):
        report.add((), "expected `key: value` lines: version, zones, lines and rules")
        return None, report.problems
    file = validated(RuleFile, report.source.data, report)
    if file is None:
        return None, report.problems
    rules, faults = compile_rules(file, cameras)
    faults = [fault for fault in faults if not report.covers(fault.path)]
    return rules, [*report.problems, *(_problem(report, fault, text) for fault in faults)]


def _problem(report: Report, fault: Fault, text: str) -> Problem:
    """A fault at its place; inside a condition that stands on one line, at the very word."""
    line, column = report.source.position(fault.path)
    words = f"{dotted(fault.path)}: {fault.text}"
    if fault.offset is not None and 0 < line <= len(rows := text.splitlines()):
        whole = str(_value(report.source.data, fault.path))
        begin = rows[line - 1].find(whole, column - 1)
        column = begin + fault.offset + 1 if column - 1 <= begin <= column else column
    return Problem(report.source.file, line, column, words)


def _value(data: object, path: KeyPath) -> object:
    for part in path:
        data = data[part]  # type: ignore[index]
    return data
