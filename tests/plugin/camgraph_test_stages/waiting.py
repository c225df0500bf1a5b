"""Waiting in tests: for a condition, never for a time; and what another program has written until now."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

WITHIN_S = 60.0
"""Far more than any condition needs on a quiet machine, for the machine may be five times slower."""


def until(
    condition: Callable[[], T],
    within_s: float = WITHIN_S,
    why: Callable[[], object] | None = None,
    every_s: float = 0.001,
) -> T:
    """Return what the condition returns, as soon as that is true. `why` tells how things stand if it never is.

    Set `every_s` higher if the condition asks another process or reads much. Raises AssertionError after `within_s`.
    """
    end = time.monotonic() + within_s
    while not (found := condition()):
        assert time.monotonic() < end, f"not so within {within_s:g} s{f': {why()}' if why else ''}"
        time.sleep(every_s)
    return found


def json_lines(file: Path | bytes) -> list[dict[str, Any]]:
    """The lines of a file, or of its content, that a program may still be writing; none if there is no such file."""
    data = file if isinstance(file, bytes) else file.read_bytes() if file.exists() else b""
    # The last line may have come in part: a reader sees a write before it is whole.
    return [json.loads(line) for line in data.splitlines(keepends=True) if line.endswith(b"\n")]
