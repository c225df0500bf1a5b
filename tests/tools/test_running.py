"""A run as a person starts it: its name is its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import UserError
from pipeline.graph import load_plan
from pipeline.run_folder import RunFolder, running
from tools.running import _summary, run_plan

GRAPH = """
version: 1
name: own-name
processes: {processes}
cameras: {{a: {{frames: 3}}}}
stages:
  src: {{use: count_source}}
  out: {{use: collect, from: src, with: {{path: out}}}}
"""


@pytest.mark.parametrize("processes", ["one", "separate"])
def test_two_runs_of_one_name_would_share_an_outbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "g.yaml").write_text(GRAPH.format(processes=processes))
    plan = load_plan(tmp_path / "g.yaml")
    other = RunFolder("own-name")
    try:
        with pytest.raises(UserError, match="a run called own-name is going on"):
            run_plan(plan, quiet=True)
        assert not (tmp_path / "out").exists()
    finally:
        other.close()
    assert run_plan(plan, quiet=True) == 0
    assert len((tmp_path / "out").read_text().splitlines()) == 3
    assert "own-name" not in running()


EVENTS = """
version: 1
name: e
cameras: {{a: {{frames: 3, live: true}}}}
stages:
  src: {{use: count_source}}
  emit: {{use: emit, from: src}}
  log: {{use: sink_jsonl, from: {wanted}, with: {{path: events.jsonl}}}}
"""


@pytest.mark.parametrize(("wanted", "untaken"), [("emit", 2), ("events", 0)])
def test_a_loss_that_only_the_log_has_is_not_passed_off_as_written(tmp_path: Path, wanted: str, untaken: int) -> None:
    (tmp_path / "g.yaml").write_text(EVENTS.format(wanted=wanted))
    actions = {"a": {"camgraph.camera.lost": 2, "enter": 5, "camgraph.stage.restarted": 1}}
    status = {"graph": "e", "uptime_s": 1.0, "cameras": {"a": {}}, "files": [], "actions": actions}
    summary = _summary(status, load_plan(tmp_path / "g.yaml"))
    assert (summary["untaken"], summary["cameras"]["a"]["events"]["enter"]) == (untaken, 5)
