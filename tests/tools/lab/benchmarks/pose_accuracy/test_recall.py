"""Which moments of clips are looked at, and how finds are counted."""

from __future__ import annotations

import numpy as np

from camgraph.stages.vision.decoding.score_ranges import score_range
from camgraph.tools.lab.benchmarks.pose_accuracy.recall import NOBODY, Look, Moment, report, times_of
from camgraph.tools.lab.benchmarks.real_actions.truth import Clip
from camgraph.tools.models.pose_estimators import Poses

USUAL = score_range("yolo_pose")


def clip(*events: dict[str, object]) -> Clip:
    return Clip.model_validate(
        {"file": "a.mp4", "source": "mine @ 1 : a", "duration_s": 20.0, "people": 1, "events": events}
    )


def found(*scores: float, trunk: float = 0.9) -> Poses:
    joints = np.zeros((len(scores), 17, 3), np.float32)
    joints[:, :, 2] = trunk
    return Poses(np.zeros((len(scores), 4), np.float32), np.array(scores, np.float32), joints)


def judged(found_: Poses, group: str = "lying") -> Look:
    look = Look("model", lambda _: found_, USUAL)
    look.judge(Moment(group, np.zeros((4, 4, 3), np.uint8), None), [group])
    return look


def test_an_event_is_looked_at_once_a_second_for_four_at_most() -> None:
    times = times_of(clip({"action": "walking", "start_s": 2.0, "end_s": 9.0}))
    assert times == [(2.5, "upright"), (3.5, "upright"), (4.5, "upright"), (5.5, "upright")]


def test_a_fall_is_falling_at_its_middle_and_lying_after_its_end() -> None:
    times = times_of(clip({"action": "fall", "start_s": 1.0, "end_s": 2.0, "down_until_s": 4.0}))
    assert times == [(1.5, "falling"), (2.5, "lying"), (3.5, "lying")]


def test_unsure_events_and_actions_without_a_group_are_left_out() -> None:
    unsure = {"action": "lying", "start_s": 0.0, "end_s": 5.0, "sure": False}
    assert times_of(clip(unsure, {"action": "punching", "start_s": 1.0, "end_s": 3.0})) == []


def test_who_scores_below_good_is_not_found() -> None:
    assert judged(found(USUAL.good - 0.01)).tallies["lying"].found == 0
    assert judged(found(USUAL.good)).tallies["lying"].found == 1
    assert judged(found()).tallies["lying"].found == 0


def test_the_trunk_is_that_of_the_best_person() -> None:
    both = found(0.5, 0.9)
    both.keypoints[0, :, 2] = 0.0
    assert judged(both).tallies["lying"].trunk == 1
    both.keypoints[1, 11, 2] = 0.1
    assert judged(both).tallies["lying"].trunk == 0


def test_where_nobody_is_only_one_who_begins_a_track_is_a_find() -> None:
    assert judged(found(USUAL.new - 0.01), NOBODY).tallies[NOBODY].found == 0
    assert judged(found(USUAL.new), NOBODY).tallies[NOBODY].found == 1


def test_the_table_has_shares_and_the_number_of_pictures() -> None:
    text = report([judged(found(0.9, trunk=0.1))])
    assert "| lying (1) |" in text
    assert "| 100%, 0% |" in text
