"""A run as a person starts it: its name is its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import UserError
from pipeline.graph import load_plan
from pipeline.run_folder import RunFolder, running
from tools.running import run_plan

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
