"""`camgraph top` in a real terminal, beside a real run; and what its keys do."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from camgraph_test_stages.services import serving_run
from camgraph_test_stages.waiting import until

from camgraph.pipeline.monitoring.run_status import CameraStatus, RunStatus
from camgraph.tools.commands.top_command import View

STATUS = RunStatus(
    cameras={
        "door": CameraStatus(state="live", fps=5, age_ms=20, drops=3),
        "Yard": CameraStatus(state="lost", fps=0, age_ms=None, drops=9),
        "hall": CameraStatus(state="live", fps=25, age_ms=400, drops=0, events=2),
    }
)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("", ["door", "Yard", "hall"]),
        ("s", ["Yard", "door", "hall"]),
        ("ss", ["Yard", "door", "hall"]),
        ("sss", ["Yard", "door", "hall"]),
        ("ssss", ["hall", "door", "Yard"]),
        ("sssss", ["Yard", "door", "hall"]),
        ("ssssss", ["hall", "door", "Yard"]),
        ("sssssss", ["door", "Yard", "hall"]),
        ("r", ["hall", "Yard", "door"]),
        ("/YA\r", ["Yard"]),
        ("/yax\x7f\r", ["Yard"]),
        ("/ya\rs\x1b", ["Yard", "door", "hall"]),
        ("/nobody\r", []),
        ("xyzé", ["door", "Yard", "hall"]),
    ],
)
def test_keys_sort_and_filter(keys: str, expected: list[str]) -> None:
    view = View()
    for key in keys:
        view.press(key)
    assert list(view.arranged(STATUS).cameras) == expected
    assert not view.is_over


def test_what_is_typed_is_shown_and_q_is_a_letter_there() -> None:
    view = View()
    for key in "/q":
        view.press(key)
    assert view.line == "show cameras with: q_"
    for key in "\rpq":
        view.press(key)
    assert view.line.startswith("PAUSED   only with 'q'   q quit")
    assert view.is_over


@contextmanager
def on_terminal(folder: Path, environ: dict[str, str]) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The command, and the other end of its terminal."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "camgraph.tools.cli", "top"]
    process = subprocess.Popen(
        command, cwd=folder, env={**environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "40"},
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    os.set_blocking(ours, False)
    try:
        yield process, ours
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def test_it_shows_the_run_and_quits(tmp_path: Path) -> None:
    with serving_run(tmp_path) as served, on_terminal(tmp_path, served.environ) as (process, terminal):
        seen = b""

        def shown(text: bytes) -> bool:
            nonlocal seen
            with suppress(BlockingIOError, OSError):
                seen += os.read(terminal, 1 << 16)
            return text in seen

        until(lambda: shown(b"served"), why=lambda: seen, every_s=0.05)
        os.write(terminal, b"/b\r")
        until(lambda: shown(b"only with 'b'"), why=lambda: seen, every_s=0.05)
        os.write(terminal, b"q")
        until(lambda: shown(b"\x1b[?1049l") and process.poll() is not None, why=lambda: seen, every_s=0.05)
        assert process.returncode == 0


def test_without_a_terminal_it_says_what_to_use(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "camgraph.tools.cli", "top"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3] / "src")},
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 2
    assert "camgraph status" in done.stderr
