"""What a run says of itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.graph import load_plan
from pipeline.status import Meter
from tools.run_status import Status
from tools.status_view import event_text

GRAPH = """
version: 1
name: quiet
cameras: {a: {frames: 1}}
stages:
  src: {use: count_source}
  out: {use: collect, from: src, with: {path: out}}
"""


@pytest.mark.parametrize(
    "odd",
    [
        {"data": {"people": 3}},
        {"data": {"people": [1, None, {"track_id": "x"}, {"track_id": 4}], "phase": {}, "camera": None}},
        {"time": 5, "type": 7, "data": {"action": 7}},
        {"time": None, "data": []},
    ],
)
def test_an_event_of_a_strange_form_is_shown_as_far_as_it_can_be(tmp_path: Path, odd: dict[str, Any]) -> None:
    (tmp_path / "g.yaml").write_text(GRAPH)
    meter = Meter(load_plan(tmp_path / "g.yaml"))
    event = meter.note_event(json.dumps({"id": "1", "subject": "a", **odd}).encode())
    status = json.loads(json.dumps(meter.status(processes=[], events=[event])))
    for shown in Status.from_json(status).events:
        assert isinstance(event_text(shown), str)
