"""Real runs whose processes hang, talk nonsense, die at a bad moment, or are stopped all together."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.supervision.deaths import Restarts
from camgraph.pipeline.supervision.process import Process
from camgraph.pipeline.supervision.supervisor import Supervisor
from camgraph.pipeline.testing import hit, run_graph

CHAIN = """
version: 1
name: {name}
hang_s: {hang_s}
cameras: {cameras}
stages:
  src: {{use: count_source}}
  mid: {{use: {use}, from: src, with: {settings}}}
  out: {{use: collect, from: mid, with: {{path: numbers}}}}
"""
EVENTS = """
version: 1
name: {name}
cameras: {{a: {{frames: 250, pace_ms: 10}}}}
stages:
  src: {{use: count_source}}
  sum: {{use: running_sum, from: src}}
  emit: {{use: emit, from: sum}}
  log: {{use: sink_jsonl, from: events, with: {{path: events.jsonl}}}}
"""


def chain(folder: Path, use: str, settings: dict[str, Any], hang_s: float = 10.0, **camera: Any) -> Path:
    path = folder / "graph.yaml"
    cameras = {"a": {"frames": 40, "pace_ms": 2, **camera}, "b": {"frames": 40, "pace_ms": 2}}
    values = {"use": use, "settings": json.dumps(settings), "hang_s": hang_s, "cameras": json.dumps(cameras)}
    path.write_text(CHAIN.format(name=f"s{os.getpid()}", **values))
    return path


def numbers(folder: Path) -> list[tuple[str, int]]:
    lines = dict.fromkeys((folder / "numbers").read_text().splitlines())
    return sorted((line.split()[0], int(line.split()[2])) for line in lines)


ALL = sorted((camera, seq) for camera in "ab" for seq in range(40))


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("babble", "not msgpack"),
        ("misreport", "heartbeat.in_flight: Input should be a valid integer"),
        ("shout", "5242880"),
    ],
)
def test_invalid_report_restarts_its_process(tmp_path: Path, logs: list[Any], how: str, why: str) -> None:
    outcome, status = run_graph(load_plan(chain(tmp_path, "crash", {"how": how, "camera": "a", "marker": "once"})))
    assert (outcome.status, outcome.problems) == (0, [])
    assert numbers(tmp_path) == ALL
    assert status["stages"]["mid"]["restarts"] == 1
    assert ["reports_refused", "", 1] in status["counts"]
    [logged] = [line for line in logs if line["event"] == "report_refused"]
    assert why in logged["why"]
    assert logged["process"] == "mid.0"


@pytest.mark.parametrize("block_at", [0, 15])
def test_a_source_that_blocks_for_ever_is_started_again(tmp_path: Path, logs: list[Any], block_at: int) -> None:
    path = chain(tmp_path, "double", {}, hang_s=1.5, block_at=block_at, block_lives=1)
    path.write_text(path.read_text() + "open_s: 12\n")
    outcome, _ = run_graph(load_plan(path), limit_s=90)
    assert (outcome.status, outcome.problems) == (0, [])
    assert numbers(tmp_path) == ALL
    logged = [line for line in logs if line["event"] == "process_hangs" and line["process"] == "src.a"]
    assert ("first frame" if block_at == 0 else "a source gives no sign of life") in logged[0]["why"]


def test_a_run_with_a_stage_that_never_opens_ends_at_its_start(tmp_path: Path) -> None:
    path = chain(tmp_path, "crash", {"open_s": 600})
    path.write_text(path.read_text() + "open_s: 12\n")
    outcome, _ = run_graph(load_plan(path), limit_s=120)
    assert outcome.status == 1
    [problem] = outcome.problems
    assert problem.startswith("mid.0 does not start: not ready after")


def test_a_graph_that_is_stuck_for_no_reason_is_got_going(tmp_path: Path, logs: list[Any]) -> None:
    settings = {"how": "stall", "camera": "a", "marker": "once"}
    outcome, status = run_graph(load_plan(chain(tmp_path, "crash", settings, hang_s=1.0)), limit_s=60)
    assert (outcome.status, outcome.problems) == (0, [])
    assert numbers(tmp_path) == ALL
    [logged] = [line for line in logs if line["event"] == "nothing_moves"]
    assert logged["in_flight"]["src.a"] > 0
    assert logged["in_flight"]["out.0"] == 0
    assert (status["stages"]["mid"]["restarts"], status["stages"]["out"]["restarts"]) == (1, 0)


def test_a_graph_of_files_that_is_stuck_again_ends(tmp_path: Path) -> None:
    path = chain(tmp_path, "crash", {"how": "stall"}, hang_s=1.0)  # at a frame of each camera
    outcome, _ = run_graph(load_plan(path), limit_s=60)
    assert outcome.status == 1
    [problem] = outcome.problems
    assert "nothing moves" in problem
    assert "of src.a" in problem


def test_items_and_busy_time_do_not_fall_when_a_process_dies(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    killed: list[int] = []

    def look(supervisor: Supervisor) -> None:
        mid = by_name(supervisor)["mid.0"]
        if "mid" in mid.heartbeat.stages:
            items = supervisor.status().stages["mid"].items
            seen.append((items, mid.heartbeat.stages["mid"].busy_ns))
            if not killed and items > 100 and mid.pid:
                killed.append(mid.pid)
                hit(mid.pid, signal.SIGKILL)

    path = chain(tmp_path, "null_model", {"cost_ms": 5}, frames=150, pace_ms=15)
    outcome, status = run_graph(load_plan(path), look)
    assert (outcome.status, len(killed)) == (0, 1)
    assert [items for items, _ in seen] == sorted(items for items, _ in seen)
    assert [busy_ns for _, busy_ns in seen] == sorted(busy_ns for _, busy_ns in seen)
    # What it had done since its last heartbeat, and on a busy machine that is long ago, is not known.
    assert status["stages"]["mid"]["items"] >= 150 + 40 - 60


def test_stop_does_not_wait_for_pending_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Restarts, "pause_s", 60.0)
    killed: list[int] = []
    stopped: list[bool] = []

    def harm(supervisor: Supervisor) -> None:
        mid, frames = by_name(supervisor)["mid.0"], supervisor.status().cameras["a"].frames
        if killed and mid.state == "waiting" and not stopped:
            stopped.append(True)
            supervisor.stop()
        elif not killed and frames > 5:
            killed.append(mid.pid)
            hit(mid.pid, signal.SIGKILL)

    path = chain(tmp_path, "double", {}, frames=100_000, pace_ms=10)
    outcome, status = run_graph(load_plan(path), harm, limit_s=60)
    assert len(killed) == 1
    assert (outcome.status, outcome.problems) == (0, [])
    brought = status["cameras"]["a"]["frames"]
    assert [seq for camera, seq in numbers(tmp_path) if camera == "a"] == list(range(brought))


MEMORY = """
version: 1
name: {name}
cameras: {cameras}
stages:
  src: {{use: count_source}}
  sum: {{use: running_sum, from: src}}
  emit: {{use: emit, from: sum}}
  log: {{use: sink_jsonl, from: events, with: {{path: events.jsonl}}}}
  slow: {{use: null_model, from: src, with: {{cost_ms: {cost_ms}}}}}
  out: {{use: collect, from: slow, with: {{path: numbers}}}}
