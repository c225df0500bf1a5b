"""The way from the light to the event, in parts: arithmetic on stamps made by hand, and a short run."""

from __future__ import annotations

from collections import Counter

import pytest
from click.testing import CliRunner

from camgraph.pipeline.monitoring.run_status import RunStatus, StageStatus
from camgraph.tools.lab.benchmarks import latency as bench_latency
from camgraph.tools.lab.benchmarks.latency import received_event
from camgraph.tools.lab.benchmarks.latency_figures import PARTS, FramePath, ReceivedEvent, nearest, paths
from camgraph.tools.lab.camera_run import CameraSet, Inference, Snapshot, Window, read_inferences
from camgraph.tools.measuring.processor_time import CpuTime
from camgraph.tools.scenes.simulator.accounts import FrameSent

MS = 1_000_000
DAY = 1_700_000_000_000 * MS
LOAD = ["--load", "50", "--capacity", "10", "--fps", "5"]
SMALL = ["--picture", "320", "240", "--size", "192", "128"]
SUBJECT = bench_latency.Subject(10.0, (640, 360), None, "tcp", "", (320, 192), "separate", 1.0)


def sent(captured_ms: int) -> FrameSent:
    return FrameSent(0, True, captured_ms * MS, (captured_ms + 1) * MS, DAY + captured_ms * MS, 1)


def event_of(seq: int, wall_ms: int, clock: str = "ntp") -> ReceivedEvent:
    return ReceivedEvent(("a", 0, seq), DAY + wall_ms * MS, clock, (wall_ms + 260) * MS, (wall_ms + 290) * MS)


def test_a_way_is_split_at_its_stamps() -> None:
    ran = [Inference(350 * MS, 380 * MS, "a", 0, 7, 301 * MS), Inference(450 * MS, 480 * MS, "a", 0, 8, 401 * MS)]
    [way] = paths([event_of(7, 200)], ran, {"a": [sent(300), sent(200), sent(100)]})
    assert way.parts_ms == (1, 100, 49, 30, 80, 30)
    assert len(way.parts_ms) == len(PARTS)
    assert way.whole_ms == sum(way.parts_ms) == 290
    assert (way.inference_ms, way.from_capture_ms, way.added_ms, way.keyframe) == (30, 159, 129, True)


def test_unmatched_events_have_no_path() -> None:
    ran = [Inference(350 * MS, 380 * MS, "a", 0, 7, 301 * MS)]
    logs = {"a": [sent(100), sent(200)]}
    assert paths([event_of(7, 150)], ran, logs) == []
    assert paths([event_of(7, 200, "wall")], ran, logs) == []
    assert paths([event_of(8, 200)], ran, logs) == []
    assert paths([event_of(7, 200)], ran, {}) == []


