"""Which stage limits a run, and which setting would help."""

from __future__ import annotations

from dataclasses import replace

import pytest

from camgraph.pipeline.monitoring.bottleneck import SHORTEST_S, Limit, Load, ProcessLoad, StageLoad, limit_of

INFER = StageLoad("infer", 0.99, more="threads", lighter="a lighter model")
TRACKS = StageLoad("tracks", 0.05, more="workers")
ALONE = Load(10.0, (TRACKS, INFER), (ProcessLoad("infer.0", 1.0), ProcessLoad("capture.a", 0.2, reads=True)), cores=2)
FULL = replace(ALONE, stages=(replace(INFER, busy=1.98, threads=2),), processes=(ProcessLoad("infer.0", 1.9),))


def found(load: Load) -> Limit:
    limit = limit_of(load)
    assert limit
    return limit


def test_stage_on_one_core_wants_threads() -> None:
    limit = found(ALONE)
    assert (limit.stage, limit.setting) == ("infer", "threads: 2")
    assert limit.text == "infer is busy 99% of the time on 1 of 2 cores: `threads: 2` would help"


def test_as_many_threads_as_cores_are_free() -> None:
    many = replace(ALONE, cores=8)
    assert found(many).setting == "threads: 7"
    two_workers = replace(many, stages=(replace(INFER, busy=1.9, processes=2),))
    assert found(two_workers).setting == "threads: 4"


def test_thread_unsafe_stage_wants_workers() -> None:
    busy = replace(TRACKS, busy=0.97)
    assert found(replace(ALONE, stages=(busy,))).setting == "workers: 2"
    alone = found(replace(ALONE, stages=(replace(busy, more=""),)))
    assert (alone.setting, alone.text) == (
        "",
        "tracks is busy 97% of the time on 1 of 2 cores, and cannot use more: `max_fps` would help",
    )


def test_where_the_processor_is_full_only_less_work_helps() -> None:
    limit = found(FULL)
    assert (limit.stage, limit.setting) == ("infer", "")
    message = "infer is busy 99% of the time on 2 of 2 cores: the processor is full: a lighter model would help"
    assert limit.text == message


def test_other_programs_are_blamed_for_full_processor() -> None:
    limit = found(replace(FULL, processes=(ProcessLoad("infer.0", 0.4),), others=1.6))
    assert limit.setting == ""
    assert limit.text.endswith(
        "the processor is full, other programs take 1.6 of 2 cores: ending those, or a lighter model would help"
    )


def test_full_processor_shows_shares() -> None:
    stages = (replace(INFER, busy=0.7), replace(TRACKS, busy=0.5))
    processes = (ProcessLoad("infer.0", 0.7), ProcessLoad("capture.a", 0.7, reads=True), ProcessLoad("tracks.0", 0.5))
    limit = found(replace(ALONE, stages=stages, processes=processes))
    assert limit.text == (
        "the processor is full (cores: infer.0 0.7, capture.a 0.7, tracks.0 0.5): a lighter model would help"
    )


def test_tiny_own_shares_are_left_out() -> None:
    load = replace(ALONE, stages=(replace(TRACKS, busy=0.4),), processes=(ProcessLoad("infer.0", 0.01),), others=1.9)
    message = "the processor is full, other programs take 1.9 of 2 cores: ending those, or `max_fps` would help"
    assert found(load).text == message


def test_reading_one_camera_cannot_be_shared_out() -> None:
    load = replace(ALONE, cores=4, stages=(TRACKS,), processes=(ProcessLoad("capture.a", 0.97, reads=True),))
    assert found(load).stage == "capture.a"


def test_stages_that_take_turns_in_one_process_want_processes() -> None:
    load = replace(ALONE, alone=True, stages=(replace(INFER, busy=0.6), replace(TRACKS, busy=0.35)))
    assert found(load).setting == "processes: separate"
    assert found(replace(load, processes=(ProcessLoad("all.0", 1.9),))).setting == ""


@pytest.mark.parametrize(
    "load",
    [
        replace(ALONE, seconds=SHORTEST_S / 2),
        replace(ALONE, dropped=0.01),
        replace(ALONE, stages=(), processes=()),
        replace(ALONE, stages=(replace(INFER, busy=0.4),), processes=(ProcessLoad("infer.0", 0.4),)),
    ],
    ids=["too short", "live, and keeps up", "nothing known", "nobody is busy"],
)
def test_where_nothing_limits_nothing_is_said(load: Load) -> None:
    assert limit_of(load) is None


def test_live_cameras_are_limited_where_frames_are_dropped() -> None:
    assert limit_of(replace(ALONE, dropped=0.25)) == found(ALONE)
