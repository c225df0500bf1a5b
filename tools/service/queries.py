"""The parameters of a call, checked. Each function raises UserError, in words, for what cannot be meant."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from starlette.requests import Request

from pipeline.errors import UserError
from pipeline.foreign_text import shown
from pipeline.system.names import nfc
from pipeline.system.spelling import did_you_mean

_MOST_SHOWN = 60


def query_of(request: Request, known: Mapping[str, str]) -> dict[str, str]:
    """The parameters that were given. `known`: those of the call."""
    given = dict(request.query_params)
    for name in given:
        if name not in known:
            listed = did_you_mean(name, known) or f"; known: {', '.join(known) or 'none'}"
            raise UserError(f"unknown parameter {shown(name)[:_MOST_SHOWN]}{listed}")
    return {name: nfc(value) for name, value in given.items()}


def number(query: Mapping[str, str], name: str, *, usual: int, most: int) -> int:
    """A whole number from 1 to `most`."""
    text = query.get(name)
    if text is None:
        return usual
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(most))
    if not is_number or not 1 <= int(text) <= most:
        raise UserError(f"{name}: expected a number from 1 to {most}")
    return int(text)


def moment(query: Mapping[str, str], name: str) -> datetime | None:
    """A date and time; without a zone it is UTC."""
    text = query.get(name)
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
        at.timestamp()
    except (ValueError, OverflowError):
        raise UserError(f"{name}: expected a time such as 2026-11-22T21:00:00Z") from None
    return at
