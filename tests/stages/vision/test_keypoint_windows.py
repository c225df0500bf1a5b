"""Windows of keypoints: the same at any frame rate, and honest about what was not seen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.vision.keypoint_record import KeypointRecord
from camgraph.stages.vision.keypoint_windows import F32, in_skeleton, normalised, resampled

SECOND = 1_000_000_000


def window_of(record: KeypointRecord, steps: int) -> tuple[F32, float]:
    return resampled(record.times_ns, record.joints, 2 * SECOND, steps=steps, gap_ns=SECOND // 2, min_confidence=0.1)


def record_of(times_s: list[float], known: bool = True) -> KeypointRecord:
    """A joint whose x is 100 pixels a second times the time; the window is two seconds."""
    record = KeypointRecord(3 * SECOND, 17)
    for at_s in times_s:
        joints = np.full((17, 3), 0.9 if known else 0.05, np.float32)
        joints[:, :2] = 100 * at_s, 50
        record.add(round(at_s * SECOND), np.zeros(4), 1.0, joints)
    return record


@given(st.integers(4, 60), st.integers(2, 50))
def test_steps_are_at_equal_times_at_any_frame_rate(fps: int, steps: int) -> None:
    window, seen = window_of(record_of([3 - 0.9 / fps + i / fps for i in range(2 * fps + 2)]), steps)
    assert seen == 1
    assert np.allclose(window[:, 0, 0], 100 * np.linspace(3, 5, steps) + 10 / fps, atol=0.05)
    assert np.allclose(window[:, :, 2], 0.9)


def test_times_without_frames_are_zeros() -> None:
    times = [i / 10 for i in range(21) if not 5 < i < 15]
    window, seen = window_of(record_of(times), 21)
    assert (window[6:15] == 0).all()
    assert (window[[1, 2, 3, 4, 5, 15, 16, 17, 18, 19, 20], 0, 2] > 0).all()
    assert seen == pytest.approx(12 / 21)


def test_before_the_first_frame_there_is_nothing() -> None:
    window, seen = window_of(record_of([1.0 + i / 10 for i in range(11)]), 21)
    assert (window[:10] == 0).all()
    assert seen == pytest.approx(11 / 21)


def test_unknown_joints_are_zeros_and_people_still_count() -> None:
    window, seen = window_of(record_of([i / 10 for i in range(21)], known=False), 21)
    assert (window == 0).all()
    assert seen == 1


def test_coordinates_are_parts_of_the_frame() -> None:
    window = np.zeros((1, 17, 3), np.float32)
    window[0, 0] = 640, 0, 0.5
    window[0, 1] = 320, 240, 1
    assert normalised(window, "centred", (640, 480))[0, :3].tolist() == [[0.5, -0.5, 0.5], [0, 0, 1], [0, 0, 0]]
    assert normalised(window, "signed", (640, 480))[0, :3].tolist() == [[1, -1, 0.5], [0, 0, 1], [0, 0, 0]]


def test_the_order_of_openpose_has_a_neck() -> None:
    window = np.arange(17 * 3, dtype=np.float32).reshape(1, 17, 3)
    found = in_skeleton(window, "openpose-18")
    assert found.shape == (1, 18, 3)
    assert found[0, 0].tolist() == window[0, 0].tolist()
    assert found[0, 1].tolist() == ((window[0, 5] + window[0, 6]) / 2).tolist()
    assert found[0, 4].tolist() == window[0, 10].tolist(), "the right wrist"
    window[0, 5, 2] = 0
    assert found[0, 17].tolist() == window[0, 3].tolist(), "the left ear"
    assert in_skeleton(window, "openpose-18")[0, 1].tolist() == [0, 0, 0]
