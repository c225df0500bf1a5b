"""All processes of a small graph, with real children: linked, buried, started when there is room, and closed."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from camgraph.pipeline.graph import load_plan
from camgraph.pipeline.monitoring.reports import Ended, Heartbeat, Ready, Report, Revised
from camgraph.pipeline.plan import RunPlan
from camgraph.pipeline.supervision.deaths import GoOn, NotNeeded
from camgraph.pipeline.supervision.fleet import Fleet
from camgraph.pipeline.supervision.lifecycle import RunState
from camgraph.pipeline.supervision.process import Process
from camgraph.pipeline.system.run_folder import RunFolder
from camgraph.pipeline.testing import hit

pytestmark = pytest.mark.processes

GRAPH = """
version: 1
name: fleet{pid}
cameras: {{a: {{frames: 20}}}}
stages:
  src: {{use: count_source}}
  mid: {{use: double, from: src}}
  out: {{use: collect, from: mid, with: {{path: out}}}}
"""
PATIENCE_S = 120.0


class Ears:
    """Listens as a supervisor does that"""

    def __init__(self) -> None:
        self.fleet: Fleet
        self.run = RunState(running=True, finite=False)
        self.died_with: list[tuple[str, object]] = []

    def reported(self, process: Process, report: Report) -> None:
        match report:
            case Ready():
                process.note_ready(report.endpoint)
                self.fleet.link()
            case Heartbeat():
                process.note_heartbeat(report)
            case Ended():
                process.note_end(report)
            case Revised():
                process.note_revised(report)
            case _:
                pass

    def died(self, process: Process) -> None:
        assert (process.state, process.pid) == ("dead", 0)
        self.died_with.append((process.plan.name, process.judge(self.run)))

    def listen_until(self, done: Callable[[], object]) -> None:
        late = time.monotonic() + PATIENCE_S
        while not done():
            assert time.monotonic() < late
            self.fleet.listen(50)

    def start_all(self) -> None:
        for process in self.fleet.processes:
            self.fleet.start(process)
        self.listen_until(lambda: all(process.state == "running" for process in self.fleet.processes))

    def close(self) -> None:
        self.run = RunState(running=True, finite=False, closing=True)
        self.fleet.close(lambda: 5.0, lambda: self.fleet.listen(50))


@pytest.fixture
def plan(tmp_path: Path) -> RunPlan:
    (tmp_path / "g.yaml").write_text(GRAPH.format(pid=os.getpid()))
    return load_plan(tmp_path / "g.yaml")


@pytest.fixture
def ears(plan: RunPlan) -> Iterator[Ears]:
    with closing(RunFolder(plan.graph)) as folder:
        ears = Ears()
        ears.fleet = Fleet(plan, folder, ears)
        yield ears
        ears.close()
        assert not any(process.pid for process in ears.fleet.processes)


def named(fleet: Fleet, name: str) -> Process:
    return next(process for process in fleet.processes if process.plan.name == name)


def test_frames_go_through_processes_that_know_each_other(ears: Ears, tmp_path: Path) -> None:
    ears.start_all()
    assert not any(process.ended for process in ears.fleet.processes), "no source begins by itself"
    ears.fleet.start_sources()
    ears.listen_until(lambda: named(ears.fleet, "out.0").all_ended)
    ears.close()
    assert sorted(ears.died_with) == [(name, NotNeeded()) for name in ("mid.0", "out.0", "src.a")]
    assert len((tmp_path / "out").read_text().splitlines()) == 20
    assert {process.state for process in ears.fleet.processes} == {"finished"}


def test_sources_of_cameras_that_are_left_out_wait(ears: Ears) -> None:
    ears.start_all()
    source = named(ears.fleet, "src.a")
    ears.fleet.start_sources(but=["a"])
    after = source.reported.heartbeat_at
    ears.listen_until(
        lambda: source.reported.heartbeat_at > after + 0.6
    )  # two heartbeats, which would say that it brings frames
    assert source.counts()["frames", "a"] == 0
    ears.fleet.start_sources()
    ears.listen_until(lambda: named(ears.fleet, "out.0").all_ended)


def test_a_death_is_reported_once_and_leaves_nothing_watched(ears: Ears) -> None:
    ears.start_all()
    mid = named(ears.fleet, "mid.0")
    assert mid.channel
    watched = {mid.channel.fileno(), mid.pidfd, mid.stderr_fd}
    hit(mid.pid)
    ears.listen_until(lambda: ears.died_with)
    assert ears.died_with == [("mid.0", GoOn(lost=True))]
    assert not [one for one in watched if one in ears.fleet.poller]
    ears.fleet.start_when_possible(mid)
    ears.listen_until(lambda: mid.state == "running")
    assert (mid.incarnation, mid.restarts) == (2, 1)


def test_a_process_is_put_off_while_descriptors_are_short(ears: Ears) -> None:
    mid = named(ears.fleet, "mid.0")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = len(list(Path("/proc/self/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (before, hard))
    try:
        with capture_logs() as lines:
            for _ in range(3):
                ears.fleet.start_when_possible(mid)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (mid.state, mid.pid) == ("waiting", 0)
    assert [line["event"] for line in lines] == ["process_not_started"], "the same is logged once"
    assert "open files" in mid.life.short
    assert not mid.life.is_due(time.monotonic() - 1, 0.0)
    ears.fleet.start_when_possible(mid)
    ears.listen_until(lambda: mid.state == "running")
    assert mid.life.short == ""


def test_a_name_that_comes_again_counts_its_incarnations_on(ears: Ears, plan: RunPlan) -> None:
    ears.start_all()
    mid = named(ears.fleet, "mid.0")
    mid.leave()
    ears.listen_until(lambda: mid.state == "finished")
    ears.fleet.drop(mid)
    ears.fleet.start_new()
    again = named(ears.fleet, "mid.0")
    assert (again is mid, again.incarnation) == (False, 2)
    assert again.number not in {process.number for process in ears.fleet.processes if process is not again}
    ears.listen_until(lambda: again.state == "running")
    assert not ears.fleet.changing


def test_a_plan_is_settled_when_all_that_live_have_it(ears: Ears, plan: RunPlan) -> None:
    ears.start_all()
    ears.fleet.revise(plan)
    assert ears.fleet.all_revised, "the same plan changes nothing for anybody"
    assert ears.fleet.source_of("a") is named(ears.fleet, "src.a")
    assert ears.fleet.source_of("nobody") is None


def test_what_does_not_close_in_time_is_killed(ears: Ears, monkeypatch: pytest.MonkeyPatch) -> None:
    ears.start_all()
    stuck = named(ears.fleet, "mid.0")
    hit(stuck.pid, signal.SIGSTOP)
    ears.run = RunState(running=True, finite=False, closing=True)
    ears.fleet.close(lambda: 0.5, lambda: ears.fleet.listen(50))
    verdicts: dict[str, Any] = dict(ears.died_with)
    assert "mid.0 was killed: it did not close within 0.5 s" in verdicts["mid.0"].problem[1]
