"""How a run is, in one word and a reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from camgraph.pipeline.monitoring.health import CameraCondition, Flow, Trouble, duration, health_of

LIVE = CameraCondition("live")
LOST = CameraCondition("lost", "no answer", 26.4, stuck_s=27.0)
FLOW = Flow(39.8)
FULL_DISK = Trouble("log", "/x/events.jsonl: No space left on device", 61.0)


def judged(cameras: dict[str, CameraCondition], *troubles: Trouble, phase: str = "running", flow: Flow = FLOW) -> str:
    health = health_of(phase, 12.0, cameras, troubles, flow)  # type: ignore[arg-type]  # a phase by its name
    return f"{health.level}: {health.reason}"


def test_healthy_if_frames_of_all_cameras_go_through() -> None:
    assert judged({"a": LIVE, "b": CameraCondition("running")}) == "healthy: 2 cameras, 39.8 frames/s"
    assert judged({"a": LIVE}, flow=Flow(40.0, 0.81)) == "healthy: 1 camera, 40.0 frames/s, 81% of them dropped"


def test_one_camera_away_is_degraded_and_all_of_them_are_down() -> None:
    assert judged({"a": LIVE, "b": LOST}) == "degraded: 1 of 2 cameras without frames: b lost for 26 s (no answer)"
    assert judged({"a": LOST, "b": replace(LOST, since_s=3.0)}) == (
        "down: 2 of 2 cameras without frames: a lost for 26 s (no answer), b lost for 3 s (no answer)"
    )
    many = judged(dict.fromkeys("abcdef", LOST))
    assert many.endswith("c lost for 26 s (no answer) and 3 more")


def test_long_reason_hides_no_other_camera_and_no_count() -> None:
    why = "rtsp://127.0.0.1:40311/main: the camera closed the connection after the request DESCRIBE, and said no more"
    many = judged(dict.fromkeys("abcde", replace(LOST, why=why)), FULL_DISK, replace(FULL_DISK, where="mail"))
    cut = "rtsp://127.0.0.1:40311/main: the camera closed the…"
    assert many == (
        f"down: 5 of 5 cameras without frames: a lost for 26 s ({cut}), b lost for 26 s ({cut}), "
        f"c lost for 26 s ({cut}) and 2 more; {FULL_DISK}; mail: {FULL_DISK.why} (for 61 s)"
    )
    assert why in judged({"a": replace(LOST, why=why)}), "alone, it is shown as a whole"
    assert "x" * 60 + "…" in judged(dict.fromkeys("abcde", replace(LOST, why="x" * 300)), *[FULL_DISK] * 3)


def test_lost_camera_is_down_despite_recent_frame() -> None:
    assert judged({"a": replace(LOST, stuck_s=None)}).startswith("down: ")


def test_frames_that_come_and_go_through_nowhere_are_no_health() -> None:
    stuck = CameraCondition("live", stuck_s=45.0)
    assert judged({"a": stuck}) == (
        "down: 1 of 1 camera without frames: a live, but no frame has gone through for 45 s"
    )
    assert judged({"a": stuck, "b": LIVE}).startswith("degraded: 1 of 2 cameras")


def test_a_trouble_is_named_with_how_long_it_lasts() -> None:
    message = "log: /x/events.jsonl: No space left on device (for 61 s)"
    assert judged({"a": LIVE}, FULL_DISK) == f"degraded: {message}"
    assert judged({"a": LOST}, FULL_DISK).endswith(f"; {message}")


@pytest.mark.parametrize("phase", ["starting", "stopping"])
def test_starting_or_stopping_run_is_degraded(phase: str) -> None:
    opening = Trouble("infer.0", "is being opened", 40.0)
    assert judged({"a": CameraCondition("starting")}, opening, phase=phase) == (
        f"degraded: {phase} for 12 s; infer.0: is being opened (for 40 s)"
    )


def test_a_camera_that_is_being_connected_to_is_not_down_yet() -> None:
    assert judged({"a": CameraCondition("connecting"), "b": LOST}).startswith("degraded: 2 of 2")


@pytest.mark.parametrize("state", ["paused", "done", "stopped"])
def test_nothing_is_expected_of_cameras_that_rest_or_have_ended(state: str) -> None:
    assert judged({"a": LIVE, "b": CameraCondition(state)}) == "healthy: 1 camera, 39.8 frames/s"
    assert judged({"a": CameraCondition(state, stuck_s=100.0)}).startswith("healthy: ")


def test_cameras_that_failed_are_not_forgotten() -> None:
    failed = CameraCondition("failed", "no such file")
    assert judged({"a": LIVE, "b": failed}) == "degraded: 1 of 2 cameras without frames: b failed (no such file)"
    assert judged({"a": failed}).startswith("down: ")


@pytest.mark.parametrize(
    ("seconds", "message"),
    [(0.4, "0 s"), (119.9, "119 s"), (120, "2 min"), (7199, "119 min"), (7200, "2 h"), (200_000, "2 days")],
)
def test_durations_are_as_exact_as_somebody_wants_to_know(seconds: float, message: str) -> None:
    assert duration(seconds) == message
