"""The exit status of a run."""

from __future__ import annotations

import pytest

from pipeline.monitoring.outcome import Outcome


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


@pytest.mark.parametrize("reason", ["model_failed", "unpaired", "told", "stale", "quarantined", "error", "late"])
def test_a_frame_that_was_dropped_for_whatever_reason_is_no_success(reason: str) -> None:
    outcome = Outcome()
    outcome.add_losses({(f"dropped.{reason}", "b"): 2, (f"dropped.{reason}", "a"): 1, ("frames", "a"): 9})
    assert outcome.status == 1
    [problem] = outcome.problems
    assert problem.startswith("frames dropped (1 of a, 2 of b): ")


def test_a_reason_that_only_its_stage_knows_is_said_in_its_words() -> None:
    outcome = Outcome()
    outcome.add_losses({("dropped.model_failed", "a"): 12})
    assert outcome.problems == ["frames dropped (12 of a): `model_failed`; the log has the details"]


def test_what_the_graph_or_a_live_camera_drops_is_as_it_should_be() -> None:
    outcome = Outcome()
    intended = ["dropped.queue_full", "dropped.reader_lost", "dropped.damaged", "skipped.unpaired", "unsent.no_client"]
    outcome.add_losses({(name, "a"): 3 for name in intended} | {("dropped.quarantined", "a"): 0})
    outcome.add_losses({("dropped.stale", "a"): 1}, edges_drop=True)
    assert (outcome.status, outcome.problems) == (0, [])


def test_a_camera_that_was_taken_out_of_the_run_is_missed_by_nobody() -> None:
    outcome = Outcome()
    outcome.add_absent({"typo": "lost: no such host"}, {"typo": ("removed", "")})
    assert outcome.problems == []
    assert outcome.status == 0


def test_a_live_camera_that_was_away_for_the_whole_run_was_given_up() -> None:
    outcome = Outcome()
    absent = {"front": "unauthorised: wrong password", "yard": "lost"}
    outcome.add_absent(absent, {"front": ("end", ""), "yard": ("error", "broken")})
    assert outcome.status == 1
    assert outcome.problems == ["camera front: not a frame in the whole run (unauthorised: wrong password)"]


def test_a_run_that_is_stopped_in_order_has_not_failed_for_a_camera_that_was_never_there() -> None:
    outcome = Outcome()
    outcome.add_absent({"front": "lost: no route to host"}, {"front": ("stopped", "")}, stopped=True)
    assert outcome.status == 0
    assert outcome.problems == ["camera front: not a frame in the whole run (lost: no route to host)"]
    outcome.add(3, "no room")
    assert outcome.status == 3
