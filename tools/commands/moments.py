"""Times as people write them into options, `2h`, `3d`, `2026-11-22`, `2026-11-22T21:00`, and as they read them.

Without an offset from UTC they are of the caller's time zone, else of this machine's (`TZ`, `/etc/localtime`).
"""

from __future__ import annotations

import re
import time
from datetime import datetime, timedelta, tzinfo

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.foreign_text import shown

_SPAN = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*(s|min|m|h|d)")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_MOST_NS = (1 << 63) - 1
"""Of an integer in SQLite: the years 1677 to 2262."""
_SECONDS = {"s": 1, "min": 60, "m": 60, "h": 3600, "d": 86_400}


def seconds_of(text: str, option: str) -> float:
    """A span of time. Raises UserError, which names the option."""
    span = _SPAN.fullmatch(text)
    if not span:
        raise UserError(f"{option} {shown(text)}: expected a time such as 30min, 1h or 3d", error_id="option-value")
    return float(span[1]) * _SECONDS[span[2]]


def moment(text: str, option: str, zone: tzinfo | None = None, *, whole_day: bool = False) -> int:
    """A moment, in ns since 1970 UTC; a span is so long ago. One beyond 64 bits becomes the first or last that fits.

    `whole_day`: a date means the end of that day, and not its beginning. Raises UserError, which names the option.
    """
    if _SPAN.fullmatch(text):
        return _bounded(time.time_ns() - round(seconds_of(text, option) * 1e9))
    try:
        at = datetime.fromisoformat(text)
        if whole_day and _DATE.fullmatch(text):
            at += timedelta(days=1)
        return _bounded(round((at.replace(tzinfo=zone) if zone and not at.tzinfo else at).timestamp() * 1e9))
    except (ValueError, OverflowError, OSError):  # the last two: years for which there is no local time
        raise UserError(
            f"{option} {shown(text)}: expected 2h, 3d, 2026-11-22 or 2026-11-22T21:00", error_id="option-value"
        ) from None


def _bounded(at_ns: int) -> int:
    return min(max(at_ns, -_MOST_NS), _MOST_NS)


def local_time(text: str, zone: tzinfo | None = None) -> str:
    """A time of an event, as clocks of this zone show it: 2026-11-22 22:03:11+01:00. What is none, as it is.

    The times of a recording without a date begin with 1970-01-01, and have no offset here.
    """
    try:
        at = datetime.fromisoformat(text)
        return f"{at:%Y-%m-%d %H:%M:%S}" if at.year == 1970 else at.astimezone(zone).isoformat(" ", "seconds")
    except (ValueError, OverflowError, OSError):
        return shown(text)
