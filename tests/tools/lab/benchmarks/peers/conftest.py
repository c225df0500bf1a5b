"""A clip of five pictures."""

from __future__ import annotations

from pathlib import Path

import pytest
from camgraph_test_stages.clips import write_clip

from camgraph.tools.scenes.simulator.pattern import picture


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    """Five pictures."""
    return write_clip(tmp_path / "five.mp4", (picture(number, 160, 120) for number in range(5)), fps=25)
