"""docs/home_assistant.md: its stages are accepted, and it names the entities that Home Assistant makes of ours."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from camgraph.pipeline.graph import load_graph, plan_of
from camgraph.stages.sinks.delivery.mqtt.home_assistant import Discovery
from camgraph.stages.sinks.delivery.mqtt.mqtt_topics import Topics

PAGE = (Path(__file__).parents[1] / "docs" / "home_assistant.md").read_text("utf-8")
GRAPH = """
version: 1
name: home
cameras:
  hall: {frames: 3, live: true}
stages:
  src: {use: count_source}
  tracks: {use: stands, from: src}
  actions: {use: rules, from: tracks, with: {rules: [{id: fall, when: age > 1s}]}}
"""


def test_its_stages_are_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = [block for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if block.startswith("  ")]
    assert len(blocks) == 2
    for name in ("mqtt", "HOME_TOKEN"):
        monkeypatch.setenv(name, "a-secret-of-nobody")
    (tmp_path / "graph.yaml").write_text(GRAPH + "".join(blocks).replace("0.0.0.0:", "127.0.0.1:"))
    plan = plan_of(load_graph(tmp_path / "graph.yaml", strict=True))
    assert {"footage", "house", "page"} <= {stage.name for process in plan.processes for stage in process.stages}


def test_the_entities_are_those_of_discovery() -> None:
    """Home Assistant makes the id of an entity from the names of device and entity."""
    topics = Topics("camgraph/home")
    messages = Discovery("homeassistant", "home", topics, snapshots=True).messages("hall", ["fall"])
    made = set()
    for topic, body in messages.items():
        entity = json.loads(body)
        name = f"{entity['device']['name']} {entity['name']}".lower().replace(" ", "_")
        made.add(f"{topic.split('/')[1]}.{name}")
    told = set(re.findall(r"(?<!/)\b((?:binary_sensor|image)\.(?!snapshot)\w+)", PAGE))
    assert told == made
