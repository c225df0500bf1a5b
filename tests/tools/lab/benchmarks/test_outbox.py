"""The benchmark of the outbox runs, and its start is that of another process."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from camgraph.tools.lab.benchmarks.outbox import main


@pytest.mark.processes
def test_rates_and_a_start(tmp_path: Path) -> None:
    chosen = ["--seconds", "0.1", "--backlog", "300", "--in", str(tmp_path)]
    result = CliRunner().invoke(main, chosen, catch_exceptions=False)
    rows = [line.split("|")[1].strip() for line in result.output.splitlines() if line.startswith("|")]
    assert rows[:5] == ["`sync`", "---", "full", "normal", "none"]
    assert "a backlog of 300 events" in result.output
    assert list(tmp_path.iterdir()) == []
