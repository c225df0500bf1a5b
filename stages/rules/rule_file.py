"""The keys of a file of rules. `docs/rules.md` explains it to authors of rules."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from camgraph.pipeline.graph.explain import shown
from camgraph.pipeline.stage import Settings
from camgraph.pipeline.system.names import ANY_SCRIPT_PATTERN, MAX_NAME, is_of_any_script, nearest_camera_name, nfc
from camgraph.pipeline.system.spelling import nearest
from camgraph.stages.rules.language.expression import NAME_OF_ANY_SCRIPT
from camgraph.stages.rules.language.geometry import is_fraction, polygon_problem
from camgraph.stages.rules.language.kinds import heights_for, meant_time
from camgraph.stages.rules.language.vocabulary import NAMES
from camgraph.stages.rules.schedule import Holiday, PeriodDefinitions, TimeOfDay, Zone

EVERY_CAMERA = "*"
NAME = (
    r"^[^\u0000-\u0040\u005b-\u005e\u0060\u007b-\u00a0]"
    r"[^\u0000-\u002f\u003a-\u0040\u005b-\u005e\u0060\u007b-\u00a0]{0,63}$"
)
"""For editors: it refuses the blanks and signs of ASCII."""
MAX_ID = 64
"""Characters of a rule's id."""
MAX_S = 366 * 86_400
MIN_CORNERS, MAX_CORNERS = 3, 100
UNKNOWN = "?"
"""Stands for a condition that could not be read."""
NO_ID = "_" * MAX_ID
"""Stands for the id of a rule that has none."""
RESERVED = frozenset({"and", "or", "not", "in", "rightward", "leftward"})

_DURATION = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ms|s|min)")
_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0}
_ABOUT_A_TIME = re.compile(r"\s*([0-9]+(?:[.,][0-9]+)?)\s*([A-Za-z]+)\s*")


def duration_ns(text: str) -> int:
    """`2s`, `500ms`, `1.5min` in nanoseconds. Raises ValueError."""
    found = _DURATION.fullmatch(text)
    if not found:
        raise ValueError(f"expected a time such as 2s, 500ms or 1min, got {text[:40]!r}{_meant_time(text)}")
    seconds = float(found[1]) * _SECONDS[found[2]]
    if seconds > MAX_S:
        raise ValueError(f"expected a time of at most {MAX_S // 86_400} days, got {text[:40]!r}")
    return round(seconds * 1e9)


def _meant_time(text: str) -> str:
    """`; did you mean `2min`?` for `2 minutes`."""
    found = _ABOUT_A_TIME.fullmatch(text[:MAX_ID])
    if not found:
        return ""
    meant = meant_time(found[1].replace(",", "."), found[2].lower())
    return f"; did you mean `{meant}`?" if meant else ""


def _duration(value: Any) -> str:
    if not isinstance(value, str):
        hint = f", such as {value}s" if isinstance(value, int | float) and not isinstance(value, bool) else ""
        raise ValueError(f"expected a time with its unit{hint or ' such as 2s or 500ms'}, got {shown(value)}")
    duration_ns(value)
    return value


Duration = Annotated[str, BeforeValidator(_duration), WithJsonSchema({"type": "string", "pattern": _DURATION.pattern})]

PLACEHOLDER = re.compile(rf"\{{({NAME_OF_ANY_SCRIPT})\}}")
"""In a template, a parameter in the place of a value."""


def _filled(value: Any) -> Any:
    """Raises ValueError for a placeholder that YAML has read as a mapping."""
    if isinstance(value, dict) and len(value) == 1 and None in value.values():
        name = next(iter(value))
        raise ValueError(f'write "{{{name}}}" with quotes: without them YAML reads a mapping')
    return value


def _template_duration(value: Any) -> str:
    value = _filled(value)
    return value if isinstance(value, str) and PLACEHOLDER.fullmatch(value) else _duration(value)


