"""What all tests share: where the data lies that is not in the repository."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes says nothing on a loaded machine.
settings.register_profile("camgraph", deadline=None)
settings.load_profile("camgraph")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def test_data() -> Path:
    """The folder of real models, clips and pictures; the test is skipped where it is absent."""
    folder = Path(os.environ.get("CAMGRAPH_TEST_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"no test data: {folder} is no folder (set CAMGRAPH_TEST_DATA)")
    return folder
