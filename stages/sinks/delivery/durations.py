"""Times as people write them in settings of sinks: `90s`, `10min`, `12h`, `7d`."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from camgraph.pipeline.foreign_text import shown

_FORM = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(s|min|h|d)")
_SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_LONGEST_D = 3650


def seconds(text: str) -> float:
    """`90s`, `1.5min`, `12h` or `7d` in seconds. Raises ValueError."""
    found = _FORM.fullmatch(text)
    if not found:
        raise ValueError(f"expected a time such as 90s, 10min, 12h or 7d, got {shown(text, 40)!r}")
    value = float(found[1]) * _SECONDS[found[2]]
    if not 0 < value <= _LONGEST_D * 86_400:
        raise ValueError(f"expected a time over 0 and of at most {_LONGEST_D} days, got {shown(text, 40)!r}")
    return value


def _duration(value: Any) -> str:
    if not isinstance(value, str):
        hint = f", such as {value}s" if isinstance(value, int | float) and not isinstance(value, bool) else ""
        raise ValueError(f"expected a time with its unit{hint or ' such as 90s or 10min'}, got {value!r:.40}")
    seconds(value)
    return value


Duration = Annotated[
    str, BeforeValidator(_duration), WithJsonSchema({"type": "string", "pattern": f"^{_FORM.pattern}$"})
]
"""A text that `seconds` takes."""