TemplateDuration = Annotated[
    str,
    BeforeValidator(_template_duration),
    WithJsonSchema({"type": "string", "pattern": rf"{_DURATION.pattern}|\{{[^{{}}]+\}}"}),
]
TemplateText = Annotated[str, BeforeValidator(_filled), Field(min_length=1)]
Coordinate = Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False)]


def _two_numbers(value: Any) -> Any:
    if isinstance(value, list) and len(value) != 2:
        raise ValueError(f"expected a point [x, y], got a list of {len(value)}")
    return value


Point = Annotated[
    tuple[Coordinate, Coordinate],
    Field(description="x, y: fractions of the frame, or pixels"),
    BeforeValidator(_two_numbers),
]


def is_word(text: str) -> bool:
    """Whether something may be a name in conditions: of a zone, a line, a word and so on."""
    return len(text) <= MAX_ID and re.fullmatch(NAME_OF_ANY_SCRIPT, text) is not None and is_of_any_script(text)


def _name(value: str) -> str:
    name = nfc(value)
    if not is_word(name):
        expected = f"letters of any script, digits and `_` (at most {MAX_ID} characters), and no digit first"
        raise ValueError(f"expected a name of {expected}, got {value[:MAX_ID]!r}")
    if name in RESERVED:
        raise ValueError(f"`{name}` is a word of the language: choose another name")
    return name


Name = Annotated[str, AfterValidator(_name), WithJsonSchema({"type": "string", "pattern": NAME})]


def _rule_id(value: str) -> str:
    name = nfc(value)
    if len(name) > MAX_ID or not is_of_any_script(name):
        near = nearest_camera_name(name) if len(name) <= MAX_NAME else ""
        raise ValueError(
            f"expected letters of any script, digits, `_` and `-` (at most {MAX_ID} characters), got {name[:MAX_ID]!r}"
            + (f"; did you mean `{near}`?" if near else "")
        )
    return name


RuleId = Annotated[
    str,
    AfterValidator(_rule_id),
    WithJsonSchema({"type": "string", "pattern": ANY_SCRIPT_PATTERN, "maxLength": MAX_ID}),
]


def _action(value: str) -> str:
    if not value.isprintable():
        raise ValueError(f"expected letters that can be seen, got {value!r}: receivers of events print it")
    return value


Action = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_action)]


def _check_unit(points: Sequence[tuple[float, float]]) -> None:
    """Raises ValueError for fractions beside pixels."""
    whole = all(value == int(value) for point in points for value in point)
    if not is_fraction(points) and not whole and any(0 < value < 1 for point in points for value in point):
        raise ValueError("fractions and pixels are mixed: give all coordinates from 0 to 1, or all in pixels")


class LineDefinition(Settings):
    """A line with a direction: `rightward` is from the left to the right of who looks from `from` to `to`."""

    from_: Point = Field(alias="from", description="Where the line begins")
    to: Point = Field(description="Where it ends")

    @field_validator("to")
    @classmethod
    def _has_length(cls, to: tuple[float, float], info: Any) -> tuple[float, float]:
        if info.data.get("from_") == to:
            raise ValueError("the line ends where it begins: give it a length")
        return to

    @model_validator(mode="after")
    def _in_one_unit(self) -> Self:
        _check_unit([self.from_, self.to])
        return self


def _sound(corners: list[tuple[float, float]]) -> list[tuple[float, float]]:
    _check_unit(corners)
    problem = polygon_problem(corners)
    if problem:
        raise ValueError(problem)
    return corners


def _countable(value: Any) -> Any:
    if isinstance(value, list) and not MIN_CORNERS <= len(value) <= MAX_CORNERS:
        limit = f"{MIN_CORNERS} or more" if len(value) < MIN_CORNERS else f"at most {MAX_CORNERS}"
        raise ValueError(f"expected {limit} corners, got {len(value)}")
    return value


