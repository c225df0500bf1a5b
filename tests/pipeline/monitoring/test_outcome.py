"""The exit status of a run."""

from __future__ import annotations

import pytest

from camgraph.pipeline.errors import ProblemText
from camgraph.pipeline.monitoring.outcome import UNSURE, Outcome


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


def test_a_rescue_that_is_unsure_is_a_problem() -> None:
    outcome = Outcome()
    outcome.add_losses({(UNSURE, ""): 1})
    assert (outcome.status, outcome.error_ids) == (1, ("events-given-up",))
    assert "nobody can tell how many of its events are lost" in outcome.problems[0]


@pytest.mark.parametrize(("reason", "why"), [("refused", "the other side refused them"), ("expired", "in time")])
def test_events_that_a_sink_gave_up_are_no_frames(reason: str, why: str) -> None:
    outcome = Outcome()
    outcome.add_losses({(f"dropped.{reason}", "a"): 2})
    [problem] = outcome.problems
    assert problem.startswith("events for a sink dropped (2 of a): ")
    assert why in problem
    assert "camgraph outbox list --dead" in problem
    assert (outcome.status, outcome.error_ids) == (1, ("events-refused",))


def test_problems_keep_the_ids_of_their_kinds() -> None:
    outcome = Outcome()
    missing = ProblemText("rtsp://guard:geheim@host is away", error_id="source-missing")
    outcome.add_camera_errors(dict.fromkeys("ab", ("error", missing)), "ab")
    outcome.add_absent({"c": ProblemText("lost", error_id="camera-lost")}, {})
    outcome.add_losses({("dropped.error", "a"): 1, ("dropped.invalid_event", "a"): 1, ("given_up.log", "a"): 1})
    outcome.add(1, "what nobody has a name for")
    assert "geheim" not in str(outcome.problems)
    assert outcome.error_ids == (
        "source-missing",
        "camera-lost",
        "events-given-up",
        "frames-dropped",
        "events-dropped",
    )


@pytest.mark.parametrize("reason", ["model_failed", "unpaired", "told", "stale", "quarantined", "error", "late"])
def test_dropped_frame_is_a_problem(reason: str) -> None:
    outcome = Outcome()
    outcome.add_losses({(f"dropped.{reason}", "b"): 2, (f"dropped.{reason}", "a"): 1, ("frames", "a"): 9})
    assert outcome.status == 1
    [problem] = outcome.problems
    assert problem.startswith("frames dropped (1 of a, 2 of b): ")


def test_a_reason_that_only_its_stage_knows_is_said_in_its_words() -> None:
    outcome = Outcome()
    outcome.add_losses({("dropped.model_failed", "a"): 12})
    assert outcome.problems == ["frames dropped (12 of a): `model_failed`; the log has the details"]


def test_intended_drops_are_no_problem() -> None:
    outcome = Outcome()
    intended = ["dropped.queue_full", "dropped.reader_lost", "dropped.damaged", "skipped.unpaired", "unsent.no_client"]
    outcome.add_losses({(name, "a"): 3 for name in intended} | {("dropped.quarantined", "a"): 0})
    outcome.add_losses({("dropped.stale", "a"): 1}, edges_drop=True)
    assert (outcome.status, outcome.problems) == (0, [])


def test_removed_camera_is_not_missed() -> None:
    outcome = Outcome()
    outcome.add_absent({"typo": "lost: no such host"}, {"typo": ("removed", "")})
    assert outcome.problems == []
    assert outcome.status == 0


def test_camera_absent_for_whole_run_is_a_problem() -> None:
    outcome = Outcome()
    absent = {"front": "unauthorised: wrong password", "yard": "lost"}
    outcome.add_absent(absent, {"front": ("end", ""), "yard": ("error", "broken")})
    assert outcome.status == 1
    assert outcome.problems == ["camera front: no frame in the whole run (unauthorised: wrong password)"]


def test_stopped_run_succeeds_despite_absent_camera() -> None:
    outcome = Outcome()
    outcome.add_absent({"front": "lost: no route to host"}, {"front": ("stopped", "")}, stopped=True)
    assert outcome.status == 0
    assert outcome.problems == ["camera front: no frame in the whole run (lost: no route to host)"]
    outcome.add(3, "no room")
    assert outcome.status == 3
