"""What stands in a file of rules. `docs/rules.md` explains it to those who write one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, field_validator

from pipeline.stage import Settings
from stages.vision.rules.geometry import is_fraction, polygon_problem

EVERY_CAMERA = "*"
NAME = "^[A-Za-z_][A-Za-z0-9_]{0,63}$"
MAX_CORNERS = 100
RESERVED = frozenset({"and", "or", "not", "in", "rightward", "leftward"})

_DURATION = re.compile(r"(\d+\.?\d*|\.\d+)(ms|s|min)")
_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0}


def duration_ns(text: str) -> int:
    """`2s`, `500ms`, `1.5min` in nanoseconds. Raises ValueError."""
    found = _DURATION.fullmatch(text)
    if not found:
        raise ValueError(f"expected a time such as 2s, 500ms or 1min, got {text!r}")
    return round(float(found[1]) * _SECONDS[found[2]] * 1e9)


def _duration(value: Any) -> str:
    if not isinstance(value, str):
        hint = f", such as {value}s" if isinstance(value, int | float) and not isinstance(value, bool) else ""
        raise ValueError(f"expected a time with its unit{hint or ' such as 2s or 500ms'}, got {value!r}")
    duration_ns(value)
    return value


Duration = Annotated[str, BeforeValidator(_duration), WithJsonSchema({"type": "string", "pattern": _DURATION.pattern})]
Coordinate = Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False)]
Point = Annotated[tuple[Coordinate, Coordinate], Field(description="x, y: fractions of the frame, or pixels")]


def _name(value: str) -> str:
    if not re.fullmatch(NAME, value):
        raise ValueError(f"expected a name of letters, digits and `_` that begins with no digit, got {value!r}")
    if value in RESERVED:
        raise ValueError(f"`{value}` is a word of the language: choose another name")
    return value


Name = Annotated[str, AfterValidator(_name), WithJsonSchema({"type": "string", "pattern": NAME})]


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


Corners = Annotated[list[Point], Field(min_length=3, max_length=MAX_CORNERS), AfterValidator(_sound)]


def _per_camera(value: Any) -> Any:
    """`[[x, y], ...]` is for every camera."""
    return {EVERY_CAMERA: value} if isinstance(value, list) else value


def _line_per_camera(value: Any) -> Any:
    """`{from: ..., to: ...}` is for every camera."""
    return {EVERY_CAMERA: value} if isinstance(value, dict) and {"from", "to"} & set(value) else value


class RuleDefinition(Settings):
    """One rule: when what is true for how long is an incident."""

    id: str = Field(pattern="^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$", description="The rule's name, unique in the file")
    action: str | None = Field(None, min_length=1, max_length=100, description="What events call it; the id by default")
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
    cameras: list[str] = Field([EVERY_CAMERA], min_length=1, description="Names or patterns such as gate-*")


Zones = Annotated[
    dict[Name, Annotated[dict[str, Corners], BeforeValidator(_per_camera)]],
    Field(description="Areas by name: corners, or corners for each camera"),
]
Lines = Annotated[
    dict[Name, Annotated[dict[str, LineDefinition], BeforeValidator(_line_per_camera)]],
    Field(description="Lines by name: {from: [x, y], to: [x, y]}, or such a line for each camera"),
]
RuleList = Annotated[list[RuleDefinition], Field(max_length=1000, description="What to look for")]
Confidence = Annotated[float, Field(ge=0, le=1, description="Joints below this confidence are not known")]


class RuleFile(Settings):
    """A file of rules."""

    version: Literal[1] = Field(default=1, description="The version of this format")
    min_confidence: Confidence = 0.3
    zones: Zones = Field(default={})
    lines: Lines = Field(default={})
    rules: RuleList = Field(min_length=1)


def for_camera(per_camera: Mapping[str, Any], camera: str) -> Any:
    """A camera's own zone or line, else that for every camera, else None."""
    return per_camera.get(camera, per_camera.get(EVERY_CAMERA))