Corners = Annotated[
    list[Point],
    Field(min_length=MIN_CORNERS, max_length=MAX_CORNERS),
    BeforeValidator(_countable),
    AfterValidator(_sound),
]


def _per_camera(value: Any) -> Any:
    """`[[x, y], ...]` is for every camera."""
    return {EVERY_CAMERA: value} if isinstance(value, list) else value


def _line_per_camera(value: Any) -> Any:
    """`{from: ..., to: ...}` is for every camera."""
    return {EVERY_CAMERA: value} if isinstance(value, dict) and {"from", "to"} & set(value) else value


CameraPattern = Annotated[str, AfterValidator(nfc)]
"""A camera's name or a pattern of names, in the composed form that cameras have."""

_SCOPES = ("person", "pair", "scene", "group")
RuleScope = Literal["person", "pair", "scene", "group"]
_HEIGHTS = re.compile(r"([0-9]{1,3}(?:\.[0-9]+)?|\.[0-9]+)h")

_METRES = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)\s*([a-z]+)")


def heights(text: str) -> float:
    """`0.8h`: 0.8 heights of a person. Raises ValueError."""
    found = _HEIGHTS.fullmatch(text) if isinstance(text, str) else None
    if not found or float(found[1]) == 0:
        metres = _METRES.fullmatch(text) if isinstance(text, str) else None
        hint = heights_for(float(metres[1]), metres[2]) if metres else ""
        raise ValueError(f"expected a distance in heights of people, such as 0.8h, got {text!r:.40}{hint}")
    return float(found[1])


def _heights(value: Any) -> str:
    heights(value)
    return str(value)


Heights = Annotated[str, BeforeValidator(_heights), WithJsonSchema({"type": "string", "pattern": _HEIGHTS.pattern})]
_NO_RULE = {"id": NO_ID, "when": UNKNOWN}
_NO_TEMPLATE = {"when": UNKNOWN}


def _meant_scope(wrong: Any) -> str:
    near = nearest(wrong, _SCOPES) if isinstance(wrong, str) else []
    return near[0] if near else "person"


def _meant_counter(wrong: Any) -> Mapping[str, str]:
    """One of the same kind, of a line or zone without a name: conditions that ask it are no mistake."""
    kind = "zone" if isinstance(wrong, dict) and any(nearest(str(key), ["zone"]) for key in wrong) else "line"
    return {kind: NO_ID}


RULE_STAND_INS: Mapping[tuple[str, ...], Any] = {
    ("rules",): [_NO_RULE],
    ("rules", "*"): _NO_RULE,
    ("rules", "*", "id"): NO_ID,
    ("rules", "*", "when"): UNKNOWN,
    ("rules", "*", "scope"): _meant_scope,
    ("define", "*"): UNKNOWN,
    ("time_zone",): "UTC",
    ("switches", "*"): {"default": True},
    ("counters", "*"): _meant_counter,
    ("schedules", "*"): {"from": "00:00", "to": "24:00"},
    ("templates", "*"): _NO_TEMPLATE,
    ("templates", "*", "when"): UNKNOWN,
    ("zones", "*"): [[0, 0], [1, 0], [1, 1]],
    ("lines", "*"): {"from": [0, 0], "to": [1, 1]},
}
"""Of a file, and of a stage's own rules: a rule with a wrong time still has a condition that can be looked at."""


ParameterKind = Literal[
    "time", "length", "angle", "speed", "rate", "number", "zone", "line", "condition", "name", "switch"
]
ParameterValue = Annotated[StrictBool | str | int | float, Field(union_mode="left_to_right")]


class ParameterDefinition(Settings):
    """A parameter of a template. `zone: {kind: zone}` must be given; `low_for: 5s` has that value if it is not."""

    default: ParameterValue | None = Field(None, description="Its value if a rule gives none; without one it must")
    kind: ParameterKind | None = Field(
        None, description="The kind of its values; by default that of the default, such as a time for 5s"
    )
    about: str = Field("", description="What it is for")

    @model_validator(mode="after")
    def _known_kind(self) -> Self:
        if self.kind is None and self.default is None:
            raise ValueError("expected `default` or `kind`, such as `kind: zone`")
        return self


