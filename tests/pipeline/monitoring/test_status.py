"""What a run says of itself."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.monitoring.camera_states import MOST_DEPARTED, CameraNow
from camgraph.pipeline.monitoring.event_format import EventSummary, event_format
from camgraph.pipeline.monitoring.health import Health, Plight, Trouble
from camgraph.pipeline.monitoring.histogram import Histogram
from camgraph.pipeline.monitoring.reports import Heartbeat, StageStats
from camgraph.pipeline.monitoring.run_status import CameraStatus, RunStatus, StageStatus, Totals, as_json
from camgraph.pipeline.monitoring.status import FrameAges, StatusBuilder
from camgraph.pipeline.plan import ProcessPlan
from camgraph.pipeline.registry import find_stage
from camgraph.pipeline.testing import run_graph
from camgraph.tools.display.status_view import event_text

GRAPH = """
version: 1
name: quiet
cameras: {a: {frames: 1}}
stages:
  src: {use: count_source}
  out: {use: collect, from: src, with: {path: out}}
"""


def event_of(event: dict[str, Any]) -> EventSummary:
    return event_format().summary(json.dumps(event).encode())


@pytest.mark.parametrize(
    "odd",
    [
        {"data": {"people": 3}},
        {"data": {"people": [1, None, {"track_id": "x"}, {"track_id": 4}], "phase": {}, "camera": None}},
        {"time": 5, "type": 7, "data": {"action": 7}},
        {"time": None, "data": []},
    ],
)
def test_an_event_of_a_strange_form_is_shown_as_far_as_it_can_be(tmp_path: Path, odd: dict[str, Any]) -> None:
    (tmp_path / "g.yaml").write_text(GRAPH)
    builder = StatusBuilder(load_plan(tmp_path / "g.yaml"))
    event = event_of({"id": "1", "subject": "a", **odd})
    builder.note_event(event)
    status = json.loads(json.dumps(as_json(builder.status([]))))
    for shown in RunStatus.from_json(status).events:
        assert isinstance(event_text(shown), str)


class Capture:
    """The process of a source, as its reports make it look."""

    def __init__(self, plan: ProcessPlan) -> None:
        self.plan = plan
        self.state = "running"
        self.heartbeat = Heartbeat()
        self.trouble = ""
        self.ended: dict[str, tuple[str, str]] = {}
        self.frames = 0
        self.dropped = 2
        self.restarts = self.pid = self.shared_bytes = 0

    def counts(self) -> Counter[tuple[str, str]]:
        return Counter({("frames", "a"): self.frames, ("dropped.stale", "a"): self.dropped, ("skipped.rate", "a"): 7})


class Scene:
    """A builder, a camera and a clock."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        (folder / "g.yaml").write_text(GRAPH)
        self.now = time.monotonic()
        patch.setattr("camgraph.pipeline.monitoring.status.time.monotonic", lambda: self.now)
        plan = load_plan(folder / "g.yaml")
        self.builder = StatusBuilder(plan)
        self.capture = Capture(next(process for process in plan.processes if process.sources))

    def frame(self, later_s: float) -> None:
        self.now += later_s
        self.capture.frames += 1
        self.builder.note_frames(self.capture)

    def camera(self, state: str = "", why: str = "", since_s: float = 0.0, losses: int = 0) -> CameraStatus:
        known = CameraNow(state, why, since_s, losses, {"codec": "h264"})
        return self.builder.status([self.capture], {"a": known}).cameras["a"]


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(tmp_path, monkeypatch)


def test_what_the_source_says_of_its_camera_is_shown(scene: Scene) -> None:
    scene.frame(1)
    camera = scene.camera("unauthorised", "401", since_s=3.04, losses=2)
    assert (camera.state, camera.why, camera.since_s) == ("unauthorised", "401", 3.0)
    assert camera.error_id == "camera-refuses"
    assert scene.camera("live").error_id == ""
    assert (camera.losses, camera.facts) == (2, {"codec": "h264"})
    assert (camera.drops, camera.drops_by_reason, camera.skipped_by_reason) == (2, {"stale": 2}, {"rate": 7})


