"""Live cameras that go away and come back, in real processes: told by log, status and events, once and in order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import structlog
from camgraph_test_stages.waiting import json_lines, until

from camgraph.pipeline.errors import CamgraphError
from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.local import LocalRun
from camgraph.pipeline.monitoring.camera_states import StateChange
from camgraph.pipeline.monitoring.cameras import Cameras
from camgraph.pipeline.monitoring.reports import Heartbeat
from camgraph.pipeline.monitoring.run_status import as_json
from camgraph.pipeline.monitoring.supervisor_events import SupervisorEvents
from camgraph.pipeline.plan import run_to_wire
from camgraph.pipeline.supervision.control_client import ask
from camgraph.pipeline.testing import hit, run_graph
from camgraph.stages.events import CAMERA_EVENTS

GRAPH = """
version: 1
name: {name}
processes: {processes}
cameras:
  front: {{frames: 1000000, pace_ms: 50, live: true, state_from: front}}
  yard: {{frames: 1000000, pace_ms: 50, live: true, state_from: yard}}
  mute: {{frames: 1000000, pace_ms: 50, live: true}}
stages:
  src: {{use: count_source}}
  emit: {{use: emit, from: src, with: {{every: 1000000}}}}
  log: {{use: sink_jsonl, from: events, with: {{path: events.jsonl}}}}
"""
SECRET = "secr3t"
Story = Iterator[Callable[[], bool]]
"""What a test does to a run, step by step; each step waits for the condition that it gives."""


def write(folder: Path, processes: str = "separate") -> Path:
    path = folder / "graph.yaml"
    path.write_text(GRAPH.format(name=f"c{os.getpid()}", processes=processes))
    return path


class Stage:
    """Tells a story to a run, one step whenever the run looks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run: Any = None
        self._story: Story | None = None
        self._waits: Callable[[], bool] = lambda: True
        self.over = False
        self._late = time.monotonic() + 100

    def tell(self, story: Story) -> Callable[[Any], None]:
        self._story = story
        return self._look

    def _look(self, run: Any) -> None:
        self.run = run
        if time.monotonic() > self._late:
            run.stop()
        if self.over or not self._waits():
            return
        assert self._story
        step = next(self._story, None)
        if step is None:
            self.over = True
            run.stop()
        else:
            self._waits = step

    def say(self, camera: str, message: str) -> None:
        draft = self.folder / f"{camera}.draft"
        draft.write_text(message)
        draft.rename(self.folder / camera)

    def is_(self, camera: str, state: str) -> Callable[[], bool]:
        return lambda: bool(self.run.status().cameras[camera].state == state)

    def has(self, count: int) -> Callable[[], bool]:
        return lambda: len(self.events()) >= count

    def process(self, plan: str) -> Any:
        return next(process for process in self.run.processes if process.plan.name == plan)

    def ask(self, op: str, **values: Any) -> Callable[[], bool]:
        """Ask the run from outside; true once it has answered."""
        answers: list[dict[str, Any]] = []
        name = self.run.folder.name
        threading.Thread(target=lambda: answers.append(ask(name, op, **values)), daemon=True).start()
        return lambda: bool(answers)

    def events(self) -> list[dict[str, Any]]:
        events = json_lines(self.folder / "events.jsonl")
        return [event for event in events if event.get("type", "").startswith("camgraph.camera.")]


