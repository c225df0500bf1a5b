"""What all tests share: where the data lies that is not in the repository."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from hypothesis import settings

# How long an example takes says nothing on a loaded machine.
settings.register_profile("camgraph", deadline=None)
settings.load_profile("camgraph")

# In the background of a script, or under nohup, these are ignored, and what is started here would ignore them as well.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, handler)

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session", autouse=True)
def own_runs() -> Iterator[None]:
    """Whoever works on this machine has runs of their own: `camgraph stop` without a name must not meet a test's."""
    short = "/tmp"
    with tempfile.TemporaryDirectory(prefix="cgr", dir=short) as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", folder)
        yield


@pytest.fixture(autouse=True)
def usual_logs() -> Iterator[None]:
    """Commands that run in the tests' own process set up logs, of which tests that come later would see a part only."""
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def test_data() -> Path:
    """The folder of real models, clips and pictures; the test is skipped where it is absent."""
    folder = Path(os.environ.get("CAMGRAPH_TEST_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"no test data: {folder} is no folder (set CAMGRAPH_TEST_DATA)")
    return folder