def _parameter(value: Any) -> Any:
    """`5s` is the default."""
    return {"default": value} if isinstance(value, str | int | float) else value


Parameters = Annotated[
    dict[Name, Annotated[ParameterDefinition, BeforeValidator(_parameter)]],
    Field(description="Its parameters: a default, or {default, kind, about}"),
]


class TemplateDefinition(Settings):
    """A rule with parameters, which stand as `{name}` in its texts and times."""

    about: str = Field("", max_length=500, description="What it finds, as in a rule")
    parameters: Parameters = Field(default={})
    action: Action | None = Field(None, description="What events call it; the rule's id by default")
    severity: Severity = Field("warning", description="As in a rule")
    when: TemplateText = Field(description="The condition, with parameters such as in {zone}")
    scope: RuleScope = Field("person", description="As in a rule")
    until: TemplateText | None = Field(None, description="As in a rule")
    who: TemplateText | None = Field(None, description="As in a rule")
    near: Heights = Field("0.8h", description="As in a rule")
    together: TemplateDuration = Field("2s", description="As in a rule")
    for_: TemplateDuration = Field("0s", alias="for", description="As in a rule")
    hold: TemplateDuration = Field("0.5s", description="As in a rule")
    cooldown: TemplateDuration = Field("0s", description="As in a rule")
    gap: TemplateDuration = Field("0.5s", description="As in a rule")
    lost_after: TemplateDuration = Field("1s", description="As in a rule")
    merge: TemplateDuration | None = Field(None, description="As in a rule")
    update: TemplateDuration | None = Field(None, description="As in a rule")
    once: bool = Field(False, description="As in a rule")
    min_visible: float = Field(0.5, ge=0, le=1, description="As in a rule")
    min_confidence: float | None = Field(None, ge=0, le=1, description="As in a rule")
    least_fps: float | None = Field(None, gt=0, le=240, description="As in a rule")
    caution: str = Field("", max_length=500, description="As in a rule")


class WordDefinition(Settings):
    """A word of one's own: a condition or a value that rules may name."""

    means: str = Field(min_length=1, description="The condition or value, such as hips.y > knees.y")
    about: str = Field("", description="What it is for")


def _word(value: Any) -> Any:
    return {"means": value} if isinstance(value, str) else value


def _own_word(value: str) -> str:
    if value in NAMES:
        raise ValueError(f"`{value}` is a word of the language: choose another name")
    return value


WordName = Annotated[Name, AfterValidator(_own_word)]
Words = Annotated[
    dict[WordName, Annotated[WordDefinition, BeforeValidator(_word)]],
    Field(description="Words of your own for conditions and values: a text, or {means, about}"),
]
Templates = Annotated[
    dict[RuleId, TemplateDefinition],
    Field(description="Rules with parameters, for `use`"),
]


Severity = Literal["info", "warning", "alarm"]


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Names = Annotated[list[Name], Field(max_length=20), BeforeValidator(_as_list)]


_LEAST_REPORT_NS = 10**9
DAY_NS = 86_400 * 10**9
_HOURS = re.compile(r"([0-9]{1,4})h")


def _report_period(value: Any) -> str:
    """Hours have a unit here: elsewhere `h` is the height of a person."""
    if value == "reset":
        return "reset"
    written = value
    if isinstance(value, str) and (hours := _HOURS.fullmatch(value)):
        value = f"{60 * int(hours[1])}min"
    length_ns = duration_ns(_duration(value))
    if length_ns < _LEAST_REPORT_NS:
        raise ValueError(f"expected a time of at least 1s, such as 15min, or `reset`, got {value!r}")
    if length_ns > DAY_NS and length_ns % DAY_NS:
        raise ValueError(f"expected at most 24h, or whole days, such as 48h, got {written!r}: they begin at midnight")
    return str(value)


