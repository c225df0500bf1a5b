"""Switches whose states outlive their run, files of them that cannot be used, and counters that are set to zero."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import structlog
from structlog.testing import capture_logs

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.pipeline.graph import parse_graph, plan_of
from camgraph.pipeline.monitoring.controls import SWITCHES_FILE, CounterResets, Switches
from camgraph.pipeline.plan import RunPlan

GRAPH = """
version: 1
cameras: {a: {frames: 1}}
stages:
  src: {use: count_source}
  people: {use: stands, from: src}
  actions:
    use: rules
    from: people
    with:
      switches: {armed: {default: false, keep: true}, quiet: true}
      rules: [{id: a, when: score > 0, while: [armed, quiet]}]
  log: {use: sink_jsonl, from: events, with: {path: events.jsonl}}
"""


@pytest.fixture
def plan(tmp_path: Path) -> RunPlan:
    return plan_of(parse_graph(GRAPH, "graph.yaml", base_folder=tmp_path, name="switched"))


def restored(folder: Path, plan: RunPlan) -> dict[str, bool]:
    switches = Switches(folder)
    switches.restore(plan, structlog.get_logger())
    return switches.now(plan)


def test_the_next_run_begins_with_kept_states_only(tmp_path: Path, plan: RunPlan) -> None:
    first = Switches(tmp_path / "switched")
    assert first.now(plan) == {"armed": False, "quiet": True}
    first.turn(plan, "quiet", on=False)
    first.keep(plan)
    assert not (tmp_path / "switched").exists()
    first.turn(plan, "armed", on=True)
    first.keep(plan)
    assert json.loads((tmp_path / "switched" / SWITCHES_FILE).read_text()) == {"armed": True}
    assert restored(tmp_path / "switched", plan) == {"armed": True, "quiet": True}
    assert restored(tmp_path / "other", plan) == {"armed": False, "quiet": True}


@pytest.mark.parametrize("content", [b'{"armed": 1, "quiet": false, "else": true}', b"\xff"])
def test_a_file_that_makes_no_sense_is_left_out(tmp_path: Path, plan: RunPlan, content: bytes) -> None:
    (tmp_path / SWITCHES_FILE).write_bytes(content)
    with capture_logs() as logs:
        assert restored(tmp_path, plan) == {"armed": False, "quiet": True}
    assert [line["event"] for line in logs] == ([] if b"quiet" in content else ["switches_not_restored"])


def test_a_state_that_cannot_be_kept_is_set_and_said(tmp_path: Path, plan: RunPlan) -> None:
    (tmp_path / "file").touch()
    switches = Switches(tmp_path / "file")
    switches.turn(plan, "armed", on=True)
    with pytest.raises(EnvironmentProblem, match=r"armed is on, but the next run would not know it: .*: "):
        switches.keep(plan)
    assert switches.now(plan)["armed"]


def test_without_a_folder_states_last_as_long_as_the_run(plan: RunPlan) -> None:
    switches = Switches()
    switches.restore(plan, structlog.get_logger())
    switches.turn(plan, "armed", on=True)
    switches.keep(plan)
    assert switches.now(plan)["armed"]


# --- counters

COUNTED = """
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
    text = COUNTED.replace("{CAMERAS}", f"{{{listed}}}").replace("{COUNTERS}", counters)
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
