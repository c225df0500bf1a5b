"""How long to wait before a camera is tried again."""

from __future__ import annotations

FIRST_BACKOFF_S = 0.5
LAST_BACKOFF_S = 10.0


def next_backoff_s(backoff_s: float) -> float:
    """Twice as long as before, up to a limit."""
    return min(backoff_s * 2, LAST_BACKOFF_S)
