"""The parameters of a call: their schemas for the OpenAPI document, and the reading of their values.

If a value makes no sense, `read` raises UserError with a reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from starlette.requests import Request

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.foreign_text import shown
from camgraph.pipeline.system.names import A_CAMERA_NAME, MAX_NAME, is_camera_name, nfc
from camgraph.pipeline.system.spelling import did_you_mean

_MOST_SHOWN = 60


class Parameter(Protocol):
    """One parameter of a query."""

    @property
    def about(self) -> str:
        """A sentence about the parameter, for the OpenAPI document."""

    def schema(self) -> dict[str, Any]:
        """The allowed values, as a JSON schema."""

    def read(self, name: str, text: str) -> Any:
        """The value that the text stands for. Raises UserError if it stands for none."""


@dataclass(frozen=True, slots=True)
class Text:
    """A parameter that may be any text."""

    about: str

    def schema(self) -> dict[str, Any]:
        return {"type": "string"}

    def read(self, name: str, text: str) -> str:
        return text


@dataclass(frozen=True, slots=True)
class CameraName:
    """A text that can be the name of a camera."""

    about: str

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "minLength": 1, "maxLength": MAX_NAME}

    def read(self, name: str, text: str) -> str:
        if not is_camera_name(text):
            raise UserError(f"{name}: expected {A_CAMERA_NAME}", error_id="name-not-allowed")
        return text


@dataclass(frozen=True, slots=True)
class OneOf:
    """A parameter that is one of these words."""

    about: str
    words: Sequence[str]

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.words)}

    def read(self, name: str, text: str) -> str:
        if text not in self.words:
            raise UserError(f"{name}: expected {' or '.join(self.words)}", error_id="request-value")
        return text


@dataclass(frozen=True, slots=True)
class Number:
    """A whole number from `least` to `most`. `usual`: its value if the client gives none."""

    about: str
    most: int
    least: int = 1
    usual: int | None = None

    def schema(self) -> dict[str, Any]:
        known = {"type": "integer", "minimum": self.least, "maximum": self.most}
        return known if self.usual is None else {**known, "default": self.usual}

    def read(self, name: str, text: str) -> int:
        is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(self.most))
        if not is_number or not self.least <= int(text) <= self.most:
            raise UserError(f"{name}: expected a number from {self.least} to {self.most}", error_id="request-value")
        return int(text)


@dataclass(frozen=True, slots=True)
class Moment:
    """A date and time; without a zone it is UTC."""

    about: str

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "format": "date-time"}

    def read(self, name: str, text: str) -> datetime:
        try:
            at = datetime.fromisoformat(text)
            at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
            at.timestamp()
        except (ValueError, OverflowError):
            raise UserError(f"{name}: expected a time such as 2026-11-22T21:00:00Z", error_id="request-value") from None
        return at


def query_of(request: Request, known: Mapping[str, Parameter]) -> dict[str, Any]:
    """The values of the parameters of a call, `known`; None for one that was not given and has no usual value."""
    for name in request.query_params:
        if name not in known:
            listed = did_you_mean(name, known) or f"; known: {', '.join(known) or 'none'}"
            raise UserError(f"unknown parameter {shown(name)[:_MOST_SHOWN]}{listed}", error_id="request-value")
    values = {name: getattr(parameter, "usual", None) for name, parameter in known.items()}
    return values | {name: known[name].read(name, nfc(text)) for name, text in request.query_params.items()}
