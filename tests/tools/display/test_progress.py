from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.monitoring.run_status import CameraStatus, ProgressStatus, RunStatus
from camgraph.tools.display.progress import LEAST_S, Pace, expected_frames
from camgraph.tools.display.status_view import progress_words


def plan(folder: Path, cameras: str) -> Any:
    (folder / "g.yaml").write_text(
        f"version: 1\ncameras:\n{cameras}\nstages:\n  capture: {{use: capture}}\n"
        "  end: {use: sink_null, from: capture}\n"
    )
    return load_plan(folder / "g.yaml")


@pytest.mark.processes
def test_what_a_file_will_bring_follows_from_what_it_says(short_clip: Path, tmp_path: Path) -> None:
    """The clip: 25 frames, 5 a second."""
    for number in range(7):
        (tmp_path / f"{number}.png").write_bytes(b"")
    clip = f'url: "{short_clip}"'
    cameras = {
        "all": f"{{{clip}}}",
        "few": f"{{{clip}, max_fps: 2}}",
        "late": f"{{{clip}, start_s: 3}}",
        "part": f"{{{clip}, start_s: 1, duration_s: 2}}",
        "past": f"{{{clip}, start_s: 90}}",
        "ever": f"{{{clip}, loop: true}}",
        "pictures": '{url: "."}',
    }
    found = expected_frames(plan(tmp_path, "\n".join(f"  {name}: {values}" for name, values in cameras.items())))
    assert found == {"all": 25, "few": 10, "late": 10, "part": 10, "past": 1, "pictures": 7}


def test_no_expected_frames_if_length_unknown(tmp_path: Path) -> None:
    assert expected_frames(plan(tmp_path, '  a: {url: "rtsp://127.0.0.1:1/x"}')) == {}
    (tmp_path / "noise.mp4").write_bytes(b"\x01\x02" * 500)
    assert expected_frames(plan(tmp_path, '  a: {url: "noise.mp4"}')) == {}


def status(**frames: int | tuple[int, str]) -> RunStatus:
    cameras = {}
    for name, value in frames.items():
        count, state = value if isinstance(value, tuple) else (value, "running")
        cameras[name] = CameraStatus(frames=count + 5, finished=count, state=state)  # five are on their way
    return RunStatus(graph="g", uptime_s=1.0, cameras=cameras)


@pytest.fixture
def clock() -> list[float]:
    """The time, in a list, to be moved by hand."""
    return [0.0]


def test_it_says_how_long_it_will_take_once_it_is_known(clock: list[float]) -> None:
    pace = Pace({"a": 100, "b": 300}, lambda: clock[0])
    assert pace.added_to(status(a=0, b=0)).progress == ProgressStatus(0.0, None)
    clock[0] = 20.0  # models were opened: that is no pace
    assert pace.added_to(status(a=10, b=10)).progress == ProgressStatus(0.05, None)
    clock[0] += LEAST_S - 0.1
    assert pace.added_to(status(a=20, b=20)).progress.left_s is None
    clock[0] = 30.0
    reported = pace.added_to(status(a=60, b=60))
    assert reported.progress == ProgressStatus(0.3, 28.0)
    assert (reported.cameras["a"].done, reported.cameras["b"].done) == (0.6, 0.2)


@pytest.mark.parametrize("state", ["done", "failed", "stopped"])
def test_a_camera_that_is_over_is_not_waited_for(clock: list[float], state: str) -> None:
    pace = Pace({"a": 100, "b": 100}, lambda: clock[0])
    reported = pace.added_to(status(a=(3, state), b=50))
    assert reported.progress.done == 0.75
    assert reported.cameras["a"].done == (1.0 if state == "done" else 0.03)


def test_a_file_that_cannot_be_read_takes_no_progress_away(clock: list[float]) -> None:
    pace = Pace({"a": 100}, lambda: clock[0])
    assert pace.added_to(status(a=50, broken=(0, "starting"))).progress is None
    assert pace.added_to(status(a=50, broken=(0, "failed"))).progress == ProgressStatus(0.5, None)


def test_progress_is_capped_at_one(clock: list[float]) -> None:
    pace = Pace({"a": 100}, lambda: clock[0])
    assert pace.added_to(status(a=130)).progress.done == 1.0


def test_no_total_progress_with_an_endless_camera(clock: list[float]) -> None:
    reported = Pace({"a": 100}, lambda: clock[0]).added_to(status(a=50, live=7))
    assert reported.progress is None
    assert reported.cameras["a"].done == 0.5
    assert reported.cameras["live"].done is None


def test_it_is_told_in_words() -> None:
    assert progress_words(RunStatus(progress=ProgressStatus(0.45, 70.0))) == ["45 %, about 0:01:10 left"]
    assert progress_words(RunStatus(progress=ProgressStatus(0.0))) == ["0 %"]
    assert progress_words(RunStatus()) == []
