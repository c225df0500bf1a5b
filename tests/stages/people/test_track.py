"""The tracking stage: whose state is whose, and ids that never come twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from camgraph.pipeline.errors import BadItem
from camgraph.pipeline.messages import End
from camgraph.pipeline.stage import Upstream
from camgraph.pipeline.testing import feed, opened, stamp
from camgraph.stages import testing
from camgraph.stages.messages import People, Tracks
from camgraph.stages.people.track import SEEN, Track

SECOND = {"sure_score": 1.0, "confirm_s": 0.1}
"""`stamp` spaces frames so: a track needs one sighting, and in the first frame of all a second one."""


def people(seq: int, camera: str = "cam", *, lefts: tuple[float, ...] = (10.0,), epoch: int = 0) -> People:
    boxes, keypoints = [(x, 10, x + 20, 70) for x in lefts], np.arange(len(lefts) * 17 * 3).reshape(-1, 17, 3)
    return testing.people(boxes, seq, camera, epoch=epoch, frame_size=(320, 240), keypoints=keypoints)


def ids(outputs: list) -> list[list[int]]:
    return [tracks.ids.tolist() for tracks in outputs]


def test_one_tracks_message_for_each_frame(tmp_path: Path) -> None:
    with opened(Track, SECOND, folder=tmp_path) as stage:
        outputs = feed(stage, [people(0), people(1, lefts=(200.0, 10.0)), people(2, lefts=()), people(3)], end=True)
    assert all(isinstance(tracks, Tracks) for tracks in outputs)
    assert [tracks.stamp.seq for tracks in outputs] == [0, 1, 2, 3]
    assert ids(outputs) == [[], [2, 1], [], [1]]
    assert outputs[1].boxes.tolist() == [[200, 10, 220, 70], [10, 10, 30, 70]]
    assert outputs[1].keypoints.tolist() == people(1, lefts=(200.0, 10.0)).keypoints.tolist()


@pytest.mark.parametrize("batch", [1, 2, 7])
def test_cameras_do_not_see_each_other(tmp_path: Path, batch: int) -> None:
    alone = [people(i, "a", lefts=(10.0 + i,)) for i in range(6)]
    mixed = [item for i in range(6) for item in (alone[i], people(i, "b", lefts=(15.0 + i, 150.0)))]
    with opened(Track, SECOND, folder=tmp_path, cameras=("a", "b")) as stage:
        outputs = [out for out in feed(stage, mixed, batch=batch) if out.stamp.camera == "a"]
    with opened(Track, SECOND, folder=tmp_path, cameras=("a",)) as stage:
        assert ids(outputs) == ids(feed(stage, alone))


def test_ids_go_on_through_epochs_and_ends(tmp_path: Path) -> None:
    with opened(Track, SECOND, folder=tmp_path) as stage:
        assert ids(feed(stage, [people(i) for i in range(3)]))[-1] == [1]
        assert ids(feed(stage, [people(i, epoch=1) for i in range(2)])) == [[], [2]]
        assert list(stage.finish("cam", End(stamp(1, epoch=1)))) == []
        assert ids(feed(stage, [people(i, epoch=2) for i in range(2)])) == [[], [3]]


def photograph(seq: int, **settings: Any) -> People:
    item = people(seq, **settings)
    return replace(item, stamp=item.stamp._replace(alone=True))


def test_photographs_confirm_at_once_without_identity(tmp_path: Path) -> None:
    with opened(Track, {"sure_score": 1.0, "confirm_s": 0.35}, folder=tmp_path) as stage:
        outputs = feed(stage, [photograph(0, lefts=(10.0, 200.0)), photograph(1), photograph(2, lefts=())], end=True)
        assert ids(outputs) == [[1, 2], [3], []]
        assert ids(feed(stage, [people(i, epoch=1) for i in range(5)])) == [[], [], [], [], [4]]


def test_in_a_photograph_too_a_weak_person_begins_no_track(tmp_path: Path) -> None:
    weak = photograph(0)
    weak.scores[:] = 0.35
    with opened(Track, {}, folder=tmp_path) as stage:
        assert ids(feed(stage, [weak])) == [[]]


def test_a_restarted_process_begins_a_million_higher(tmp_path: Path) -> None:
    with opened(Track, SECOND, folder=tmp_path, incarnation=3) as stage:
        assert ids(feed(stage, [people(0), people(1)])) == [[], [2_000_001]]


def test_a_bad_item_leaves_nothing_behind(tmp_path: Path) -> None:
    """The runtime hands the items of a failed call in again one by one: the good ones must not have counted already."""
    bad = people(1)
    bad.boxes[0, 0] = np.nan
    with opened(Track, {"sure_score": 1.0, "confirm_s": 0.25}, folder=tmp_path) as stage:
        with pytest.raises(BadItem, match="nonfinite"):
            list(stage.process([people(0), bad, people(2)]))
        assert ids(feed(stage, [people(0), people(2)])) == [[], []]


def test_scores_out_of_order_are_refused() -> None:
    with pytest.raises(ValueError, match=r"weak_score 0\.9 is above good_score 0\.5: lower it"):
        Track.settings_type.model_validate({"weak_score": 0.9, "good_score": 0.5})


def model_before(**scores: float) -> Upstream:
    return Upstream({"decode": {"scores": scores}})


def test_scores_follow_the_model_unless_they_are_written() -> None:
    upstream = model_before(weak=0.05, good=0.2, new=0.3, sure=0.45, certain=0.2)
    open_ones = Track.settings_type()
    expected = {"weak_score": 0.05, "good_score": 0.2, "new_score": 0.3, "sure_score": 0.45}
    assert Track.follow(open_ones, Path(), upstream) == expected
    written = Track.settings_type.model_validate({"new_score": 0.6})
    assert Track.follow(written, Path(), upstream) == {k: v for k, v in expected.items() if k != "new_score"}
    assert Track.follow(open_ones, Path(), Upstream({})) == {}


def test_of_two_models_the_lower_scores_count() -> None:
    one = dict.fromkeys(("weak", "good", "new", "sure", "certain"), 0.2)
    both = Upstream(
        {"a": {"scores": one}, "b": {"scores": {**one, "weak": 0.1, "sure": 0.7}}}, {"a": frozenset(), "b": frozenset()}
    )
    assert Track.follow(Track.settings_type(), Path(), both) == {
        "weak_score": 0.1, "good_score": 0.2, "new_score": 0.2, "sure_score": 0.2,
    }  # fmt: skip


def test_only_people_of_a_good_score_count_as_seen(tmp_path: Path) -> None:
    item = people(0, lefts=(10.0, 200.0))
    item.scores[1] = 0.15
    with opened(Track, {}, folder=tmp_path) as stage:
        feed(stage, [item])
        assert stage.context.counts[SEEN, "cam"] == 1


def test_people_without_a_track_are_passed_on_apart(tmp_path: Path) -> None:
    """The new one until its track counts, and one who is hardly seen; none whose score is next to nothing."""
    items = [people(i, lefts=(10.0, 100.0, 200.0)) for i in range(3)]
    for item in items:
        item.scores[1:] = 0.15, 0.02
    with opened(Track, SECOND, folder=tmp_path) as stage:
        outputs = [Tracks.build(one.stamp, one.fields(), one.arrays()) for one in feed(stage, items)]
    assert [one.ids.tolist() for one in outputs] == [[], [1], [1]]
    assert [one.other_boxes[:, 0].tolist() for one in outputs] == [[10, 100], [100], [100]]
    assert outputs[0].other_keypoints.tolist() == items[0].keypoints[:2].tolist()


def test_the_new_track_of_a_lost_person_says_so(tmp_path: Path) -> None:
    """They walk behind something for longer than a track is kept."""
    walk = [people(i, lefts=(5.0 * i,) if not 10 <= i < 25 else ()) for i in range(35)]
    with opened(Track, {"max_lost_s": 1.0}, folder=tmp_path) as stage:
        outputs = feed(stage, walk)
    assert {(int(i), int(c)) for out in outputs for i, c in zip(out.ids, out.continues, strict=True)} == {
        (1, 0),
        (2, 1),
    }


@pytest.mark.parametrize("smooth", [False, True])
def test_keypoints_are_smoothed_if_that_is_wanted(tmp_path: Path, smooth: bool) -> None:
    random, items = np.random.default_rng(1), []
    for index in range(40):
        item = people(index, lefts=(10.0, 200.0))
        item.keypoints[:] = (20, 40, 0.9)
        item.keypoints[:, :, :2] += random.normal(0, 0.5, (2, 17, 2))
        items.append(item)
    with opened(Track, {"smooth": smooth}, folder=tmp_path) as stage:
        outputs = feed(stage, items)
    assert all(out.keypoints.dtype == np.float32 for out in outputs)
    spread = np.stack([out.keypoints[:, :, :2] for out in outputs[10:]]).std(axis=0).mean()
    assert spread < 0.465 if smooth else spread > 0.47
