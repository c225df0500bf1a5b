"""Small findings of one machine that are kept in a file: the question and the answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from camgraph.pipeline.system.disk import write_whole

Key = Mapping[str, Any]
"""The question as JSON values: another key, another finding."""


def recall(file: Path, key: Key) -> Mapping[str, Any] | None:
    """The finding for just this key; None if there is none, or if the file cannot be understood."""
    try:
        kept = json.loads(file.read_text())
        found = kept["found"] if kept["key"] == json.loads(json.dumps(key)) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, dict) else None


def keep(file: Path, key: Key, found: Mapping[str, Any]) -> None:
    """Keep a finding in the place of the last one. A disk that does not take it costs only another measurement."""
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, json.dumps({"key": key, "found": found}, indent=1).encode())