"""


@pytest.mark.parametrize(
    ("frames", "cost_ms", "lost"), [({"a": 5, "b": 150}, 40, ["b"]), ({"a": 3, "b": 3}, 800, [])], ids=["one", "both"]
)
def test_of_a_camera_that_has_ended_nothing_is_lost(
    tmp_path: Path, frames: dict[str, int], cost_ms: int, lost: list[str]
) -> None:
    """The slow stage beside it keeps the run going; its few frames find room at once, so that `sum` ends early."""
    path = tmp_path / "graph.yaml"
    cameras = {camera: {"frames": n, "pace_ms": 10} for camera, n in frames.items()}
    path.write_text(MEMORY.format(name=f"s{os.getpid()}", cameras=json.dumps(cameras), cost_ms=cost_ms))
    killed: list[int] = []

    def harm(supervisor: Supervisor) -> None:
        process = by_name(supervisor)["sum.0"]
        if not killed and set("ab") - set(process.ended) == set(lost) and process.pid:
            killed.append(process.pid)
            hit(process.pid, signal.SIGKILL)

    outcome, status = run_graph(load_plan(path), harm)
    assert len(killed) == 1
    assert status["processes"]["sum.0"]["restarts"] == 1
    assert outcome.problems == (["sum lost its state (signal 9) and began anew"] if lost else [])
    assert outcome.status == bool(lost)
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [event["subject"] for event in events if event.get("type") == "camgraph.stage.restarted"] == lost


def by_name(supervisor: Supervisor) -> dict[str, Process]:
    return {process.plan.name: process for process in supervisor.processes}


def restarted(folder: Path) -> list[str]:
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    return [event["id"] for event in events if event.get("type") == "camgraph.stage.restarted"]


@pytest.mark.parametrize("order", [("outbox.0", "sum.0"), ("sum.0", "outbox.0")])
def test_loss_of_state_is_an_event_despite_outbox_death(tmp_path: Path, order: tuple[str, str]) -> None:
    path = tmp_path / "graph.yaml"
    path.write_text(EVENTS.format(name=f"s{os.getpid()}"))
    killed: list[str] = []

    def harm(supervisor: Supervisor) -> None:
        processes = by_name(supervisor)
        if not killed and supervisor.status().cameras["a"].frames > 30:
            # Stopped first, so that it takes nothing in before it dies.
            hit(processes["outbox.0"].pid, signal.SIGSTOP)
            for name in order:
                killed.append(name)
                hit(processes[name].pid, signal.SIGKILL)

    outcome, _ = run_graph(load_plan(path), harm)
    assert killed == list(order)
    assert outcome.problems == ["sum lost its state (signal 9) and began anew"]
    assert len(restarted(tmp_path)) == 1


def test_uncommitted_event_is_resent_to_new_outbox(tmp_path: Path) -> None:
    path = tmp_path / "graph.yaml"
    path.write_text(EVENTS.format(name=f"s{os.getpid()}"))
    steps: list[str] = []

    def harm(supervisor: Supervisor) -> None:
        processes = by_name(supervisor)
        if not steps and supervisor.status().cameras["a"].frames > 30:
            hit(processes["outbox.0"].pid, signal.SIGSTOP)
            hit(processes["sum.0"].pid, signal.SIGKILL)
            steps.append("stage")
        elif steps == ["stage"] and processes["sum.0"].incarnation == 2:  # the event is in the outbox's channel
            hit(processes["outbox.0"].pid, signal.SIGKILL)
            steps.append("outbox")

    outcome, status = run_graph(load_plan(path), harm)
    assert steps == ["stage", "outbox"]
    assert outcome.problems == ["sum lost its state (signal 9) and began anew"]
    assert len(restarted(tmp_path)) == 1
    assert status["actions"]["a"]["camgraph.stage.restarted"] == 1


STOPPED = """
import json, sys
from pathlib import Path
from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.testing import hit, run_graph
pids = Path(sys.argv[2])
def look(supervisor):
    if supervisor.status().cameras["a"].frames > 20 and not pids.exists():
        draft = pids.with_suffix(".draft")
        draft.write_text(json.dumps([p.pid for p in supervisor.processes]))
        draft.rename(pids)
