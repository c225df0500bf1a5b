"""The library of actions against the truth of clips: what counts as found, missed and false, and which layer missed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import av
import numpy as np
import pytest
import yaml
from click.testing import CliRunner

from camgraph.pipeline.errors import UserError
from camgraph.stages.messages import Tracks
from camgraph.stages.vision.decoding.score_ranges import score_range
from camgraph.tools.lab.action_trials import View
from camgraph.tools.lab.benchmarks.action_clips import Watched
from camgraph.tools.lab.benchmarks.real_actions.__main__ import chosen, main
from camgraph.tools.lab.benchmarks.real_actions.incidents import Told, judged
from camgraph.tools.lab.benchmarks.real_actions.people import Finder, _keep, people_of, thinned
from camgraph.tools.lab.benchmarks.real_actions.report import Result, listed, tables
from camgraph.tools.lab.benchmarks.real_actions.scores import layer_of, score
from camgraph.tools.lab.benchmarks.real_actions.truth import Clip, Happening, folds_of, read_truth
from camgraph.tools.lab.report_page import marks_of
from camgraph.tools.models.pose_estimators import Poses
from camgraph.tools.scenes.animator import Actor, Scene
from camgraph.tools.scenes.animator.library import fall, standing, waiting
from camgraph.tools.scenes.animator.messages import tracks
from camgraph.tools.scenes.animator.scene import Seen

SCORES = score_range("yolo_pose")
FELL = Happening(action="fall", start_s=2.5, end_s=3.4, down_until_s=8.0)
VIEW = View(2.6, 5.0, 60.0)


def clip(*events: Happening, right: tuple[str, ...] = (), file: str = "a.mp4", source: str = "x/y @ 1 : a") -> Clip:
    return Clip(file=file, source=source, duration_s=20.0, right_actions=right, events=events)


def told(action: str, at_s: float, until_s: float = 0.0) -> Told:
    return Told(action, at_s, max(at_s, until_s), (1,))


def falling(fps: float = 12.5) -> list[Seen]:
    scene = Scene("fall", [Actor([waiting(1.5), standing(1.0), fall("left", lie_s=8.0)])])
    return list(scene.frames(fps, 1, VIEW.camera))


def watched(frames: list[Seen], fps: float = 12.5) -> Watched:
    found = [Poses(one.boxes, one.scores, one.keypoints) for one in frames]
    return Watched([one.time_ns for one in frames], found, frames[0].frame_size, fps)


# ---- what counts


@pytest.mark.parametrize(("at_s", "found"), [(1.99, False), (2.0, True), (3.0, True), (10.0, True), (10.01, False)])
def test_a_fall_is_found_from_half_a_second_before_to_two_after(at_s: float, found: bool) -> None:
    result = score("fall", clip(FELL), [told("fall", at_s)])
    assert (len(result.found), len(result.missed), len(result.false)) == ((1, 0, 0) if found else (0, 1, 1))


def test_the_same_fall_told_again_is_counted_by_itself() -> None:
    result = score("fall", clip(FELL), [told("fall", 5.0), told("lying", 6.0), told("fall", 7.0), told("fall", 15.0)])
    assert [one.at_s for _, one in result.again] == [7.0]
    assert [one.at_s for _, one in result.false] == [15.0]
    assert result.delays_s == pytest.approx([1.6])


def test_an_unsure_fall_is_neither_missed_nor_false() -> None:
    unsure = FELL.model_copy(update={"sure": False})
    for incidents in ([], [told("fall", 5.0)]):
        result = score("fall", clip(unsure), incidents)
        assert (result.events, result.false, result.again) == (0, [], [])
    assert len(score("fall", clip(unsure), [told("fall", 15.0)]).false) == 1


def test_of_two_falls_that_overlap_the_later_one_is_meant() -> None:
    later = Happening(action="fall", start_s=9.0, end_s=9.8, down_until_s=14.0)
    assert [event for _, event in score("fall", clip(FELL, later), [told("fall", 9.5)]).missed] == [FELL]
    assert not score("fall", clip(FELL, later), [told("fall", 6.0), told("fall", 9.5)]).missed


def test_other_actions_are_false_only_where_nobody_may_do_them() -> None:
    sits = Happening(action="sitting", start_s=5.0, end_s=9.0)
    incidents = [told("sitting", 3.0, 6.0), told("sitting", 15.0)]
    result = score("sitting", clip(sits, right=("sitting",)), incidents)
    assert (len(result.found), len(result.false), result.delays_s) == (1, 0, [0.0])
    assert len(score("sitting", clip(sits), incidents).false) == 2
    assert len(score("sitting", clip(sits), [told("sitting", 11.1)]).missed) == 1


# ---- the truth


def test_the_truth_is_read(tmp_path: Path) -> None:
    event = {"action": "fall", "start_s": 1, "end_s": 2, "down_until_s": 5, "sure": False, "note": "x"}
    known = {"source": "o/r @ 1 : p", "duration_s": 9, "licence": "none", "right_actions": ["fall"], "events": [event]}
    clips = [{"file": "a.mp4", **known}, {"file": "not_there.mp4", **known}]
    (tmp_path / "truth.yaml").write_text(yaml.safe_dump({"version": 1, "clips": clips}))
    (tmp_path / "a.mp4").touch()
    [one] = read_truth(tmp_path)
    assert (one.file, one.origin, one.right_actions, one.of("fall", sure=False)[0].over_s) == (
        "a.mp4",
        "o/r",
        ("fall",),
        5.0,
    )


def test_a_folder_without_truth_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="expected the truth beside the clips"):
        read_truth(tmp_path)
    (tmp_path / "truth.yaml").write_text("clips: [{file: 3}]")
    with pytest.raises(UserError, match="cannot be read as the truth of clips"):
        read_truth(tmp_path)


def test_no_source_is_in_two_folds() -> None:
    clips = [
        clip(*[FELL] * (number % 3), file=f"{number}.mp4", source=f"o/r{number % 7} @ 1 : p") for number in range(40)
    ]
    folds = folds_of(clips, 3)
    assert [sum(one in fold for fold in folds) for one in clips] == [1] * len(clips)
    falls = [sum(len(one.events) for one in clips if one in fold) for fold in folds]
    assert max(falls) - min(falls) <= 6, falls
    assert folds == folds_of(clips[::-1], 3)


# ---- people and incidents


def test_clips_are_chosen_by_what_surely_happens_in_them() -> None:
    fell = clip(Happening(action="fall", start_s=1.0, end_s=2.0), file="fell.mp4")
    perhaps = clip(Happening(action="fall", start_s=1.0, end_s=2.0, sure=False), file="perhaps.mp4")
    stood = clip(file="stood.mp4")
    every = [fell, perhaps, stood]
    assert list(chosen(every, (), ())) == every
    assert list(chosen(every, (), (), "fall")) == [fell]
    assert list(chosen(every, ("s*",), (), None)) == [stood]


def test_people_are_kept_and_thinned(tmp_path: Path) -> None:
    seen = watched(falling())
    finder = Finder(Path("model.onnx"), tmp_path)
    _keep(seen, finder.kept(Path("a.mp4"), 12.5))
    again = finder.find(Path("a.mp4"), 12.5)
    assert again.times_ns == seen.times_ns
    for one, other in zip(seen.found, again.found, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    few = thinned(again, 5.0)
    gaps = np.diff(few.times_ns)
    assert len(few.found) == len(few.times_ns)
    assert gaps.mean() == pytest.approx(200e6, rel=0.02)
    assert thinned(again, 12.5).times_ns == seen.times_ns


def test_the_first_frame_is_at_zero() -> None:
    seen = watched(falling())
    late = Watched([time_ns + 7_000_000_000 for time_ns in seen.times_ns], seen.found, seen.size, seen.max_fps)
    [first, *_] = people_of(late, SCORES.weak)
    assert first.stamp.time_ns == 0


@pytest.mark.slow
def test_a_fall_goes_through_the_stages_of_a_run() -> None:
    """The animator's people, once as a clip that was looked at."""
    made = judged(watched(falling()), SCORES, {"rules": [{"use": "fall"}, {"use": "lying"}]})
    result = Result(12.5)
    result.take(clip(FELL), made, ["fall", "lying", "waving"])
    assert [one.action for one in made.told] == ["fall", "lying"]
    assert len(result.scores["fall"].found) == 1
    every = [clip(FELL), clip(right=("lying",)), clip()]
    text = tables([result], folds_of(every, 2), every)
    assert "1 of 3 clips" in text
    assert "| `lying` | 0 | 0 | 1 | " in text
    assert "Not in the truth (incidents at each rate): `lying` (1)." in tables([result], folds_of(every, 2), every[:1])
    assert "| `fall` | 1 | 1 | 0 | - | 0 | " in text
    assert "No event and no incident: `waving`." in text
    assert "12.5/s  false   lying" in "\n".join(listed(result))


