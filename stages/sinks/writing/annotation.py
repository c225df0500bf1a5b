"""Draws onto a copy of a frame: people, their skeletons, ids and ways, zones, and the rules that fire."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import cv2
import numpy as np
from numpy.typing import NDArray

from camgraph.pipeline.messages import Stamp
from camgraph.pipeline.system.names import ascii_form
from camgraph.stages.messages import Frame, Tracks
from camgraph.stages.rules.firing import Firing
from camgraph.stages.rules.onlooker import Seen
from camgraph.stages.vision.drawing import (
    Point,
    Trail,
    draw_caption,
    draw_lines,
    draw_people,
    draw_reasons,
    draw_trails,
    draw_zones,
    free_places,
)

Size = tuple[int, int]
USUAL_CONFIDENCE = 0.3
"""The score of joints to draw if no rules are known, as in rules that give none."""
YEAR_2000_NS = 946_684_800_000_000_000


def annotated(
    frame: Frame,
    tracks: Tracks,
    size: Size,
    min_confidence: float,
    seen: Seen | None = None,
    *,
    trails: Sequence[Trail] = (),
) -> NDArray[np.uint8]:
    """A new picture (H, W, 3) BGR of `size` (width, height) with everything drawn on it; `seen`: as the rules see
    it; `trails`: in pixels of the frame.
    """
    picture = bgr(frame, size)
    scale = np.array([size[0] / frame.width, size[1] / frame.height], np.float32)
    seen = seen or Seen()
    alarms: dict[int, list[str]] = {}
    for firing in seen.firing:
        for track_id in firing.ids:
            alarms.setdefault(track_id, []).append(firing.action)
    busy = {name for firing in seen.firing for name in firing.shapes}
    places = free_places(picture, has_caption=True, reasons=len(seen.firing))
    zones = {name: _scaled(corners, scale) for name, corners in seen.zones.items()}
    lines = {name: (a, b) for name, ends in seen.lines.items() for a, b in [_scaled(ends, scale)]}
    draw_zones(picture, zones, busy, places)
    draw_lines(picture, lines, busy, places)
    draw_trails(picture, [trail._replace(points=trail.points * scale) for trail in trails])
    draw_people(
        picture,
        tracks.boxes * np.tile(scale, 2),
        tracks.keypoints * np.append(scale, np.float32(1)),
        tracks.ids.tolist(),
        [
            " ".join([f"#{track_id} {score:.2f}", *alarms.get(track_id, ())])
            for track_id, score in zip(tracks.ids.tolist(), tracks.scores, strict=True)
        ],
        skeleton=tracks.skeleton,
        min_confidence=min_confidence,
        alarmed=alarms.keys(),
        places=places,
    )
    draw_caption(picture, ascii_form(frame.stamp.camera), clock_text(frame.stamp))
    draw_reasons(picture, [_reason_of(firing) for firing in seen.firing])
    return picture


def _scaled(points: Iterable[Point], scale: NDArray[np.float32]) -> list[Point]:
    return [(x * float(scale[0]), y * float(scale[1])) for x, y in points]


def _reason_of(firing: Firing) -> str:
    """`lying #3: Somebody lies on the ground`: the rule, the person, and what the rule says it is about.

    A rule that says nothing shows its condition with the measured values: `leans #3: lean > 60deg (71 deg)`.
    """
    who = "".join(f" #{track_id}" for track_id in firing.ids)
    return f"{firing.action}{who}: {firing.about or firing.why}"


def clock_text(stamp: Stamp) -> str:
    """UTC if the wall clock means something, else (a file without a start time) the media time as M:SS.d."""
    if stamp.wall_ns >= YEAR_2000_NS:
        return datetime.fromtimestamp(stamp.wall_ns // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    tenths = stamp.time_ns // 100_000_000
    minutes, rest = divmod(tenths, 600)
    hours, minutes = divmod(minutes, 60)
    clock = f"{minutes:02d}:{rest // 10:02d}.{rest % 10}"
    return f"{hours}:{clock}" if hours else clock


def bgr(frame: Frame, size: Size) -> NDArray[np.uint8]:
    """A writable picture of `size`; INTER_AREA if it gets smaller."""
    if (frame.width, frame.height) == size:
        return frame.bgr(copy=True)
    return np.asarray(cv2.resize(frame.bgr(), size, interpolation=cv2.INTER_AREA), np.uint8)
