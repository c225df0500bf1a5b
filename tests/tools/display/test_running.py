"""A run as a person starts it: its name is its own."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from camgraph.pipeline import local
from camgraph.pipeline.errors import UserError
from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.monitoring.run_status import CameraStatus, RunStatus, Totals
from camgraph.pipeline.system.paths import runs_folder
from camgraph.pipeline.system.run_folder import RunFolder, running
from camgraph.tools.display import running as running_module
from camgraph.tools.display.running import run_plan
from camgraph.tools.display.summary import CameraSummary, summary_of

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
@pytest.mark.processes
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
    assert "own-name" not in running(runs_folder())


BLOCKED = """
version: 1
name: blocked
processes: one
cameras: {{a: {{frames: 3}}}}
stages:
  src: {{use: count_source}}
  out: {{use: collect, from: src, with: {{path: out, away: {away}}}}}
"""


@pytest.mark.parametrize(("away", "status", "told"), [("gone", 0, True), ("blocked.yaml", 3, False)])
def test_a_blocked_run_gets_no_reason_for_having_no_events(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    away: str,
    status: int,
    told: bool,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(local, "BLOCKED_LIMIT_S", 0.3)
    monkeypatch.setattr(running_module, "_why_no_events", lambda *_: "nobody came")
    path = tmp_path / "blocked.yaml"
    path.write_text(BLOCKED.format(away=away))
    assert run_plan(load_plan(path)) == status
    assert ("no events: nobody came" in capfd.readouterr().err) == told


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
def test_untaken_counts_camera_events_in_no_sink(tmp_path: Path, wanted: str, untaken: int) -> None:
    (tmp_path / "g.yaml").write_text(EVENTS.format(wanted=wanted))
    actions = {"a": {"camgraph.camera.lost": 2, "enter": 5, "camgraph.stage.restarted": 1}}
    status = RunStatus(graph="e", uptime_s=1.0, cameras={"a": CameraStatus()}, actions=actions)
    summary = summary_of(status, load_plan(tmp_path / "g.yaml"))
    assert (summary.untaken, summary.cameras["a"].events["enter"]) == (untaken, 5)


def test_cameras_that_went_have_their_share_of_the_summary(tmp_path: Path) -> None:
    """What they and the others have is together what the run has."""
    status = RunStatus(
        graph="g",
        uptime_s=3.0,
        cameras={"here": CameraStatus(frames=5, drops=1, events=1)},
        actions={"here": {"enter": 1}, "one": {"enter": 2, "lost": 1}, "two": {"lost": 1}},
        counts=[
            ("frames", "here", 5),
            ("frames", "one", 7),
            ("dropped.stale", "two", 2),
            ("skipped.rate", "one", 9),
            ("dropped.wire", "", 4),
        ],
        totals=Totals(12, 7, 5, 8),
    )
    (tmp_path / "g.yaml").write_text(GRAPH.format(processes="one"))
    plan = load_plan(tmp_path / "g.yaml")
    summary = summary_of(status, plan)
    assert summary.departed == CameraSummary(7, 2, {"enter": 2, "lost": 2})
    assert summary.totals.events == 5
    assert summary_of(replace(status, actions={}, counts=()), plan).departed is None


WRITES = """
version: 1
name: writes
{more}
processes: {processes}
cameras: {{a: {{frames: 3}}}}
stages:
  src: {{use: count_source}}
  emit: {{use: emit, from: src}}
  log: {{use: sink_jsonl, from: emit, with: {{path: events.jsonl}}}}
"""


@pytest.mark.parametrize("processes", ["one", "separate"])
@pytest.mark.parametrize(
    ("more", "mode"), [("", 0o640), ("readable_by: owner", 0o600), ("readable_by: everyone", 0o644)]
)
@pytest.mark.processes
def test_others_read_events_only_if_the_graph_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: str, more: str, mode: int
) -> None:
    """In a home where everybody's umask is 022."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "g.yaml").write_text(WRITES.format(more=more, processes=processes))
    before = os.umask(0o022)
    try:
        assert run_plan(load_plan(tmp_path / "g.yaml"), quiet=True) == 0
        assert os.umask(0o022) == 0o022, "it is as it was before"
    finally:
        os.umask(before)
    assert (tmp_path / "events.jsonl").stat().st_mode & 0o777 == mode