# ---- layers


def seen_by(frames: list[Seen]) -> list[Tracks]:
    return list(tracks(frames, min_score=0.15))


def edited(frames: list[Tracks], begin_s: float, end_s: float, **change: object) -> list[Tracks]:
    return [
        replace(one, **{name: value(one) for name, value in change.items()})  # type: ignore[operator,arg-type]
        if begin_s <= one.stamp.time_ns / 1e9 < end_s
        else one
        for one in frames
    ]


def nobody(one: Tracks) -> Tracks:
    return Tracks(
        one.stamp, one.boxes[:0], one.scores[:0], one.keypoints[:0], one.frame_size, one.classes[:0], ids=one.ids[:0]
    )


@pytest.mark.slow
def test_the_layer_that_missed_a_fall() -> None:
    whole = seen_by(falling())
    assert layer_of(FELL, whole) == "rule"
    assert layer_of(FELL, edited(whole, 0, 99, keypoints=lambda one: one.keypoints * np.float32([1, 1, 0]))) == "joints"
    assert layer_of(FELL, edited(whole, 2.9, 99, ids=lambda one: one.ids + 1)) == "track"
    away = [nobody(one) if one.stamp.time_ns / 1e9 >= 2.0 else one for one in whole]
    assert layer_of(FELL, away) == "person"
    assert layer_of(FELL, []) == "person"


