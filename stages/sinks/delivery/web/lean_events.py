"""Smaller events for receivers that take no large ones. Each part that goes is named in `data.left_out`.

    "people": [{"track_id": 7, "bbox": [...], "score": 0.9, "keypoints": []}], "left_out": ["keypoints"]

Keypoints are nine tenths of an event with many people, and a receiver of alerts hardly ever wants them. If they are not
enough, `people` follows, and then `evidence`. What is left is sent, however large it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from camgraph.stages.sinks.delivery.web.cloudevents_http import as_json

Body = Mapping[str, Any]


def _without_keypoints(data: Body) -> dict[str, Any] | None:
    people = data.get("people")
    if not isinstance(people, list) or not any(isinstance(one, dict) and one.get("keypoints") for one in people):
        return None
    return {**data, "people": [{**one, "keypoints": []} if isinstance(one, dict) else one for one in people]}


def _without_people(data: Body) -> dict[str, Any] | None:
    return {**data, "people": []} if data.get("people") else None


def _without_evidence(data: Body) -> dict[str, Any] | None:
    return {key: value for key, value in data.items() if key != "evidence"} if "evidence" in data else None


_PARTS: Mapping[str, Callable[[Body], dict[str, Any] | None]] = {
    "keypoints": _without_keypoints,
    "people": _without_people,
    "evidence": _without_evidence,
}


def lean(body: Body, line: bytes, most_bytes: int) -> tuple[Body, bytes]:
    """The event in as few bytes, if these parts suffice; as it is if it is small enough. `line`: `body` as JSON."""
    data = body.get("data")
    if len(line) <= most_bytes or not isinstance(data, dict):
        return body, line
    left_out: list[str] = []
    for name, leave_out in _PARTS.items():
        smaller = leave_out(data)
        if smaller is None:
            continue
        left_out.append(name)
        data = {**smaller, "left_out": list(left_out)}
        line = as_json({**body, "data": data})
        if len(line) <= most_bytes:
            break
    return {**body, "data": data}, line