def test_state_changes_are_events_once_and_in_order(tmp_path: Path, logs: list[Any]) -> None:
    stage = Stage(tmp_path)

    def story() -> Story:
        yield stage.is_("mute", "live")
        for camera in ("front", "yard"):
            yield stage.is_(camera, "connecting")
            stage.say(camera, "live")
            yield stage.is_(camera, "live")
        stage.say("front", f"lost no answer from rtsp://viewer:{SECRET}@10.0.0.1/main")
        yield stage.is_("front", "lost")
        stage.say("front", "unauthorised 401")
        yield stage.is_("front", "unauthorised")
        stage.say("front", "live")
        yield stage.is_("front", "live")
        yield stage.has(2)

        hit(stage.process("src.front").pid, signal.SIGSTOP)
        stage.say("front", "connecting")  # what its successor has to say for a while
        hit(stage.process("src.front").pid, signal.SIGKILL)
        yield lambda: stage.process("src.front").incarnation == 2 and stage.is_("front", "lost")()
        stage.say("front", "live")
        yield stage.is_("front", "live")
        yield stage.has(4)

        hit(stage.process("outbox.0").pid, signal.SIGSTOP)
        stage.say("front", "gone 404")
        yield stage.is_("front", "gone")
        stage.say("front", "live")
        yield stage.is_("front", "live")
        hit(stage.process("outbox.0").pid, signal.SIGKILL)
        yield stage.has(6)

    outcome, status = run_graph(load_plan(write(tmp_path)), stage.tell(story()))
    assert stage.over
    assert (outcome.status, outcome.problems) == (0, [])
    _check_events(stage.events())
    logged = [line for line in logs if line["event"] == "camera_state" and line["camera"] == "front"]
    assert [line["state"] for line in logged] == (
        ["connecting", "live", "lost", "unauthorised", "live", "lost", "live", "gone", "live"]
    )
    assert [line["was"] for line in logged] == ["starting", *(line["state"] for line in logged[:-1])]
    assert {line["log_level"] for line in logged if line["state"] in ("live", "connecting")} == {"info"}
    assert {line["log_level"] for line in logged if line["state"] not in ("live", "connecting")} == {"warning"}
    away = {line["state"]: line["error_id"] for line in logged if "error_id" in line}
    assert away == {"lost": "camera-lost", "unauthorised": "camera-refuses", "gone": "camera-no-stream"}
    assert status["cameras"]["front"]["losses"] == 3
    assert status["cameras"]["front"]["facts"] == {"codec": "count", "width": 4, "fps": 0.5}
    assert [status["cameras"][name]["losses"] for name in ("yard", "mute")] == [0, 0]
    assert SECRET not in str(logs) + str(status) + (tmp_path / "events.jsonl").read_text()


def test_each_loss_has_one_end(tmp_path: Path) -> None:
    stage, path = Stage(tmp_path), write(tmp_path)
    changed = tmp_path / "other.yaml"
    changed.write_text(
        path.read_text().replace("pace_ms: 50, live: true, state_from: f", "pace_ms: 49, live: true, state_from: f")
    )
    other = replace(load_plan(changed), graph=load_plan(path).graph)

    def story() -> Story:
        yield stage.is_("mute", "live")
        stage.say("front", "unauthorised 401")
        yield stage.is_("front", "unauthorised")
        yield stage.has(1)
        hit(stage.process("outbox.0").pid, signal.SIGKILL)
        yield stage.ask("reload", plan=run_to_wire(other))
        yield stage.has(3)  # of what it was before, and of what it is now
        yield stage.is_("front", "unauthorised")

        stage.say("yard", "live")
        yield stage.is_("yard", "live")
        stage.say("yard", "connecting")  # what its successor has to say for a while
        yield stage.is_("yard", "connecting")
        hit(stage.process("src.yard").pid, signal.SIGKILL)
        yield stage.is_("yard", "lost")
        yield stage.ask("remove", camera="yard")
        yield lambda: "yard" not in stage.run.status().cameras
        hit(stage.process("outbox.0").pid, signal.SIGKILL)
        yield stage.has(5)

    outcome, status = run_graph(load_plan(path), stage.tell(story()))
    assert stage.over
    assert outcome.problems == ["camera front: no frame in the whole run (unauthorised: 401)"]
    reported = [(e["subject"], e["type"].rpartition(".")[2], e["data"].get("reason")) for e in stage.events()]
    assert [row for row in reported if row[0] == "front"] == [
        ("front", "lost", None),
        ("front", "ended", "replaced"),
        ("front", "lost", None),
        ("front", "ended", "stopped"),
    ]
    assert [row for row in reported if row[0] == "yard"] == [("yard", "lost", None), ("yard", "ended", "removed")]
    assert len(reported) == 6
    for event in stage.events():
        CAMERA_EVENTS.validate_python(event)
    incidents = Counter(event["data"]["incident"] for event in stage.events())
    assert set(incidents.values()) == {2}
    assert status["cameras"]["front"]["losses"] == 2


