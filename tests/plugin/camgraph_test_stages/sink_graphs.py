"""A graph with rules, and a sink behind them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from camgraph.pipeline.graph import load_plan

RULES = """
version: 1
time_zone: Europe/Berlin
zones: {hall: [[0, 0], [1, 0], [1, 1]]}
counters: {in_hall: {zone: hall}}
rules:
  - {use: fall}
  - {id: low, action: lying_down, when: "lean > 60deg", for: 1s}
"""


def planned_settings(
    folder: Path, use: str, more: str, *, rules: str = RULES, source: str = "actions", beside: str = "", of: str = "out"
) -> Any:
    """The settings that the stage `of` has when it is planned: the sink `out`. `beside`: another stage, as YAML."""
    (folder / "rules.yaml").write_text(rules)
    graph = folder / "ward.yaml"
    graph.write_text(f"""
version: 1
name: ward
cameras: {{room-3: {{frames: 3}}}}
stages:
  numbers: {{use: count_source, each: cameras}}
  tracks:  {{use: stands, from: numbers}}
  actions: {{use: rules, from: tracks, with: {{file: rules.yaml}}}}
  others:  {{use: emit, from: numbers}}
  rest:    {{use: sink_jsonl, from: others, with: {{path: rest.jsonl}}}}
  out:     {{use: {use}, from: {source}, with: {{{more}}}}}
  {beside}
""")
    stages = [stage for process in load_plan(graph).processes for stage in process.stages]
    return next(stage.settings for stage in stages if stage.name == of)
