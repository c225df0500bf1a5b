"""What others noticed of a fault: their rates, what is accounted for, and who was lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from camgraph.tools.lab.proofs.live_faults.rates import (
    Base,
    base_of,
    hurt,
    others_of,
    passed_over,
    percent,
    window,
    witnesses,
)
from camgraph.tools.lab.proofs.live_faults.record import CameraStatus, Record, StateReport
from camgraph.tools.lab.proofs.live_faults.trial import Result
from camgraph.tools.lab.proofs.trials.frames import Seen
from camgraph.tools.measuring.load import Load
from camgraph.tools.measuring.processor_time import CpuTime

QUIET = Load(0.9, 0.1, 2)


def frames(begin_s: float, end_s: float, fps: float = 10) -> list[Seen]:
    return [Seen(begin_s + n / fps + 0.2, begin_s + n / fps, 0, n) for n in range(round((end_s - begin_s) * fps))]


def work(other: float) -> list[CpuTime]:
    """Of a machine on which other processes take so many cores, and we take one."""
    return [CpuTime(float(s), (1 + other) * s, float(s)) for s in range(100)]


def test_all_frames_are_all_however_the_window_lies() -> None:
    for shift in (0.0, 0.03, 0.0999):
        assert percent(frames(0, 100), 20 + shift, 31.7 + shift, 10) == 100


def test_a_gap_is_seen() -> None:
    came = [*frames(0, 25), *frames(26, 100)]
    assert percent(came, 20, 30, 10) == pytest.approx(90, abs=1)


def test_wrong_clock_does_not_affect_later_windows() -> None:
    wrong = [replace(seen, filmed_s=seen.filmed_s + 3600) for seen in frames(10, 15)]
    assert percent([*frames(0, 10), *wrong, *frames(15, 100)], 40, 50, 10) == 100


def test_a_window_is_long_and_begins_when_all_were_well() -> None:
    assert window(Result("cut", "a", 50, 52), 0) == (46, 56)
    assert window(Result("cut", "a", 50, 52), 49.5) == (49.5, 59.5)
    assert window(Result("stall", "a", 50, 70), 0) == (49, 70)


@pytest.fixture
def record() -> Record:
    """Four cameras: a and b send nothing any more, c had a second without frames, and d has all."""
    made = Record(0.0)
    made.frames.update({"a": [], "b": [], "c": frames(0, 49) + frames(50, 100), "d": frames(0, 100)})
    for name in "abcd":
        made.history[name] = [CameraStatus(at, drops={"queue_full": n}) for at, n in ((40.0, 0), (60.0, 7), (90.0, 7))]
    made.work = work(0.1)
    return made


RESULTS = [Result("cut", "a", 50, 52), Result("cut", "b", 54, 60), Result("cut", "c", 80, 82)]
BASE = Base(dict.fromkeys("abcd", 10.0), QUIET)


def test_the_worst_off_of_those_to_whom_nothing_was_done_counts(record: Record) -> None:
    cameras = list(record.frames)
    assert witnesses((46, 56), RESULTS, cameras) == {"c", "d"}
    others = others_of(RESULTS[0], RESULTS, record, BASE, cameras=cameras, fps=10)
    assert others.rate == pytest.approx(90, abs=1)
    assert others.accounted == pytest.approx(97, abs=1), "seven were passed over, and that is said"
    assert others.load.other == pytest.approx(0.1)
    assert others.not_judged == ""
    gone = others_of(RESULTS[2], RESULTS, record, BASE, cameras=cameras, fps=10)
    assert gone.rate == 0, "a and b sent nothing any more, and nothing was done to them"


def test_a_rate_is_held_against_the_cameras_own_rate_before(record: Record) -> None:
    slower = Base({"c": 9.0, "d": 10.0}, QUIET)
    others = others_of(RESULTS[0], RESULTS, record, slower, cameras="cd", fps=10)
    assert others.rate == 100
    measured = base_of(record, ["c", "d"], 45, 55)
    assert measured.fps == {"c": pytest.approx(9.0, abs=0.1), "d": pytest.approx(10.0, abs=0.1)}
    assert measured.load.other == pytest.approx(0.1)


def test_rate_is_not_judged_under_foreign_load(record: Record) -> None:
    record.work = work(0.9)
    others = others_of(RESULTS[0], RESULTS, record, BASE, cameras="cd", fps=10)
    assert others.not_judged == f"other processes took 0.90 of {BASE.load.cores} cores"
    record.work = work(0.1)
    busy = Base(BASE.fps, Load(0.9, 0.9, 2))
    assert others_of(RESULTS[0], RESULTS, record, busy, cameras="cd", fps=10).not_judged


def test_what_was_passed_over_is_what_was_counted_meanwhile() -> None:
    looks = [CameraStatus(second, drops={"queue_full": n}) for second, n in ((1.0, 2), (2.0, 3), (3.0, 8), (4.0, 9))]
    assert passed_over(looks, 1.5, 2.5) == 6
    assert passed_over(looks, 0.5, 1.0) == 2
    assert passed_over(looks, 3.5, 9.0) == 1


def test_untouched_camera_that_is_lost_was_hurt() -> None:
    record = Record(0.0)
    record.well_s = 5.0
    own = [(51.0, "a", "lost"), (51.5, "a", "live"), (52.5, "a", "stalled")]
    early = [(3.0, "b", "lost"), (8.0, "absent", "lost"), (54.0, "b", "live")]
    record.reported = [StateReport(at, camera, "log", state) for at, camera, state in (*own, *early)]
    results = [Result("cut", "a", 50, 52), Result("absent", "absent", 20, 22, at_start=True)]
    assert hurt(results, record, ["a", "b", "absent"]) == []
    record.reported += [StateReport(51.0, "b", "log", "lost"), StateReport(70.0, "a", "log", "stalled")]
    assert hurt(results, record, ["a", "b", "absent"]) == [
        "a was stalled while nothing was done to it", "b was lost while nothing was done to it",
    ]  # fmt: skip