def test_death_is_no_loss_for_a_paused_camera(tmp_path: Path) -> None:
    stage = Stage(tmp_path)

    def story() -> Story:
        yield stage.is_("mute", "live")
        stage.say("front", "live")
        yield stage.is_("front", "live")
        yield stage.ask("pause", camera="mute")
        yield stage.is_("mute", "paused")
        for process in ("src.mute", "src.front"):
            hit(stage.process(process).pid, signal.SIGKILL)
        yield stage.has(2)
        yield lambda: stage.process("src.mute").incarnation == 2 and stage.process("src.mute").state == "running"
        yield stage.ask("resume", camera="mute")
        frames = stage.run.status().cameras["mute"].frames
        yield lambda: stage.run.status().cameras["mute"].frames > frames
        yield stage.is_("mute", "live")

    outcome, status = run_graph(load_plan(write(tmp_path)), stage.tell(story()))
    assert stage.over
    assert (outcome.status, outcome.problems) == (0, [])
    assert [event["subject"] for event in stage.events()] == ["front", "front"]
    assert status["cameras"]["mute"]["losses"] == 0


def _check_events(events: list[dict[str, Any]]) -> None:
    kinds = [event["type"].removeprefix("camgraph.camera.") for event in events]
    assert kinds == ["lost", "back"] * 3
    assert {event["subject"] for event in events} == {"front"}
    incidents = [event["data"]["incident"] for event in events]
    assert incidents[::2] == incidents[1::2]
    assert len(set(incidents)) == 3
    assert [event["data"]["state"] for event in events[::2]] == ["lost", "lost", "gone"]
    whys = [event["data"]["why"] for event in events[::2]]
    assert whys == ["no answer from rtsp://***@10.0.0.1/main", "its process died: signal 9", "404"]
    assert all(event["data"]["lost_s"] > 0 for event in events[1::2])
    assert [event["time"] for event in events] == sorted(event["time"] for event in events)


def test_silent_source_is_lost_by_death_and_back_by_frame(tmp_path: Path) -> None:
    stage = Stage(tmp_path)

    def story() -> Story:
        yield stage.is_("mute", "live")
        hit(stage.process("src.mute").pid, signal.SIGKILL)
        yield stage.has(2)
        yield stage.is_("mute", "live")

    outcome, _ = run_graph(load_plan(write(tmp_path)), stage.tell(story()))
    assert stage.over
    assert (outcome.status, outcome.problems) == (0, [])
    kinds = [(event["type"], event["subject"]) for event in stage.events()]
    assert kinds == [("camgraph.camera.lost", "mute"), ("camgraph.camera.back", "mute")]


def test_in_one_process_it_is_the_same(tmp_path: Path, logs: list[Any]) -> None:
    stage = Stage(tmp_path)

    def story() -> Story:
        for camera in ("front", "yard"):
            yield stage.is_(camera, "connecting")
            stage.say(camera, "live")
            yield stage.is_(camera, "live")
        yield stage.is_("mute", "live")
        for reported in ("stalled no packet", "live"):
            stage.say("front", reported)
            yield stage.is_("front", reported.partition(" ")[0])
        yield stage.has(2)
        stage.say("yard", "gone 404")
        yield stage.is_("yard", "gone")

    run = LocalRun(load_plan(write(tmp_path, "one")), stage.tell(story()))
    outcome = run.run()
    assert stage.over
    assert (outcome.status, outcome.problems) == (0, [])
    reported = [(event["subject"], event["type"], event["data"].get("why")) for event in stage.events()]
    assert reported[:2] == [("front", "camgraph.camera.lost", "no packet"), ("front", "camgraph.camera.back", "")]
    assert reported[2:] == [("yard", "camgraph.camera.lost", "404"), ("yard", "camgraph.camera.ended", None)]
    assert [line["state"] for line in logs if line["event"] == "camera_state" and line["camera"] == "front"] == (
        ["connecting", "live", "stalled", "live"]
    )
    assert run.status().cameras["front"].losses == 1


def test_run_goes_on_while_all_cameras_are_away(tmp_path: Path) -> None:
    for camera, reported in (("front", "unauthorised wrong password"), ("yard", "gone no such stream")):
        (tmp_path / camera).write_text(reported)
    path = write(tmp_path)
    path.write_text(path.read_text().replace("  mute: {frames: 1000000, pace_ms: 50, live: true}\n", ""))
    command = [sys.executable, "-m", "camgraph.tools.cli", "run", str(path), "--quiet"]
    run = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        cameras = _wait_for_states(run, {"front": "unauthorised", "yard": "gone"})
        assert cameras["front"]["why"] == "wrong password"
        run.send_signal(signal.SIGINT)
        _, output = run.communicate(timeout=60)
    finally:
        run.kill()
        run.wait()
    assert run.returncode == 130
    assert "camgraph: camera front: no frame in the whole run (unauthorised: wrong password)" in output
    assert "camgraph: camera yard: no frame in the whole run (gone: no such stream)" in output
    assert output.count("camera_state") == 2
    kinds = [(event["type"], event["subject"]) for event in Stage(tmp_path).events()]
    assert sorted(kinds[:2]) == [("camgraph.camera.lost", "front"), ("camgraph.camera.lost", "yard")]
    assert sorted(kinds[2:]) == [("camgraph.camera.ended", "front"), ("camgraph.camera.ended", "yard")]