def test_nearest_frame_is_within_two_milliseconds() -> None:
    frames = [sent(100), sent(200)]
    for off, found in ((0, 200), (2, 200), (-2, 200), (3, None), (-50, None), (-100, 100), (-103, None)):
        near = nearest(frames, DAY + (200 + off) * MS)
        assert (near.caught_ns // MS if near else None) == found
    assert nearest([], DAY) is None


def test_ages_and_bound_are_of_frames_in_window() -> None:
    lines = ["900000000 910000000 a 0 0 850000000", "1200000000 1230000000 a 0 1 1150000000"]
    status = RunStatus(stages={"prepare": StageStatus(latency_ms_p99=4.0)})
    looks = [Snapshot(at, status, 0, 0, CpuTime(0, 0, 0), 0) for at in (1_000_000_000, 3_000_000_000)]
    window = Window(looks[0], looks[1], read_inferences("\n".join(reversed(lines))))
    assert [one.seq for one in window.ran] == [0, 1]
    assert [(one.key, one.age_ms) for one in window.inferred] == [(("a", 0, 1), 50.0)]
    assert bench_latency.bound_ms(10, window) == 100 + 4 + 30 + 20


def test_what_the_machine_and_the_stages_took_is_told_apart() -> None:
    def look(at_ns: int, capture_s: float, farm_s: float, machine_s: float) -> Snapshot:
        processes = {"capture.a": {"cpu_s": capture_s}, "capture.b": {"cpu_s": 2 * capture_s}, "end.0": {"cpu_s": 0.0}}
        camera = {"frames": round(100 * farm_s), "drops_by_reason": {"stale": round(10 * farm_s)}}
        cpu = CpuTime(at_ns / 1e9, machine_s, 3 * capture_s + farm_s)
        status = RunStatus.from_json({"processes": processes, "cameras": {"a": camera}})
        return Snapshot(at_ns, status, 1.0, farm_s, cpu, 0)

    window = Window(look(0, 1.0, 1.0, 100.0), look(2_000_000_000, 2.0, 1.5, 104.5), [])
    assert window.cores_by_stage == {"capture": 1.5, "end": 0.0, "supervisor": 0.0}
    assert (window.simulator_cores, window.other_cores) == (0.25, 0.5)
    assert (window.frames, window.grown("a", "drops_by_reason")) == ({"a": 50}, {"stale": 5})


def test_keyframes_and_other_frames_have_columns_of_their_own() -> None:
    ways = [
        FramePath("a", 0, 1 * MS, 2 * MS, (2 + wait) * MS, (102 + wait) * MS, (103 + wait) * MS, (105 + wait) * MS, key)
        for wait, key in ((20, True), (5, False), (7, False))
    ]
    films = CameraSet(1, 8.0, (640, 360), None)
    row = bench_latency.Row(0.5, films, 8.0, ways, 0, [5.0], 200.0, 0.0, 3, Counter(), 0.0)
    heads = bench_latency.report(SUBJECT, 16.0, [row]).splitlines()
    names, values = ([cell.strip() for cell in line.split("|")[1:-1]] for line in (heads[-3], heads[-1]))
    found = dict(zip(names, values, strict=True))
    assert found["captured to event, without inference: keyframes"] == "21, 21"
    assert found["the same: other frames"] == "8, 8"
    assert found["captured to event / inference, p50"] == "1.08"


def test_the_number_of_cameras_makes_the_load() -> None:
    for rate, cameras, fps in ((25, 2, 12.5), (3, 1, 3), (61, 6, 61 / 6)):
        films = SUBJECT.films(rate)
        assert (films.cameras, films.fps) == (cameras, pytest.approx(fps))
    assert CameraSet(2, 5.0, (640, 360), None).clip_settings.gop == 5


def test_capacity_is_sought_just_above_saturation() -> None:
    guesses = {(50, 50): 100, (50, 45): 100, (50, 35): None, (50, 20): 31.5, (50, 0): 1.575}
    for (filmed, inferred), guess in guesses.items():
        assert bench_latency.next_guess(filmed, inferred) == (guess and pytest.approx(guess))


def test_an_event_of_every_frame_is_read_back() -> None:
    body = {"id": "a.0.7", "camera": "a", "epoch": 0, "seq": 7, "wall_ns": 5, "clock": "ntp", "made_ns": 6}
    assert received_event(body, 9) == ReceivedEvent(("a", 0, 7), 5, "ntp", 6, 9)


@pytest.mark.usefixtures("pulled_model", "short_clip")
def test_every_event_of_a_short_run_is_traced_to_its_picture() -> None:
    ran = CliRunner().invoke(
        bench_latency.main,
        [*LOAD, *SMALL, "--seconds", "2", "--processes", "compact"],
        catch_exceptions=False,
    )
    assert ran.exit_code == 0
    figures, parts = (line.split("|") for line in ran.output.splitlines() if line.startswith("| 50%"))
    assert figures[2].strip() == "1 x 5.0 fps"
    unmatched, _, events = figures[10].strip().partition(" of ")
    assert int(unmatched) == 0 < int(events)
    assert len(parts) == 2 + 2 + len(PARTS) + 3
    assert float(parts[-4]) > 1
    assert all(float(cell.partition(",")[0]) >= 0 for cell in parts[-3:-1]), "a keyframe each second, and others"
    # FFmpeg's parser holds a picture for one interval, and the event comes after it.
    held, whole = float(parts[4].partition(",")[0]), float(figures[4].partition(",")[0])
    assert 180 <= held < whole
