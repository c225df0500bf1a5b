"""Switches whose states outlive their run, and files of them that cannot be used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import structlog
from structlog.testing import capture_logs

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.pipeline.graph import parse_graph, plan_of
from camgraph.pipeline.monitoring.switches import SWITCHES_FILE, Switches
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


@pytest.mark.parametrize("content", [b"", b"[1]", b"{", b'{"armed": 1, "quiet": false, "else": true}', b"\xff"])
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