ReportPeriod = Annotated[
    str,
    BeforeValidator(_report_period),
    WithJsonSchema({"type": "string", "pattern": rf"^(reset|[0-9]{{1,4}}h|{_DURATION.pattern})$"}),
]


def _named_schedules(value: Any) -> Any:
    """Raises ValueError for a time of day in the place of a schedule's name."""
    period = value if isinstance(value, dict) else None
    for one in value if isinstance(value, list) else [value]:
        found = _A_PERIOD.search(one) if isinstance(one, str) else None
        if found:
            period = {"from": found[1].zfill(5), "to": found[2].zfill(5)}
        elif isinstance(one, dict):
            period = one
    if period is None:
        return _as_list(value)
    begin, end = (str(period.get(key, usual))[:5] for key, usual in (("from", "21:00"), ("to", "06:00")))
    raise ValueError(
        f'expected the name of a schedule: write `schedules: {{my_hours: {{from: "{begin}", to: "{end}"}}}}` beside '
        "`rules`, and `my_hours` here"
    )


_A_PERIOD = re.compile(r"([0-2]?[0-9]:[0-5][0-9])\s*(?:-|\u2013|to)\s*([0-2]?[0-9]:[0-5][0-9])")
ScheduleNames = Annotated[list[Name], Field(max_length=20), BeforeValidator(_named_schedules)]


class CounterDefinition(Settings):
    """Counts people over a line, or in a zone, for conditions about the scene."""

    line: Name | None = Field(None, description="A line: who crosses it, in each direction")
    zone: Name | None = Field(None, description="A zone: who comes in and goes out, and who is in it now")
    reset: TimeOfDay | None = Field(None, description='The time of day at which it begins at zero, such as "00:00"')
    report: ReportPeriod | None = Field(
        None,
        description="Make an event of its numbers this often, such as 1h, when it is set to zero, and at the end; "
        "`reset`: only in these two cases",
    )

    @model_validator(mode="after")
    def _of_one(self) -> Self:
        if (self.line is None) == (self.zone is None):
            raise ValueError("expected either `line` or `zone`")
        return self


class Override(Settings):
    """The keys of a rule that are different for some cameras."""

    with_: dict[str, ParameterValue] = Field(
        {}, alias="with", description="Values for the parameters of the template, instead of the rule's"
    )
    for_: Duration = Field("0s", alias="for", description="Instead of the rule's")
    hold: Duration = Field("0.5s", description="Instead of the rule's")
    cooldown: Duration = Field("0s", description="Instead of the rule's")
    gap: Duration = Field("0.5s", description="Instead of the rule's")
    lost_after: Duration = Field("1s", description="Instead of the rule's")
    merge: Duration | None = Field(None, description="Instead of the rule's")
    update: Duration | None = Field(None, description="Instead of the rule's")
    min_visible: float = Field(0.5, ge=0, le=1, description="Instead of the rule's")
    min_confidence: float | None = Field(None, ge=0, le=1, description="Instead of the rule's")
    severity: Severity = Field("warning", description="Instead of the rule's")


