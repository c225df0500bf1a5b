"""What all tests of the pipeline share: runs leave nothing behind for each other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events that a run could not deliver are kept for the next one of its name: not for that of another test."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def logs() -> Iterator[list[Any]]:
    """The lines that this process logs."""
    with capture_logs() as lines:
        yield lines
