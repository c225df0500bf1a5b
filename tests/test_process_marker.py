"""The marker of tests that start processes is set by their imports, and a start without it is noticed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from camgraph_test_stages import process_starts

from camgraph.stages.video.examiner import Examiner


def test_a_file_that_imports_a_starter_is_marked(request: pytest.FixtureRequest) -> None:
    assert request.node.get_closest_marker(process_starts.MARKER)


@pytest.mark.in_process
def test_a_test_that_says_that_it_starts_none_is_not_marked(request: pytest.FixtureRequest) -> None:
    assert not request.node.get_closest_marker(process_starts.MARKER)


def test_a_test_without_the_marker_may_start_no_process() -> None:
    guard = process_starts.Guard()
    guard.pytest_runtest_setup()
    call = guard.pytest_runtest_call()
    next(call)
    with pytest.raises(StopIteration):
        next(call)
    guard.pytest_runtest_setup()
    call = guard.pytest_runtest_call()
    next(call)
    subprocess.run(["true"], check=True)
    with pytest.raises(pytest.fail.Exception, match=r"mark it with @pytest\.mark\.processes.* subprocess\.Popen"):
        next(call)


def test_the_process_that_looks_at_files_is_no_tests_own(tmp_path: Path) -> None:
    guard = process_starts.Guard()
    guard.pytest_runtest_setup()
    call = guard.pytest_runtest_call()
    next(call)
    examiner = Examiner()
    assert examiner.examine(tmp_path / "none.mp4", playlist=False, memory_mb=256).unreadable
    examiner.close()
    with pytest.raises(StopIteration):
        next(call)
