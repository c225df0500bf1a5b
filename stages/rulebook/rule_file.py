"""The keys of a file of rules. `docs/rules.md` explains it to authors of rules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, field_validator

from pipeline.stage import Settings
from pipeline.system.names import ANY_SCRIPT_PATTERN, MAX_NAME, is_of_any_script, nearest_camera_name, nfc
from pipeline.system.spelling import nearest
from stages.vision.rules.geometry import is_fraction, polygon_problem

EVERY_CAMERA = "*"
NAME = "^[A-Za-z_][A-Za-z0-9_]{0,63}$"
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


def duration_ns(text: str) -> int:
    """`2s`, `500ms`, `1.5min` in nanoseconds. Raises ValueError."""
    found = _DURATION.fullmatch(text)
    if not found:
        raise ValueError(f"expected a time such as 2s, 500ms or 1min, got {text[:40]!r}")
    seconds = float(found[1]) * _SECONDS[found[2]]
    if seconds > MAX_S:
        raise ValueError(f"expected a time of at most {MAX_S // 86_400} days, got {text[:40]!r}")
    return round(seconds * 1e9)


def _duration(value: Any) -> str:
    if not isinstance(value, str):
        hint = f", such as {value}s" if isinstance(value, int | float) and not isinstance(value, bool) else ""
        raise ValueError(f"expected a time with its unit{hint or ' such as 2s or 500ms'}, got {value!r}")
    duration_ns(value)
    return value


Duration = Annotated[str, BeforeValidator(_duration), WithJsonSchema({"type": "string", "pattern": _DURATION.pattern})]
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


def _name(value: str) -> str:
    if not re.fullmatch(NAME, value):
        raise ValueError(f"expected a name of letters, digits and `_` that begins with no digit, got {value!r}")
    if value in RESERVED:
        raise ValueError(f"`{value}` is a word of the language: choose another name")
    return value


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


class LineDefinition(Settings):
    """A line with a direction: `rightward` is from the left to the right of who looks from `from` to `to`."""

    from_: Point = Field(alias="from", description="Where the line begins")
    to: Point = Field(description="Where it ends")

    @field_validator("to")
    @classmethod
    def _apart(cls, to: tuple[float, float], info: Any) -> tuple[float, float]:
        if info.data.get("from_") == to:
            raise ValueError("the line ends where it begins: give it a length")
        return to


def _sound(corners: list[tuple[float, float]]) -> list[tuple[float, float]]:
    whole = all(value == int(value) for point in corners for value in point)
    if not is_fraction(corners) and not whole and any(0 < value < 1 for point in corners for value in point):
        raise ValueError("fractions and pixels are mixed: give all coordinates from 0 to 1, or all in pixels")
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

_SCOPES = ("person", "pair", "scene")
_NO_RULE = {"id": NO_ID, "when": UNKNOWN}


def _meant_scope(wrong: Any) -> str:
    near = nearest(wrong, _SCOPES) if isinstance(wrong, str) else []
    return near[0] if near else "person"


RULE_STAND_INS: Mapping[tuple[str, ...], Any] = {
    ("rules",): [_NO_RULE],
    ("rules", "*"): _NO_RULE,
    ("rules", "*", "id"): NO_ID,
    ("rules", "*", "when"): UNKNOWN,
    ("rules", "*", "scope"): _meant_scope,
    ("zones", "*"): [[0, 0], [1, 0], [1, 1]],
    ("lines", "*"): {"from": [0, 0], "to": [1, 1]},
}
"""Of a file, and of a stage's own rules: a rule with a wrong time still has a condition that can be looked at."""


class RuleDefinition(Settings):
    """One rule: a condition, and how long it must hold, to make an incident."""

    id: RuleId = Field(description="The rule's name, unique in the file")
    action: Action | None = Field(None, description="What events call it; the id by default")
    when: str = Field(min_length=1, description="The condition, such as left_wrist.y < nose.y - 0.1h")
    scope: Literal["person", "pair", "scene"] = Field(
        "person", description="What is judged: each person, each two people (a and b), or all of them together"
    )
    who: str | None = Field(
        None, min_length=1, description="With scope scene: whom `count` counts; everyone by default"
    )
    for_: Duration = Field("0s", alias="for", description="How long it must be true before an incident starts")
    hold: Duration = Field("0.5s", description="How long it must not be true before the incident ends")
    cooldown: Duration = Field("0s", description="From the end of an incident until the same people can start another")
    gap: Duration = Field("0.5s", description="So long unknown or unseen neither counts nor begins anew")
    update: Duration | None = Field(None, description="Tell of a running incident again so often")
    once: bool = Field(False, description="Tell of each incident in a single event, at its start")
    min_visible: float = Field(0.5, ge=0, le=1, description="Judged frames / frames in which the people were seen")
    min_confidence: float | None = Field(None, ge=0, le=1, description="Instead of the file's")
    cameras: list[CameraPattern] = Field(
        [EVERY_CAMERA], min_length=1, description="Cameras of the graph: names, or patterns such as gate-*"
    )


Zones = Annotated[
    dict[Name, Annotated[dict[str, Corners], Field(min_length=1), BeforeValidator(_per_camera)]],
    Field(description="Areas by name: corners, or corners for each camera"),
]
Lines = Annotated[
    dict[Name, Annotated[dict[str, LineDefinition], Field(min_length=1), BeforeValidator(_line_per_camera)]],
    Field(description="Lines by name: {from: [x, y], to: [x, y]}, or such a line for each camera"),
]
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
    other_cameras: OtherCameras = Field(default=[])
    rules: RuleList = Field(min_length=1)


def for_camera(per_camera: Mapping[str, Any], camera: str) -> Any:
    """A camera's own zone or line, else that for every camera, else None."""
    return per_camera.get(camera, per_camera.get(EVERY_CAMERA))