# ---- the command


def write_clip(path: Path, pictures: int) -> None:
    """Grey pictures, five a second."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=5)
        stream.width, stream.height, stream.pix_fmt = 160, 128, "yuv420p"
        for number in range(pictures):
            picture = np.full((128, 160, 3), 100 + number, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="bgr24")))
        container.mux(stream.encode())


@pytest.mark.slow
def test_clips_are_looked_at_once_and_the_page_is_written(pulled_model: Path, tmp_path: Path) -> None:
    clips, cache, page = tmp_path / "clips", tmp_path / "kept", tmp_path / "page.md"
    clips.mkdir()
    known = {"duration_s": 1.0, "right_actions": ["fall"]}
    event = {"action": "fall", "start_s": 0.2, "end_s": 0.6, "down_until_s": 1.0}
    both = [
        {"file": "a.mp4", "source": "o/r @ 1 : a", **known, "events": [event]},
        {"file": "b.mp4", "source": "o/s @ 1 : b", **known},
    ]
    (clips / "truth.yaml").write_text(yaml.safe_dump({"clips": both}))
    for name in ("a.mp4", "b.mp4"):
        write_clip(clips / name, 5)
    page.write_text("\n".join(["Before", *marks_of("benchmarks.real_actions"), "After\n"]))
    where = ["--clips", str(clips), "--cache", str(cache), "--rate", "5", "--rate", "2"]

    first = CliRunner().invoke(main, [*where, "--only", "a", "--find-only"], catch_exceptions=False)
    assert first.exit_code == 0, first.output
    assert "1 of 1: a, " in first.output
    [kept] = cache.iterdir()
    assert kept.name == "a-movenet-multipose-5.npz"
    written_ns = kept.stat().st_mtime_ns

    done = CliRunner().invoke(main, [*where, "--report", str(page), "--list"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "1 of 1: b, " in done.output
    assert "5/s  missed  fall  a.mp4  0.2 to 1.0 s, down for 0.4 s  layer: person" in done.output
    assert kept.stat().st_mtime_ns == written_ns
    text = page.read_text()
    assert "2 of 2 clips, 0.0 minutes." in text
    assert "| `fall` | 1 | 0 | 0 | " in text
    assert text.startswith("Before\n")
    assert text.endswith("After\n")

    none = CliRunner().invoke(main, [*where, "--only", "c"])
    assert (none.exit_code, "none of its clips is left to be judged" in none.output) == (1, True)
