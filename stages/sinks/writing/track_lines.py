"""Tracks as text: MOTChallenge rows and JSON lines. Pure functions; numbers are rounded as in events.

MOT     frame (seq + 1), id, left, top, width, height, score, -1, -1, -1      a row for each person
JSON    {"camera": ..., "epoch": ..., "seq": ..., ..., "people": [...]}       a line for each frame
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from camgraph.pipeline.foreign_text import printable_json
from camgraph.stages.events import utc
from camgraph.stages.messages import Tracks

F64 = NDArray[np.float64]
Place = tuple[int, int]
"""Epoch and number of a frame, in its camera's order."""


class Rounded(NamedTuple):
    """The numbers of N people: `boxes` (N, 4) xyxy and `keypoints` (N, K, 3) to 0.01 pixels, scores to 0.001.

    A joint that is no number is 0, 0, 0.
    """

    boxes: F64
    scores: F64
    keypoints: F64


def rounded(tracks: Tracks) -> Rounded:
    """The numbers as events have them (`stages.events.person`), digit for digit."""
    joints = np.where(np.isfinite(tracks.keypoints).all(axis=2, keepdims=True), tracks.keypoints, np.float32(0))
    joints = joints.astype(np.float64)
    joints[:, :, :2] = _to(joints[:, :, :2], 2)
    joints[:, :, 2] = _to(joints[:, :, 2], 3)
    return Rounded(_to(tracks.boxes, 2), _to(tracks.scores, 3), joints)


def mot_lines(tracks: Tracks) -> bytes:
    """The rows of a frame; none if nobody is there."""
    boxes, scores, _ = rounded(tracks)
    sizes = _to(boxes[:, 2:] - boxes[:, :2], 2)
    frame = tracks.stamp.seq + 1
    return b"".join(
        b"%d,%d,%.2f,%.2f,%.2f,%.2f,%.3f,-1,-1,-1\n" % (frame, track_id, left, top, width, height, score)
        for track_id, (left, top), (width, height), score in zip(
            tracks.ids.tolist(), boxes[:, :2].tolist(), sizes.tolist(), scores.tolist(), strict=True
        )
    )


def json_line(tracks: Tracks) -> bytes:
    """The line of a frame, with nobody in it too. Fields that are unknown are left out."""
    stamp = tracks.stamp
    frame = {
        "camera": stamp.camera,
        "epoch": stamp.epoch,
        "seq": stamp.seq,
        "pts": stamp.pts,
        "time_base": list(stamp.time_base),
        "time_s": round(stamp.time_ns / 1e9, 6),
        "time": utc(stamp.wall_ns) if stamp.clock else None,
        "clock": stamp.clock or None,
        "width": tracks.frame_size[0],
        "height": tracks.frame_size[1],
        "keypoints_format": tracks.skeleton,
        "people": _people(tracks),
    }
    text = json.dumps(_known(frame), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return printable_json(text).encode() + b"\n"


def _people(tracks: Tracks) -> list[dict[str, Any]]:
    boxes, scores, keypoints = rounded(tracks)
    rows = zip(
        tracks.ids.tolist(),
        tracks.continues.tolist(),
        tracks.classes.tolist(),
        boxes.tolist(),
        scores.tolist(),
        [joints.reshape(-1).tolist() for joints in keypoints],
        strict=True,
    )
    return [
        _known(
            {
                "track_id": track_id,
                "continues": continues or None,
                "class": kind or None,
                "bbox": box,
                "score": score,
                "keypoints": joints,
            }
        )
        for track_id, continues, kind, box, score, joints in rows
    ]


def _known(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _to(values: NDArray[np.floating[Any]], digits: int) -> F64:
    # + 0.0: no "-0.0". Of a float32 the product with 1000 is exact, so this rounds as Python's `round` does.
    return np.asarray(np.round(values.astype(np.float64), digits) + 0.0, np.float64)
