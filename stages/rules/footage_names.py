"""The files of an incident: their names follow from the incident alone, so that its event can hold them at once.

footage/front/2026-11-23/21-03-11_fall_1f00ba7e.jpg      the picture
                         21-03-11_fall_1f00ba7e.mp4      the clip
                         21-03-11_fall_1f00ba7e.json     its events, and the state of the two
"""

from __future__ import annotations

import re
import zlib
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import NamedTuple

from camgraph.pipeline.system.names import ascii_form

_SAFE = re.compile(r"[^A-Za-z0-9_-]")
_HEX = re.compile("[0-9a-f]{8,64}")
INCIDENT_DIGITS = 8
_MOST_ACTION = 40


class FootageNames(NamedTuple):
    """Paths relative to the folder of the graph file, with `/` between their parts."""

    snapshot: str
    clip: str
    record: str


def names_of(folder: str, camera: str, action: str, incident: str, start_ns: int) -> FootageNames:
    """The files of an incident that began at `start_ns` (UTC since 1970). `folder`: as it stands in the graph.

    Two cameras, and two actions of one moment, never share a name: a camera stands there in ASCII, and an action as far
    as it is ASCII. Raises ValueError for an incident whose name is no hash.
    """
    if not _HEX.fullmatch(incident):
        raise ValueError(f"expected the hash of an incident, got {incident!r:.80}")
    at = datetime.fromtimestamp(start_ns // 1_000_000_000, UTC)
    stem = f"{at:%H-%M-%S}_{_safe(action)}_{incident[:INCIDENT_DIGITS]}"
    path = PurePosixPath(folder) / ascii_form(camera) / f"{at:%Y-%m-%d}" / stem
    return FootageNames(f"{path}.jpg", f"{path}.mp4", f"{path}.json")


def _safe(text: str) -> str:
    safe = _SAFE.sub("_", text)[:_MOST_ACTION]
    return safe if safe == text else f"{safe}-{zlib.crc32(text.encode()):08x}"