def _wait_for_states(run: subprocess.Popen[str], states: dict[str, str]) -> dict[str, Any]:
    """The cameras of a run, once they are in these states and their losses are committed."""

    def cameras() -> dict[str, Any]:
        assert run.poll() is None
        try:
            status = ask(f"c{os.getpid()}", "status")
        except CamgraphError:  # it is not there yet, or has much to do
            return {}
        known: dict[str, Any] = status["cameras"]
        are_so = {name: camera["state"] for name, camera in known.items()} == states
        return known if are_so and len(status["actions"]) == 2 else {}

    return until(cameras, every_s=0.05)


@pytest.mark.parametrize("placement", ["separate", "one"])
def test_stop_with_absent_camera_exits_0_with_problem(tmp_path: Path, placement: str) -> None:
    stage = Stage(tmp_path)

    def story() -> Story:
        stage.say("yard", "lost no route to host")
        yield stage.is_("yard", "lost")
        yield stage.is_("mute", "live")

    if placement == "one":
        run = LocalRun(load_plan(write(tmp_path, placement)), stage.tell(story()))
        outcome, status = run.run(), as_json(run.status())
    else:
        outcome, status = run_graph(load_plan(write(tmp_path)), stage.tell(story()))
    assert outcome.status == 0
    assert outcome.problems == ["camera yard: no frame in the whole run (lost: no route to host)"]
    reported = [(event["subject"], event["type"]) for event in stage.events()]
    assert reported == [("yard", "camgraph.camera.lost"), ("yard", "camgraph.camera.ended")]
    assert status["cameras"]["yard"]["state"] == "stopped"


def test_reports_on_foreign_cameras_are_ignored(tmp_path: Path, logs: list[Any]) -> None:
    plan = load_plan(write(tmp_path))
    cameras = Cameras(plan, SupervisorEvents("run", "graph"), structlog.get_logger())
    processes = {process.name: process for process in plan.processes}
    later = time.monotonic_ns() + 10**15
    changes = [StateChange("yard", "lost", "", 1), StateChange("front", "live", f"a\nb rtsp://u:{SECRET}@h", later)]
    heartbeat = Heartbeat(
        op="heartbeat",
        camera_changes=changes,
        camera_facts={"yard": {"codec": "x"}},
        counts=[("frames", "mute", 5)],
    )
    cameras.note_heartbeat(processes["emit.0"], heartbeat)
    assert logs == []
    cameras.note_heartbeat(processes["src.front"], heartbeat)
    assert [(line["camera"], line["state"], line["why"]) for line in logs] == [("front", "live", "a b rtsp://***@h")]
    now = cameras.now()
    assert now["front"].since_s >= 0
    assert (now["yard"].state, now["yard"].facts, now["mute"].state) == ("", {}, "")


def test_camera_failure_is_logged_once_with_reason(tmp_path: Path, logs: list[Any]) -> None:
    plan = load_plan(write(tmp_path))
    cameras = Cameras(plan, SupervisorEvents("run", "graph"), structlog.get_logger())
    processes = {process.name: process for process in plan.processes}
    now_ns = time.monotonic_ns()
    cameras.note_heartbeat(
        processes["src.front"], Heartbeat(camera_changes=[StateChange("front", "lost", "cable", now_ns)])
    )
    for _ in range(2):  # each process says it with which its last word goes
        cameras.ended("front", "error", f"no decoder\nfor rtsp://u:{SECRET}@h")
        cameras.ended("yard", "end")
        cameras.ended("mute", "stopped")
    logged = [(line["log_level"], line.get("state"), line.get("was"), line.get("why", "")) for line in logs]
    assert logged == [
        ("warning", "lost", "starting", "cable"),
        ("error", "failed", "lost", "no decoder for rtsp://***@h"),
        ("info", None, None, ""),
        ("info", "done", "starting", ""),
    ]
    assert [line["event"] for line in logs][2] == "camera_loss_over"
