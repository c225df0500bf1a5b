"""Commands that set counters to zero: which counters and cameras there are, and the numbers that stages obey once."""

from __future__ import annotations

from pathlib import Path

import pytest

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.graph import parse_graph, plan_of
from camgraph.pipeline.monitoring.counter_resets import CounterResets
from camgraph.pipeline.plan import RunPlan

GRAPH = """
version: 1
cameras: {CAMERAS}
stages:
  src: {use: count_source}
  people: {use: stands, from: src}
  actions:
    use: rules
    from: people
    with:
      lines: {gate: {from: [0.5, 1], to: [0.5, 0]}}
      counters: {COUNTERS}
      rules: [{id: a, when: score > 0}]
  log: {use: sink_jsonl, from: events, with: {path: events.jsonl}}
"""
COUNTERS = "{visitors: {line: gate}, leavers: {line: gate}}"


def plan_with(folder: Path, *cameras: str, counters: str = COUNTERS) -> RunPlan:
    listed = ", ".join(f"{camera}: {{frames: 1}}" for camera in cameras)
    text = GRAPH.replace("{CAMERAS}", f"{{{listed}}}").replace("{COUNTERS}", counters)
    return plan_of(parse_graph(text, "graph.yaml", base_folder=folder, name="counted"))


def test_each_command_has_a_number_of_its_own(tmp_path: Path) -> None:
    plan, resets = plan_with(tmp_path, "front", "back"), CounterResets()
    resets.reset(plan, "visitors", "front")
    assert resets.numbers == {"visitors": {"front": 1}}
    resets.reset(plan, "visitors", None)
    assert resets.numbers == {"visitors": {"front": 2, "back": 2}}
    resets.reset(plan, "leavers", "back")
    resets.reset(plan, "visitors", "front")
    assert resets.numbers == {"visitors": {"front": 4, "back": 2}, "leavers": {"back": 3}}


def test_cameras_that_have_left_are_forgotten(tmp_path: Path) -> None:
    resets = CounterResets()
    resets.reset(plan_with(tmp_path, "front", "back"), "visitors", None)
    resets.reset(plan_with(tmp_path, "front"), "visitors", "front")
    assert resets.numbers == {"visitors": {"front": 2}}


@pytest.mark.parametrize(
    ("counters", "name", "camera", "why"),
    [
        (COUNTERS, "visitor", None, "the run has no counter 'visitor'; did you mean `visitors`?"),
        (COUNTERS, "x", None, "the run has no counter 'x'; there are: leavers, visitors"),
        (COUNTERS, "visitors", "frnt", "the run has no camera 'frnt'; did you mean `front`?"),
        (COUNTERS, "visitors", "x", "the run has no camera 'x'; there are: front, back"),
        ("{}", "visitors", None, "the run has no counter 'visitors': its rules have no `counters`"),
    ],
)
def test_unknown_names_change_nothing(tmp_path: Path, counters: str, name: str, camera: str | None, why: str) -> None:
    resets = CounterResets()
    with pytest.raises(UserError) as error:
        resets.reset(plan_with(tmp_path, "front", "back", counters=counters), name, camera)
    assert str(error.value) == why
    assert resets.numbers == {}
