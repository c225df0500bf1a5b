"""Waiting in tests: for a condition, never for a time; and what another program has written until now."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from camgraph.pipeline.testing import WITHIN_S, until

__all__ = ["WITHIN_S", "json_lines", "until"]


def json_lines(file: Path | bytes) -> list[dict[str, Any]]:
    """The lines of a file, or of its content, that a program may still be writing; none if there is no such file."""
    data = file if isinstance(file, bytes) else file.read_bytes() if file.exists() else b""
    # The last line may have come in part: a reader sees a write before it is whole.
    return [json.loads(line) for line in data.splitlines(keepends=True) if line.endswith(b"\n")]