def test_a_process_says_what_was_dropped_in_it(scene: Scene) -> None:
    processes = scene.builder.status([scene.capture]).processes
    assert {name: process.drops for name, process in processes.items()} == {
        scene.capture.plan.name: {"a": {"stale": 2}}
    }


def test_a_camera_that_has_just_come_or_rests_is_not_stalled(scene: Scene) -> None:
    scene.now += 60
    assert scene.camera("live", since_s=60).state == "stalled"
    scene.builder.follow(replace(scene.builder.plan, camera_settings={}))
    scene.builder.follow(replace(scene.builder.plan, camera_settings={"a": {"frames": 1}}))
    assert scene.camera("live", since_s=60).state == "live"
    scene.now += 60
    assert scene.camera("live", since_s=60).state == "stalled"
    scene.builder.note_paused({"a"})
    assert scene.camera("live", since_s=60).state == "paused"
    scene.builder.note_paused(())
    assert scene.camera("live", since_s=60).state == "live"


def test_still_s_of_source_bounds_silence(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """`live` in log and events, and `stalled` in status, would be a lie of one of the two."""
    monkeypatch.setattr(find_stage("count_source"), "still_s", lambda camera: 10.0 * camera.frames)
    scene.builder.follow(replace(scene.builder.plan, camera_settings={"a": {"frames": 2}}))
    scene.now += 19.5
    assert scene.camera("live", since_s=60).state == "live"
    scene.now += 1
    assert scene.camera("live", since_s=60).state == "stalled"


def test_memory_of_departed_cameras_is_bounded(scene: Scene) -> None:
    plan = scene.builder.plan
    for n in range(MOST_DEPARTED + 50):
        name = f"c{n}"
        scene.builder.follow(replace(plan, camera_settings={name: {"frames": 1}}))
        scene.builder.note_event(event_of({"type": "x", "data": {"camera": name}}))
        scene.builder.note_ages(scene.capture.plan.name, {name: 1.0})
    status = scene.builder.status([scene.capture])
    assert list(status.cameras) == [name]
    assert len(status.actions) == MOST_DEPARTED + 1


def test_without_a_word_of_the_source_it_is_as_its_process_is(scene: Scene) -> None:
    scene.frame(1)
    assert (scene.camera().state, scene.camera().since_s) == ("running", None)
    scene.now += 6
    assert scene.camera().state == "stalled"
    scene.capture.state = "waiting"
    assert scene.camera().state == "waiting"


def test_camera_without_frames_is_stalled(scene: Scene) -> None:
    scene.frame(1)
    assert scene.camera("live", since_s=60).state == "live"
    scene.now += 5.5
    camera = scene.camera("live", since_s=65.5)
    assert (camera.state, camera.why, camera.since_s) == ("stalled", "no frame for 6 s", 5.5)
    assert scene.camera("live", since_s=0.2).state == "live", "its first frame may not be counted yet"
    scene.frame(0)
    assert scene.camera("live", since_s=66).state == "live"


def test_frames_before_a_query_are_not_new(scene: Scene) -> None:
    for _ in range(10):
        scene.frame(1)
    scene.now += 60
    assert scene.camera("live", since_s=70).state == "stalled"


@pytest.mark.parametrize(("reason", "state"), [("end", "done"), ("stopped", "stopped"), ("error", "failed")])
def test_a_camera_that_has_ended_is_nothing_else(scene: Scene, reason: str, state: str) -> None:
    scene.capture.ended["a"] = (reason, "broken")
    camera = scene.camera("lost", "cable", since_s=9)
    assert (camera.state, camera.why, camera.error) == (state, "", "broken")


def test_a_camera_that_comes_back_is_no_incident_of_its_own(scene: Scene) -> None:
    for kind, phase in (("lost", "start"), ("back", "end")):
        event = {"type": f"camgraph.camera.{kind}", "subject": "a", "data": {"camera": "a", "phase": phase}}
        scene.builder.note_event(event_of(event))
    assert scene.camera().events == 1


def test_the_totals_of_a_run_never_fall_when_a_camera_goes(scene: Scene) -> None:
    for phase in ("start", "update", "end"):
        scene.builder.note_event(event_of({"type": "x", "data": {"camera": "a", "phase": phase}}))
    scene.frame(1)
    before = scene.builder.status([scene.capture]).totals
    assert before == Totals(frames=1, drops=2, events=1, committed=3)
    scene.builder.follow(replace(scene.builder.plan, camera_settings={}))
    assert scene.builder.status([], departed=scene.capture.counts()).totals == before


def test_readded_camera_starts_its_rate_anew(scene: Scene) -> None:
    scene.capture.frames = 10_000
    plan = scene.builder.plan
    scene.builder.follow(replace(plan, camera_settings={}))
    for _ in range(2):
        scene.now += 1
        scene.builder.status([scene.capture])
    scene.builder.follow(plan)
    for _ in range(4):
        scene.now += 0.25
        assert scene.builder.status([scene.capture]).cameras["a"].fps < 10


def test_waiting_camera_is_starting(scene: Scene) -> None:
    scene.builder.note_paused((), waiting=["a"])
    scene.now += 60
    assert scene.camera().state == "starting"
    scene.capture.state = "waiting"
    assert scene.camera().state == "waiting"
    scene.capture.state = "running"
    scene.builder.note_paused((), waiting=["a"])
    scene.builder.note_paused(())
    assert scene.camera().state == "running"
    scene.now += 6
    assert scene.camera().state == "stalled"


# --- rates, and what goes through


def test_a_rate_is_that_of_now_however_long_nobody_has_asked(scene: Scene) -> None:
    """Without a table nobody asks for hours: the first answer must not be an average of all of them, nor nothing."""
    scene.builder.enter("running")
    for _ in range(600):
        scene.frame(0.1)
        scene.builder.measure([scene.capture])
    assert scene.camera().fps == pytest.approx(10, abs=1)
    for _ in range(30):
        scene.now += 0.1
        scene.builder.measure([scene.capture])
    assert scene.camera().fps == 0


@pytest.mark.parametrize("state", ["lost", "stalled", "unauthorised", "gone"])
def test_a_camera_that_is_away_has_no_rate(scene: Scene, state: str) -> None:
    scene.builder.measure([scene.capture])
    for _ in range(10):
        scene.frame(0.1)
        scene.builder.measure([scene.capture])
    assert scene.camera("live", since_s=1).fps > 0
    assert scene.camera(state, "cable", since_s=0.1).fps == 0


def test_a_stage_is_as_busy_as_it_is_now(scene: Scene) -> None:
    """Not as on average since its start: an idle night would hide a busy morning, and a busy day its end."""

    def busy(now_ns: int) -> float:
        scene.capture.heartbeat = Heartbeat(stages={"out": StageStats(items=1, busy_ns=now_ns)})
        return float(scene.builder.status([scene.capture]).stages["out"].busy)

    busy(0)
    scene.now += 600
    busy(0)
    scene.now += 10
    assert busy(9_000_000_000) == pytest.approx(0.9)
    scene.now += 10
    assert busy(9_000_000_000) == 0


def status_of(scene: Scene, known: CameraNow | None = None, **more: Any) -> RunStatus:
    return scene.builder.status([scene.capture], {"a": known} if known else {}, **more)


def test_healthy_means_that_a_frame_went_through_lately(scene: Scene) -> None:
    scene.builder.enter("running")
    for _ in range(100):
        scene.frame(0.1)
        scene.builder.note_ages("out.0", {"a": 50.0})
        scene.builder.measure([scene.capture])
    assert status_of(scene).health == Health("healthy", "1 camera, 10.0 frames/s")
    assert status_of(scene).cameras["a"].through_s == 0
    dropped = 0
    patched = scene.capture.counts

    def counts() -> Counter[tuple[str, str]]:
        return patched() + Counter({("dropped.queue_full", "a"): dropped})

    scene.capture.counts = counts  # type: ignore[method-assign]
    for _ in range(200):
        scene.frame(0.1)
        dropped += 1
        scene.builder.measure([scene.capture])
    status = status_of(scene, CameraNow("live", "", 30.0))
    assert status.cameras["a"].state == "live"
    assert status.cameras["a"].through_s == 20
    assert status.health.level == "down"
    assert "a live, but no frame has gone through for " in status.health.reason


def test_frames_filtered_by_graph_are_not_missed(scene: Scene) -> None:
    """Behind a stage that passes on few of them nothing arrives for long, and nothing is dropped."""
    scene.builder.enter("running")
    for _ in range(300):
        scene.frame(0.1)
        scene.builder.measure([scene.capture])
    assert status_of(scene).health.level == "healthy"


def test_behind_a_process_that_does_nothing_frames_are_missed(scene: Scene) -> None:
    """What waits there is not counted as dropped, and is not left out on purpose either."""
    scene.builder.enter("running")
    for _ in range(300):
        scene.frame(0.1)
        scene.builder.measure([scene.capture])
    [reader] = [one for one in scene.builder.plan.processes if one.incoming]
    silent = Capture(reader)
    plights = {reader.name: Plight("gives no sign of life", 6.0)}
    status = scene.builder.status([scene.capture, silent], plights=plights)
    assert status.health.level == "down"
    status = scene.builder.status([scene.capture, silent], plights={"src.a": Plight("is being opened", 1.0)})
    assert status.health.level == "degraded", "the process of a source has nothing to do with it"


def test_a_file_that_only_waits_for_the_model_is_not_stalled(scene: Scene) -> None:
    scene.builder.enter("running")
    scene.frame(1)
    scene.now += 60
    assert status_of(scene).cameras["a"].state == "stalled", "it is the source that brings nothing"
    scene.capture.heartbeat = Heartbeat(in_flight=3)
    plight = Plight("has died of: signal 9; it is being opened again", 40.0)
    camera = status_of(scene, plights={"infer.0": plight}).cameras["a"]
    assert (camera.state, camera.since_s) == ("waiting", 60.0)
    assert camera.why == "waits for infer.0, which has died of: signal 9; it is being opened again"
    scene.capture.heartbeat = Heartbeat(in_flight=3, troubles=[("log", "", "the disk is full")])
    assert status_of(scene).cameras["a"].why == "waits for log: the disk is full"
    scene.capture.heartbeat = Heartbeat(in_flight=3, source_silent_since_ns=1)
    assert status_of(scene).cameras["a"].state == "stalled"


def test_a_live_camera_waits_for_nobody(scene: Scene) -> None:
    scene.builder.follow(replace(scene.builder.plan, live_cameras=("a",)))
    scene.capture.heartbeat = Heartbeat(in_flight=3)
    scene.frame(1)
    scene.now += 60
    assert scene.camera("live", since_s=60).state == "stalled"


def test_troubles_are_told_by_name_and_since_when(scene: Scene) -> None:
    full = ("log", "", "events.jsonl: No space left on device")
    scene.capture.heartbeat = Heartbeat(troubles=[full, ("videos", "a", "a.mp4: No space left on device")])
    scene.builder.measure([scene.capture])
    scene.now += 90
    scene.builder.measure([scene.capture])
    assert status_of(scene).troubles == (
        Trouble("log", "events.jsonl: No space left on device", 90.0),
        Trouble("videos", "camera a: a.mp4: No space left on device", 90.0),
    )
    scene.capture.heartbeat = Heartbeat()
    assert status_of(scene).troubles == ()
    scene.capture.heartbeat = Heartbeat(troubles=[full])
    assert status_of(scene).troubles[0].since_s == 0


def test_processes_in_the_same_plight_are_told_of_together(scene: Scene) -> None:
    plights = {f"capture.{name}": Plight("is being opened", float(n), opening=True) for n, name in enumerate("abcdef")}
    [trouble] = status_of(scene, plights=plights).troubles
    named = "capture.a, capture.b, capture.c, capture.d and 2 more"
    assert trouble == Trouble(named, "is being opened", 5.0)


def test_what_limits_a_run_is_said_while_it_works_and_at_its_end(scene: Scene) -> None:
    scene.builder.enter("running")

    def pass_by(seconds: int) -> None:
        for _ in range(seconds):
            scene.frame(1)
            busy_ns = int(scene.capture.frames * 0.95e9)
            scene.capture.heartbeat = Heartbeat(stages={"out": StageStats(items=1, busy_ns=busy_ns)}, cpu_s=1.0)
            scene.builder.measure([scene.capture])

    pass_by(20)
    assert status_of(scene).bottleneck.stage == "out"
    assert status_of(scene).bottleneck.text.startswith("out is busy 95% of the time on 1 of ")
    assert status_of(scene, plights={"out.0": Plight("is being opened", 1.0)}).bottleneck is None
    heartbeat = scene.capture.heartbeat
    scene.capture.heartbeat = heartbeat.model_copy(update={"troubles": [("log", "", "the disk is full")]})
    assert status_of(scene).bottleneck is None, "the trouble is what limits it"
    scene.capture.heartbeat = heartbeat
    scene.builder.enter("stopping")
    scene.now += 60
    assert status_of(scene).bottleneck is None
    scene.builder.enter("over")
    assert status_of(scene).bottleneck.stage == "out"


FAR_TOO_OLD_MS = 5000.0

CHAIN = """
version: 1
name: {name}
processes: {processes}
cameras:
  a: {{frames: 30, pace_ms: 25, live: true}}
  b: {{frames: 30, pace_ms: 25, live: true}}
stages:
  src: {{use: count_source}}
"""
EVENTS = """
  model: {use: null_model, from: src, with: {cost_ms: 30}}
  emit: {use: emit, from: model, with: {every: 7}}
  log: {use: collect_events, from: events, with: {path: events}}
"""
VIDEO_BESIDE = """
  quick: {use: emit, from: src, with: {every: 7}}
  log: {use: collect_events, from: quick, with: {path: events}}
  model: {use: null_model, from: src, with: {cost_ms: 30}}
  video: {use: pair, from: {left: src, right: model}}
  out: {use: collect, from: video, with: {path: numbers}}
"""
IN_ITS_SOURCE = """
  out: {use: collect, from: src, with: {path: numbers, cost_ms: 30}}
"""


@pytest.mark.parametrize("processes", ["separate", "compact", "one"])
@pytest.mark.parametrize(
    "stages", [EVENTS, VIDEO_BESIDE, IN_ITS_SOURCE], ids=["events", "video beside", "in its source"]
)
def test_age_is_that_of_the_slowest_last_stage(tmp_path: Path, processes: str, stages: str) -> None:
    path = tmp_path / "g.yaml"
    path.write_text(CHAIN.format(name=f"f{os.getpid()}", processes=processes) + stages)
    outcome, status = run_graph(load_plan(path))
    assert (outcome.status, outcome.problems) == (0, [])
    for camera in "ab":
        age_ms = status["cameras"][camera]["age_ms"]
        assert age_ms is not None
        assert 30 <= age_ms < FAR_TOO_OLD_MS


@pytest.mark.parametrize(
    ("processes", "stages", "ends"),
    [
        ("separate", EVENTS, {"emit"}),
        ("separate", VIDEO_BESIDE, {"quick", "out"}),
        ("separate", IN_ITS_SOURCE, {"out"}),
        ("compact", IN_ITS_SOURCE, {"out"}),
        ("compact", VIDEO_BESIDE, {"out"}),
    ],
)
def test_age_ends_before_the_outbox(tmp_path: Path, processes: str, stages: str, ends: set[str]) -> None:
    """Few frames make an event: what only events reach says nothing of the frames."""
    path = tmp_path / "g.yaml"
    path.write_text(CHAIN.format(name="ends", processes=processes) + stages)
    ending = [process for process in load_plan(path).processes if process.ends_frames]
    assert {stage.name for process in ending for stage in process.stages} >= ends
    assert {edge.type for process in ending for edge in process.outgoing} <= {"event"}
    assert not any(stage.use in ("outbox", "collect_events") for process in ending for stage in process.stages)


def test_of_several_places_where_frames_end_the_slowest_counts() -> None:
    ages = FrameAges()
    ages.note("rules", {"a": 40.0, "b": 50.04}, 10.0)
    ages.note("video", {"a": 90.0}, 10.1)
    assert (ages.of("a", 11.0, 5.0), ages.of("b", 11.0, 5.0), ages.of("c", 11.0, 5.0)) == (90.0, 50.0, None)
    ages.note("video", {"a": 30.0}, 11.1)
    assert ages.of("a", 11.2, 5.0) == 40.0


def test_what_has_not_ended_for_long_has_no_age() -> None:
    """A model that hangs leaves no fresh-looking figure behind."""
    ages = FrameAges()
    ages.note("rules", {"a": 40.0}, 10.0)
    ages.note("video", {"a": 90.0}, 12.0)
    assert [ages.of("a", now_s, 5.0) for now_s in (15.0, 15.1, 17.0, 17.1)] == [90.0, 90.0, 90.0, None]
    ages.note("rules", {"a": 35.0}, 17.1)
    assert ages.of("a", 17.2, 5.0) == 35.0


def test_cameras_that_are_gone_are_forgotten() -> None:
    ages = FrameAges()
    ages.note("rules", {"a": 40.0, "b": 50.0}, 10.0)
    ages.keep(["b"])
    assert (ages.of("a", 10.0, 5.0), ages.of("b", 10.0, 5.0)) == (None, 50.0)


def test_durations_are_sums_without_those_of_removed_cameras(scene: Scene) -> None:
    def counted(kind: str) -> dict[str, int]:
        durations = scene.builder.status([scene.capture]).durations
        return {name: sum(one.counts) for name, one in getattr(durations, kind).items()}

    scene.capture.heartbeat = Heartbeat(stages={"out": StageStats()})
    assert (counted("stages"), counted("cameras")) == ({"out": 0}, {"a": 0})
    one = Histogram()
    one.add(1_000_000)
    for _ in range(2):
        scene.builder.note_durations({"out": one, "nobody": one}, {"a": one, "nobody": one})
    assert (counted("stages"), counted("cameras")) == ({"out": 2}, {"a": 2})
    scene.builder.follow(replace(scene.builder.plan, camera_settings={"b": {"frames": 1}}))
    assert (counted("stages"), counted("cameras")) == ({"out": 2}, {"b": 0})


def test_a_worker_that_leaves_changes_no_sum_and_no_rate(scene: Scene) -> None:
    """Prometheus reads a sum that falls as one that began anew, and so did the rates of the status."""
    workers = [Capture(replace(scene.capture.plan, name=f"out.{n}")) for n in range(2)]

    def stage(here: Sequence[Capture], items: int) -> StageStatus:
        scene.now += 1
        for worker in here:
            worker.heartbeat = Heartbeat(stages={"out": StageStats(items=items, busy_ns=items * 1_000_000)})
        return scene.builder.status(here).stages["out"]

    for second in range(5):
        found = stage(workers, 1000 + 10 * second)
    assert (found.items, found.fps) == (2080, 20)
    for second in range(5, 10):
        found = stage(workers[:1], 1000 + 10 * second)
        assert found.fps <= 20
        assert found.busy <= 0.0201
    assert (found.items, found.fps) == (2080 + 50, 10)
    assert stage(workers, 3).items == 2130 + 6, "both have come anew"


def test_drops_of_a_worker_that_has_gone_are_no_drops_of_now(scene: Scene) -> None:
    worker = Capture(replace(scene.capture.plan, name="out.1"))
    scene.builder.enter("running")
    scene.capture.dropped, worker.dropped = 3000, 5000

    def look(here: Sequence[Capture], departed: Counter[tuple[str, str]]) -> None:
        scene.frame(0.5)
        scene.builder.note_ages("out.0", {"a": 50.0})
        scene.builder.measure(here, departed)

    for _ in range(10):
        look([scene.capture, worker], Counter())
    for _ in range(10):
        look([scene.capture], worker.counts())
    status = scene.builder.status([scene.capture], departed=worker.counts())
    assert status.health == Health("healthy", "1 camera, 2.0 frames/s")


def test_what_the_processes_of_a_stage_tell_is_shown_together(tmp_path: Path) -> None:
    (tmp_path / "g.yaml").write_text(GRAPH)
    plan = load_plan(tmp_path / "g.yaml")
    [process] = [process for process in plan.processes if any(stage.name == "out" for stage in process.stages)]
    two = [Capture(process), Capture(process)]
    for number, one in enumerate(two):
        one.heartbeat = Heartbeat(stage_facts={"out": {"provider": "CUDA", "device": number}})
    stages = StatusBuilder(plan).status(two).stages
    assert stages["out"].facts == {"provider": "CUDA", "device": "0, 1"}