outcome, status = run_graph(load_plan(Path(sys.argv[1])), look)
restarts = {name: stage["restarts"] for name, stage in status["stages"].items()}
print(json.dumps([outcome.status, outcome.problems, restarts]))
"""


def wait_for_pids(run: subprocess.Popen[Any], path: Path) -> list[int]:
    """The processes of a run that has begun to work."""
    until = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < until, "the run does not get going"
        assert run.poll() is None
        threading.Event().wait(0.02)
    return list(json.loads(path.read_text()))


def test_suspended_run_kills_no_process(tmp_path: Path) -> None:
    path = chain(tmp_path, "null_model", {"cost_ms": 20}, hang_s=3, frames=200, pace_ms=10)
    command = [sys.executable, "-c", STOPPED, str(path), str(tmp_path / "pids")]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        pids = [run.pid, *wait_for_pids(run, tmp_path / "pids")]
        for pid in pids:
            hit(pid, signal.SIGSTOP)
        threading.Event().wait(5)  # longer than hang_s, and than what the supervisor takes for a stop
        for pid in pids:
            hit(pid, signal.SIGCONT)
        out, _ = run.communicate(timeout=60)
    finally:
        run.kill()
        run.wait()
    assert json.loads(out.splitlines()[-1]) == [0, [], {"mid": 0, "out": 0}]
    assert len(numbers(tmp_path)) == 240
