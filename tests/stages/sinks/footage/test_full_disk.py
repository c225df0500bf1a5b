"""A full disk stops pictures and clips, and never events: on a real small disk."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.testing import run_graph
from camgraph.stages.sinks.footage.incident_record import records_in
from camgraph.tools.lab.blinking import write_clip
from camgraph.tools.lab.light_model import SIDE, write_model

GRAPH = """
version: 1
name: full
processes: compact
cameras:
  cam: {{url: cam.mp4}}
stages:
  capture: {{use: capture}}
  prepare: {{use: preprocess, from: capture, with: {{size: [{side}, {side}]}}}}
  infer: {{use: infer, from: prepare, with: {{model: light.onnx}}}}
  people: {{use: decode_yolo_pose, from: infer}}
  tracks: {{use: track, from: people, with: {{confirm_s: 0}}}}
  actions: {{use: rules, from: tracks, with: {{rules: [{{id: seen, when: score > 0.3, hold: 0.2s}}]}}}}
  log: {{use: sink_jsonl, from: actions, with: {{path: events.jsonl}}}}
  footage: {{use: sink_footage, from: actions, with: {{path: "{place}", before_s: 1, after_s: 1}}}}
"""


@pytest.fixture
def graph(tmp_path: Path, small_disk: Path) -> Path:
    write_clip(tmp_path / "cam.mp4")
    write_model(tmp_path / "light.onnx", bright=110.0)
    path = tmp_path / "graph.yaml"
    path.write_text(GRAPH.format(side=SIDE, place=small_disk))
    return path


def events_of(graph: Path) -> tuple[Counter[str], list[dict[str, Any]]]:
    """What a run tells: the events by their types, and those about pictures and clips."""
    outcome, _ = run_graph(load_plan(graph))
    assert outcome.problems == []
    events = [json.loads(line) for line in (graph.parent / "events.jsonl").read_bytes().splitlines()]
    (graph.parent / "events.jsonl").unlink()
    return Counter(event["type"] for event in events), [one for one in events if ".footage." in one["type"]]


def assert_all_missing(types: Counter[str], told: list[dict[str, Any]]) -> None:
    assert types["camgraph.incident.start"] == types["camgraph.incident.end"] == 1
    assert sorted((one["type"], one["data"]["kind"]) for one in told) == [
        ("camgraph.footage.missing", "clip"),
        ("camgraph.footage.missing", "snapshot"),
    ]
    assert all("No space left" in one["data"]["why"] for one in told)


def test_events_go_on_without_room_for_pictures(graph: Path, small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    with pytest.raises(OSError, match="No space"):
        ballast.write_bytes(bytes(1 << 20))
    types, told = events_of(graph)
    assert list(small_disk.rglob("*")) == [ballast], "nothing half written stays"
    assert_all_missing(types, told)
    with ballast.open("r+b") as file:
        file.truncate(ballast.stat().st_size - 12 * 1024)  # for the record, and for neither of the others
    assert_all_missing(*events_of(graph))
    assert list(small_disk.rglob("*.part")) == []
    ballast.unlink()
    (record,) = records_in(small_disk)
    record.path.unlink()
    types, told = events_of(graph)
    (record,) = records_in(small_disk)
    assert record.files["snapshot"].state == "ready", "the disk has no room for a clip"
    assert record.file("snapshot").stat().st_size > 1000
    assert ("camgraph.footage.ready", "snapshot") in {(one["type"], one["data"]["kind"]) for one in told}