class RuleDefinition(Settings):
    """One rule: a condition, and how long it must hold, to make an incident."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": ["id", "when"]}, {"required": ["use"]}]})

    id: RuleId = Field("", description="The rule's name, unique in the file; with `use` the template's by default")
    use: str | None = Field(None, min_length=1, description="A template of the file, or an action of the library")
    with_: dict[str, ParameterValue] = Field(
        {}, alias="with", description="Values for the parameters of the template, such as {low_for: 8s}"
    )
    action: Action | None = Field(None, description="What events call it; the id by default")
    severity: Severity = Field("warning", description="How grave it is, for the people who get the events")
    about: str = Field(
        "",
        max_length=500,
        description="What it finds, in the words of those who get the alerts; the template's by default",
    )
    when: str = Field("", description="The condition, such as left_wrist.y < nose.y - 0.1h")
    scope: RuleScope = Field(
        "person",
        description="What is judged: each person, each two people (a and b), all of them together, or each group",
    )
    until: str | None = Field(
        None,
        min_length=1,
        description="A condition: the incident goes on until it is true, or its people are out of sight",
    )
    who: str | None = Field(
        None, min_length=1, description="With scope scene or group: whom `count` counts; everyone by default"
    )
    near: Heights = Field(
        "0.8h", description="With scope group: people are near each other if their feet are less apart, in heights"
    )
    together: Duration = Field("2s", description="With scope group: for how long they must be near to be a group")
    for_: Duration = Field("0s", alias="for", description="How long it must be true before an incident starts")
    hold: Duration = Field("0.5s", description="How long it must not be true before the incident ends")
    cooldown: Duration = Field("0s", description="From the end of an incident until the same people can start another")
    gap: Duration = Field("0.5s", description="So long it may be unknown or unseen without beginning anew")
    lost_after: Duration = Field(
        "1s", description="Who is unseen for longer, and did not leave by the border, is `lost`"
    )
    update: Duration | None = Field(None, description="Tell of a running incident again so often")
    once: bool = Field(False, description="Tell of each incident in a single event, at its start")
    min_visible: float = Field(0.5, ge=0, le=1, description="Judged frames / frames in which the people were seen")
    min_confidence: float | None = Field(None, ge=0, le=1, description="Instead of the file's")
    least_fps: float | None = Field(
        None, gt=0, le=240, description="With fewer frames a second it misses most: `check` and the log say so"
    )
    caution: str = Field(
        "", max_length=500, description="Why nobody should rely on it, for `check` to say; the template's by default"
    )
    during: ScheduleNames = Field([], description="Schedules: it is judged only in the time of one of these")
    not_during: ScheduleNames = Field([], description="Schedules: it is not judged in the time of any of these")
    merge: Duration | None = Field(
        None, description="Incidents of other people that overlap, or begin so soon after, are the same incident"
    )
    while_: Names = Field([], alias="while", description="Switches: it is judged only while all of these are on")
    cameras: list[CameraPattern] = Field(
        [EVERY_CAMERA], min_length=1, description="Cameras of the graph: names, or patterns such as gate-*"
    )
    per_camera: dict[CameraPattern, Override] = Field(
        {}, max_length=100, description="Times and numbers that are different for cameras: names, or patterns"
    )


KEYS_OF_RULES = tuple(field.alias or name for name, field in RuleDefinition.model_fields.items())
Zones = Annotated[
    dict[Name, Annotated[dict[str, Corners], Field(min_length=1), BeforeValidator(_per_camera)]],
    Field(description="Areas by name: corners, or corners for each camera"),
]
Lines = Annotated[
    dict[Name, Annotated[dict[str, LineDefinition], Field(min_length=1), BeforeValidator(_line_per_camera)]],
    Field(description="Lines by name: {from: [x, y], to: [x, y]}, or such a line for each camera"),
]
_ANGLE = re.compile(r"([0-9]{1,3}(?:\.[0-9]+)?)deg")


def degrees(text: str) -> float:
    """`35deg`: 35.0. Raises ValueError."""
    found = _ANGLE.fullmatch(text) if isinstance(text, str) else None
    if not found:
        raise ValueError(f"expected an angle such as 35deg, got {text!r:.40}")
    return float(found[1])


def _angle(least: float, most: float) -> Any:
    """An angle as text, in this range."""

    def checked(value: Any) -> str:
        if not least <= degrees(value) <= most:
            raise ValueError(f"expected an angle from {least:g}deg to {most:g}deg, got {value!r:.40}")
        return str(value)

    return BeforeValidator(checked)


class LensDefinition(Settings):
    """How a camera looks down, so that people at the sides of its picture, who lean outwards there, are upright."""

    tilt: Annotated[str, _angle(0, 70), WithJsonSchema({"type": "string", "pattern": _ANGLE.pattern})] = Field(
        description="How far it looks down, against looking level: 35deg"
    )
    fov: Annotated[str, _angle(10, 150), WithJsonSchema({"type": "string", "pattern": _ANGLE.pattern})] = Field(
        description="The angle of view across the width of its picture, as its data sheet says: 90deg"
    )


def _lens_per_camera(value: Any) -> Any:
    """`learn`, or one definition, is for every camera."""
    return (
        {EVERY_CAMERA: value}
        if value == "learn" or (isinstance(value, dict) and {"tilt", "fov"} & set(value))
        else value
    )


Lenses = Annotated[
    dict[str, Literal["learn"] | LensDefinition],
    BeforeValidator(_lens_per_camera),
    Field(
        description="How cameras look down, by name: {tilt: 35deg, fov: 90deg}, or `learn`, from people who walk; "
        "by default they look level"
    ),
]
Schedules = Annotated[
    dict[Name, PeriodDefinitions],
    Field(description='Times of day by name: {from: "21:00", to: "06:00"}, or a list of these'),
]


def _state(value: Any) -> Any:
    """`"on"` is true; without quotes YAML may read a boolean anyway."""
    return {"on": True, "off": False}.get(value, value) if isinstance(value, str) else value


class SwitchDefinition(Settings):
    """A state that people set while it runs."""

    default: Annotated[bool, BeforeValidator(_state)] = Field(description="Whether it is on at the start")
    keep: bool = Field(False, description="The next run of the same name begins with the state that was set last")


def _switch(value: Any) -> Any:
    """`true` is the default."""
    return value if isinstance(value, dict | SwitchDefinition) else {"default": value}


Counters = Annotated[
    dict[WordName, CounterDefinition],
    Field(max_length=100, description="Counters by name: {line: gate} or {zone: till}; conditions ask visitors.inside"),
]
Switches = Annotated[
    dict[Name, Annotated[SwitchDefinition, BeforeValidator(_switch)]],
    Field(description="States that people set while it runs, by name: on at the start or not, or {default, keep}"),
]
Holidays = Annotated[list[Holiday], Field(max_length=1000, description="Dates, such as 2026-12-24, or 12-25 each year")]
RuleList = Annotated[list[RuleDefinition], Field(max_length=1000, description="The rules")]
OtherCameras = Annotated[
    list[Annotated[CameraPattern, Field(min_length=1)]],
    Field(
        description="Names or patterns of cameras that rules, zones and lines may be for although the graph does not "
        "have them: they are added while the run goes on, or belong to another graph that shares these rules"
    ),
]
Confidence = Annotated[float, Field(ge=0, le=1, description="Joints below this confidence are not known")]


class RuleFile(Settings):
    """A file of rules."""

    stand_ins = RULE_STAND_INS

    version: Literal[1] = Field(default=1, description="The version of this format")
    min_confidence: Confidence = 0.3
    zones: Zones = Field(default={})
    lines: Lines = Field(default={})
    lenses: Lenses = Field(default={})
    schedules: Schedules = Field(default={})
    time_zone: Zone | None = Field(None, description="The zone of schedules, as Europe/Berlin or +01:00")
    holidays: Holidays = Field(default=[])
    switches: Switches = Field(default={})
    counters: Counters = Field(default={})
    define: Words = Field(default={})
    templates: Templates = Field(default={})
    other_cameras: OtherCameras = Field(default=[])
    rules: RuleList = Field(min_length=1)


def for_camera(per_camera: Mapping[str, Any], camera: str) -> Any:
    """A camera's own zone or line, else that for every camera, else None."""
    return per_camera.get(camera, per_camera.get(EVERY_CAMERA))
