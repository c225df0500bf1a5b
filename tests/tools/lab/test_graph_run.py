"""A graph that a measurement has written down: its status, and why it failed."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from camgraph.tools.lab.graph_run import run_text

COUNTS = """
version: 1
name: counts
processes: one
cameras: {c0: {frames: 3, bytes: 16}}
stages:
  src: {use: count_source}
  end: {use: sink_null, from: src}
"""


def test_last_status_is_returned() -> None:
    assert run_text(COUNTS, limit_s=60)["totals"]["frames"] == 3


def test_a_run_that_fails_ends_the_command(tmp_path: Path) -> None:
    (tmp_path / "broken.mp4").write_bytes(b"no film")
    broken = COUNTS.replace("{frames: 3, bytes: 16}", "{url: broken.mp4}").replace("count_source", "capture")
    with pytest.raises(click.ClickException, match=r"c0"):
        run_text(broken, limit_s=60, folder=tmp_path)
