"""One process with a real child: started, listened to, killed and reaped; and its reports, added up over its lives."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from camgraph.pipeline.boot import Boot, shm_prefix
from camgraph.pipeline.errors import WireError
from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.messages import Stamp
from camgraph.pipeline.monitoring.camera_states import StateChange
from camgraph.pipeline.monitoring.reports import (
    Ended,
    Failed,
    Heartbeat,
    Opening,
    Ready,
    Revised,
    StageStats,
    read_report,
)
from camgraph.pipeline.supervision.child_start import ForkServer
from camgraph.pipeline.supervision.deaths import GoOn, NotNeeded
from camgraph.pipeline.supervision.hangs import Limits
from camgraph.pipeline.supervision.lifecycle import RunState
from camgraph.pipeline.supervision.process import Process, Reported
from camgraph.pipeline.system.run_folder import RunFolder
from camgraph.pipeline.testing import hit

pytestmark = pytest.mark.processes

GRAPH = """
version: 1
name: alone{pid}
cameras: {{a: {{frames: 1}}, b: {{frames: 1}}}}
stages:
  src: {{use: count_source}}
  sum: {{use: running_sum, from: src}}
  out: {{use: collect, from: sum, with: {{path: out}}}}
"""
LIVE = RunState(running=True, finite=False)
LIMITS = Limits(hang_s=10.0, open_s=60.0)
PATIENCE_S = 60.0


@pytest.fixture
def folder() -> Iterator[RunFolder]:
    with closing(RunFolder(f"alone{os.getpid()}")) as folder:
        yield folder


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    (tmp_path / "g.yaml").write_text(GRAPH.format(pid=os.getpid()))
    plan = load_plan(tmp_path / "g.yaml")
    process = Process(next(plan for plan in plan.processes if plan.name == "sum.0"), 7)
    yield process
    if process.pid:
        process.kill("the test is over")
        until_dead(process)
        process.reap()


@pytest.fixture
def fork_server(folder: RunFolder) -> Iterator[ForkServer]:
    server = ForkServer(folder.name)
    yield server
    server.close()


def boot_of(process: Process, folder: RunFolder) -> Boot:
    incarnation = process.incarnation + 1
    return Boot(
        plan=process.plan,
        graph=folder.name,
        run=folder.name,
        incarnation=incarnation,
        run_folder=str(folder.own),
        endpoint=folder.endpoint(process.number, incarnation),
        shm_prefix=shm_prefix(folder.name, "t", process.plan.name, incarnation),
        base_folder=str(folder.own),
        camera_settings={},
    )


def listen_until(process: Process, done: Callable[[], object]) -> None:
    """Take its reports until something holds."""
    late = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < late
        assert process.channel
        select.select([process.channel.fileno()], [], [], 0.1)
        for message in process.channel.receive():
            match report := read_report(message):
                case Ready():
                    process.note_ready(report.endpoint)
                case Heartbeat():
                    process.note_heartbeat(report)
                case Failed():
                    process.note_failure(report)
                case _:
                    pass


def until_dead(process: Process) -> None:
    ready, _, _ = select.select([process.pidfd], [], [], PATIENCE_S)
    assert ready, "it does not die"


def test_a_child_is_started_ready_killed_and_started_again(
    process: Process, folder: RunFolder, fork_server: ForkServer
) -> None:
    assert (process.state, process.pid, process.pidfd, process.channel) == ("waiting", 0, -1, None)
    process.start(boot_of(process, folder), fork_server=fork_server, revision=3)
    assert (process.state, process.incarnation, process.revision) == ("starting", 1, 3)
    listen_until(process, lambda: process.state == "running" and process.reported.heartbeat_at)
    silent = process.plight(process.reported.reported_at + 6)
    assert silent is not None
    assert (silent.why, round(silent.since_s)) == ("gives no sign of life", 6)
    assert process.plight(process.reported.reported_at + 1) is None
    pid, address = process.pid, process.life.attempt.endpoint
    assert Path(address.removeprefix("ipc://")).exists()

    hit(pid)
    until_dead(process)
    process.reap()
    assert (process.state, process.pid, process.life.attempt.endpoint) == ("dead", 0, "")
    assert not Path(address.removeprefix("ipc://")).exists()
    assert process.shared_bytes == 0
    assert process.judge(LIVE) == GoOn(lost=True)
    assert (process.state, process.restarts) == ("waiting", 1)
    assert process.life.death.status == -signal.SIGKILL

    process.start(boot_of(process, folder), fork_server=fork_server, revision=4)
    listen_until(process, lambda: process.state == "running")
    assert (process.incarnation, process.pid != pid) == (2, True)


def test_a_child_that_leaves_closes_in_order_and_is_finished(
    process: Process, folder: RunFolder, fork_server: ForkServer
) -> None:
    process.start(boot_of(process, folder), fork_server=fork_server, revision=0)
    listen_until(process, lambda: process.state == "running")
    process.leave()
    until_dead(process)
    process.reap()
    assert process.judge(LIVE) == NotNeeded()
    assert process.life.attempt.exit_status == 0
    assert process.plight(time.monotonic()) is None


def test_a_refused_child_is_killed_once_and_counted(
    process: Process, folder: RunFolder, fork_server: ForkServer
) -> None:
    process.start(boot_of(process, folder), fork_server=fork_server, revision=0)
    assert process.refuse("not msgpack")
    assert not process.refuse("not msgpack either"), "that is no news"
    until_dead(process)
    process.reap()
    assert process.counts()["reports_refused", ""] == 1
    process.judge(LIVE)
    assert process.life.died_of == "not msgpack"


def test_ready_twice_is_nonsense(process: Process, folder: RunFolder, fork_server: ForkServer) -> None:
    process.start(boot_of(process, folder), fork_server=fork_server, revision=0)
    listen_until(process, lambda: process.state == "running")
    with pytest.raises(WireError, match="reports that it is ready while it is running"):
        process.note_ready("ipc://elsewhere")


def test_nobody_can_write_its_attributes(process: Process) -> None:
    assert [name for name in vars(process) if not name.startswith("_")] == []
    for name in [name for name, value in vars(Process).items() if isinstance(value, property)]:
        with pytest.raises(AttributeError):
            setattr(process, name, None)


def test_a_name_that_comes_again_goes_on_counting(process: Process) -> None:
    assert Process(process.plan, 8, incarnation=4).incarnation == 4


def test_its_plan_says_what_it_loses_and_who_reads_it(process: Process) -> None:
    assert process.stateful_stages == ["sum"]
    assert process.readers == {"out.0"}
    assert not process.has_outbox


def test_a_plan_with_other_settings_waits_for_no_pause(process: Process) -> None:
    process.put_off(1e12, "too few descriptors")
    assert not process.life.is_due(time.monotonic(), 0.0)
    process.put_off(0.0, "")
    process.change_settings(process.plan)
    process.start_now()
    assert process.life.is_due(time.monotonic(), 0.0)


def test_a_revision_is_known_once_it_is_answered(process: Process) -> None:
    process.revise(process.plan, 5, lambda: pytest.fail("there is no child to be told"))
    assert process.revision == 0
    process.note_revised(Revised(op="revised", number=5))
    assert process.revision == 5
    process.has_revision(6)
    assert process.revision == 6


def test_an_opening_that_takes_its_announced_time_is_no_hang(
    process: Process, folder: RunFolder, fork_server: ForkServer
) -> None:
    process.start(boot_of(process, folder), fork_server=fork_server, revision=0)
    now = time.monotonic()
    assert "not ready after" in process.hung(now + 1000, LIMITS)
    process.note_opening(Opening(op="opening", doing="a model is compiled", within_s=2000))
    assert process.hung(now + 1000, LIMITS) == ""
    assert "not ready after" in process.hung(now + 3000, LIMITS)
    process.sleep(1000)
    assert process.hung(now + 2500, LIMITS) == "", "the supervisor slept meanwhile"


def test_an_end_after_deaths_is_nobodys_mistake(process: Process) -> None:
    end = Ended(op="ended", camera="a", reason="error", error="no such file", status=2)
    process.note_end(end)
    assert (process.ended, process.reported.end_status) == ({"a": ("error", "no such file")}, {"a": 2})
    assert not process.all_ended
    process.forget_all_but(["b"])
    assert (process.ended, process.reported.end_status) == ({}, {})


def test_it_looks_still_to_the_stall_detector_only_if_it_is(process: Process) -> None:
    sight = process.progress(trusted=True, finite=True)
    assert sight.excused, "it has not been started"
    assert (sight.process, sight.in_flight, sight.readers) == ("sum.0", 0, frozenset({"out.0"}))


# ---- its reports


def heartbeat(items: int, **values: object) -> Heartbeat:
    stats = StageStats(items=items, busy_ns=items * 10, latency_ms_p99=float(items))
    return Heartbeat.model_validate({"stages": {"sum": stats}, "counts": [("frames", "a", items)], **values})


def test_work_is_added_up_over_lives_and_the_condition_is_not() -> None:
    reported = Reported()
    reported.begin(1.0)
    reported.note_heartbeat(heartbeat(5, queue=3, blocked_on="the disk is full", troubles=[("log", "", "full")]), 2.0)
    assert (reported.heartbeat.queue, reported.blocked_since, reported.slowest_s) == (3, 2.0, 0.005)
    reported.die()
    assert (reported.heartbeat.queue, reported.heartbeat.troubles, reported.blocked_since) == (0, [], 0.0)
    reported.begin(3.0)
    assert (reported.reported_at, reported.slowest_s) == (3.0, 0.0)
    reported.note_heartbeat(heartbeat(2), 4.0)
    assert reported.heartbeat.stages["sum"].items == 7
    assert reported.counters.counts == {("frames", "a"): 7}


def test_what_a_heartbeat_leaves_out_is_as_before() -> None:
    reported = Reported()
    reported.begin(1.0)
    change = StateChange("a", "live", "", 1)
    whole = reported.note_heartbeat(heartbeat(5, queue=3, camera_changes=[change], ages={"a": 9.0}), 2.0)
    assert whole.camera_changes == [change]
    whole = reported.note_heartbeat(Heartbeat(cpu_s=0.5), 3.0)
    assert (whole.queue, whole.counts, whole.stages["sum"].items) == (3, [("frames", "a", 5)], 5)
    assert (whole.camera_changes, whole.ages) == ([], {}), "these are of the time since the last heartbeat"
    assert (reported.heartbeat.queue, reported.heartbeat.cpu_s, reported.heartbeat_at) == (3, 0.5, 3.0)
    reported.die()
    reported.begin(4.0)
    assert reported.note_heartbeat(Heartbeat(), 5.0) == Heartbeat(), "a new life begins with nothing"
    assert reported.heartbeat.stages["sum"].items == 5


def test_blocked_since_is_the_first_heartbeat_that_says_so() -> None:
    reported = Reported()
    for now in (1.0, 2.0, 3.0):
        reported.note_heartbeat(heartbeat(1, blocked_on="the disk is full"), now)
    assert reported.blocked_since == 1.0
    reported.sleep(10.0)
    assert (reported.blocked_since, reported.reported_at) == (11.0, 13.0)
    reported.note_heartbeat(heartbeat(1, blocked_on="the program takes its time", patient=True), 14.0)
    assert reported.blocked_since == 0.0
    reported.sleep(1.0)
    assert reported.blocked_since == 0.0


def test_a_camera_that_comes_again_is_a_new_one() -> None:
    reported = Reported()
    reported.note_heartbeat(
        heartbeat(1, frames_done={"a": Stamp("a", 0, 1, 0, 0, 0), "b": Stamp("b", 0, 1, 0, 0, 0)}), 1.0
    )
    reported.forget_all_but(["a"])
    assert set(reported.frames_done) == {"a"}
