"""The status of a run as JSON: keys, their order and values stay as programs know them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.monitoring import load_meter
from camgraph.pipeline.monitoring.camera_states import CameraNow
from camgraph.pipeline.monitoring.event_format import event_format
from camgraph.pipeline.monitoring.health import Plight
from camgraph.pipeline.monitoring.histogram import Histogram
from camgraph.pipeline.monitoring.reports import Heartbeat, SinkBacklog, StageStats
from camgraph.pipeline.monitoring.run_status import CameraStatus, ProgressStatus, RunStatus, Totals, as_json
from camgraph.pipeline.monitoring.status import StatusBuilder
from camgraph.pipeline.plan import ProcessPlan

RECORDED = Path(__file__).with_name("recorded_status.txt")
GRAPH = """
version: 1
name: lobby
cameras:
  front: {frames: 9, live: true}
  yard: {frames: 9, live: true}
  gate: {frames: 9, live: true}
stages:
  src: {use: count_source}
  emit: {use: emit, from: src}
  log: {use: collect_events, from: emit, with: {path: out}}
"""


class Reported:
    """A process, as its reports make it look."""

    trouble = ""
    shared_bytes = pid = 0
    state = "running"

    def __init__(self, plan: ProcessPlan, heartbeat: Heartbeat, counts: dict[tuple[str, str], int]) -> None:
        self.plan = plan
        self.heartbeat = heartbeat
        self.ended: dict[str, tuple[str, str]] = {}
        self.restarts = 0
        self._counts = counts

    def counts(self) -> Counter[tuple[str, str]]:
        return Counter(self._counts)


class Scene:
    """A run with a camera that works, one that is lost, and one that has failed; a stage that is in trouble."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        patch.setattr("camgraph.pipeline.monitoring.status.time.monotonic", lambda: self.now)
        patch.setattr(load_meter, "usable_cores", lambda: 4)
        patch.setattr(load_meter, "busy_s", lambda: self.now)
        (folder / "g.yaml").write_text(GRAPH)
        plan = load_plan(folder / "g.yaml")
        self.builder = StatusBuilder(plan)
        self.processes = [self._process(one, seconds=0) for one in plan.processes]

    def _process(self, plan: ProcessPlan, seconds: int) -> Reported:
        if plan.sources:
            [camera] = plan.cameras
            counts = {("frames", camera): 10 * seconds, ("dropped.stale", camera): seconds, ("skipped.rate", camera): 7}
            found = Reported(plan, Heartbeat(cpu_s=0.25 * seconds, in_flight=2, slots=3), counts)
            if camera == "gate":
                found.ended["gate"] = ("error", "no such file")
            return found
        names = [stage.name for stage in plan.stages]
        stats = StageStats(
            items=20 * seconds, busy_ns=9 * 10**8 * seconds, batch=2.5, latency_ms_p50=3.25, latency_ms_p99=8
        )
        heartbeat = Heartbeat(
            stages=dict.fromkeys(names, stats),
            files=["out"],
            cpu_s=1 / 3,
            queue=4,
            blocked_on="log: the disk is full" if "log" in names else "",
            troubles=[("log", "front", "the disk is full")] if "log" in names else [],
            stage_facts={"emit": {"provider": "CPU", "threads": 2, "load": 0.5}} if "emit" in names else {},
            counters={"front": {"visitors": {"inside": 3, "leftward": 2}}} if "emit" in names else {},
            outbox={"log": SinkBacklog(waiting=3, oldest_s=4.04, dead_letters=1)} if "outbox" in names else {},
        )
        return Reported(plan, heartbeat, {("judged.fall", "front"): seconds})

    def status(self) -> Any:
        self.builder.enter("running")
        for second in range(12):
            self.now += 1
            self.processes = [self._process(one.plan, second) for one in self.processes]
            for one in self.processes:
                self.builder.note_frames(one)
            self.builder.note_ages("emit.0", {"front": 41.25})
            self.builder.measure(self.processes)
        self._note()
        known = {
            "front": CameraNow("live", "", 11.04, 1, {"codec": "h264", "fps": 25.0, "width": 640}),
            "yard": CameraNow("lost", "no answer", 5.0, 2, {}),
        }
        plights = {"log.0": Plight("has died of: signal 9; it is being opened again", 3.26)}
        departed = {("frames", "attic"): 5, ("dropped.wire", "attic"): 1}
        return self.builder.status(self.processes, known, departed, plights)

    def _note(self) -> None:
        one = Histogram()
        one.add(1_500_000)
        self.builder.note_durations({"emit": one}, {"front": one})
        people = [{"track_id": 4}, {"track_id": 7}]
        bodies = (
            {
                "time": "2026-03-01T12:30:05Z",
                "data": {"camera": "front", "action": "fall", "phase": phase, "people": people},
            }
            for phase in ("start", "end")
        )
        for body in bodies:
            self.builder.note_event(event_format().summary(json.dumps(body).encode()))


def written(status: Any, folder: Path) -> str:
    """The status as a run sends it, a line for each key."""
    values = json.loads(json.dumps(as_json(status)))
    lines = (f"{json.dumps(key)}: {json.dumps(value)}" for key, value in values.items())
    return "\n".join(lines).replace(str(folder), "FOLDER") + "\n"


def test_status_json_is_as_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Byte by byte. To change the status on purpose, write `written(...)` to the file, and read the difference."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    scene = Scene(tmp_path, monkeypatch)
    working = written(scene.status(), tmp_path)
    scene.builder.enter("over")
    over = written(scene.builder.status(scene.processes), tmp_path)
    assert working + over == RECORDED.read_text()


def test_status_survives_its_way_as_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    sent = json.dumps(as_json(Scene(tmp_path, monkeypatch).status()))
    assert json.dumps(as_json(RunStatus.from_json(json.loads(sent)))) == sent


def test_progress_is_no_part_of_the_json() -> None:
    """Only the process that shows a run knows it."""
    status = RunStatus(cameras={"a": CameraStatus(done=0.5)}, progress=ProgressStatus(0.5, 3.0))
    plain = as_json(status)
    assert "progress" not in plain
    assert "done" not in plain["cameras"]["a"]


def test_totals_of_an_older_run_are_sums_of_its_cameras() -> None:
    cameras = {"a": {"frames": 5, "drops": 1, "events": 2}, "b": {"frames": 3}}
    assert RunStatus.from_json({"cameras": cameras}).totals == Totals(8, 1, 2, 2)
    assert RunStatus.from_json({"cameras": cameras, "totals": {"frames": 9}}).totals == Totals(frames=9)
    assert RunStatus.from_json({}).totals == Totals()
