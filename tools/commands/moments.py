"""Times as people write them into options: `2h`, `3d`, `2026-11-22`, `2026-11-22T21:00`."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime

from pipeline.errors import UserError
from pipeline.foreign_text import shown

_SPAN = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*(s|min|m|h|d)")
_SECONDS = {"s": 1, "min": 60, "m": 60, "h": 3600, "d": 86_400}


def seconds_of(text: str, option: str) -> float:
    """A span of time. Raises UserError, which names the option."""
    span = _SPAN.fullmatch(text)
    if not span:
        raise UserError(f"{option} {shown(text)}: expected a time such as 30min, 1h or 3d", error_id="option-value")
    return float(span[1]) * _SECONDS[span[2]]


def moment(text: str, option: str) -> int:
    """A moment, UTC since 1970 in ns; a span is so long ago. Raises UserError, which names the option."""
    if _SPAN.fullmatch(text):
        return time.time_ns() - round(seconds_of(text, option) * 1e9)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise UserError(
            f"{option} {shown(text)}: expected 2h, 3d, 2026-11-22 or 2026-11-22T21:00", error_id="option-value"
        ) from None
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1e9)
