"""The exit status of a run."""

from __future__ import annotations

import pytest

from pipeline.outcome import Outcome


@pytest.mark.parametrize(
    ("failed", "statuses", "status"),
    [
        ("", {}, 0),
        ("a", {"a": 2}, 1),
        ("a", {"a": 3}, 1),
        ("ab", {}, 2),
        ("ab", {"a": 2}, 2),
        ("ab", {"a": 0, "b": 2}, 2),
        ("ab", {"a": 3, "b": 3}, 3),
        ("ab", {"a": 1, "b": 1}, 1),
        ("ab", {"a": 2, "b": 3}, 1),
        ("ab", {"a": 3}, 1),
        ("ab", {"a": 1, "b": 2}, 1),
    ],
)
def test_cameras_that_all_failed_for_the_same_decide_the_status(
    failed: str, statuses: dict[str, int], status: int
) -> None:
    ended = {camera: ("error", "broken") if camera in failed else ("end", "") for camera in "ab"}
    outcome = Outcome()
    outcome.add_camera_errors(ended, "ab", statuses)
    assert outcome.status == status
    assert outcome.problems == [f"camera {camera}: broken" for camera in failed]


def test_what_went_wrong_first_keeps_the_status() -> None:
    outcome = Outcome()
    outcome.add(3, "no disk")
    outcome.add_camera_errors({"a": ("error", "camera a: broken")}, ["a"], {"a": 2})
    assert (outcome.status, outcome.problems) == (3, ["no disk", "camera a: broken"])
