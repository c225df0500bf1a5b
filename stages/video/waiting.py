"""Waiting in a source: in pieces, with signs of life, and not beyond a stop."""

from __future__ import annotations

import time
from collections.abc import Callable

from camgraph.pipeline.stage import Stop

SIGN_S = 0.5


def wait(seconds: float, stop: Stop, alive: Callable[[], None]) -> bool:
    """Wait, not for longer than that; `alive` is called at least every `SIGN_S`. True when the stop came first."""
    until = time.monotonic() + seconds
    while (left_s := until - time.monotonic()) > 0:
        alive()
        if stop.wait(min(left_s, SIGN_S)):
            return True
    return False
