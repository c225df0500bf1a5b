"""The watchdog: which processes it kills, when it ends a run, and how lenient it is after it was stopped itself."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
import structlog

from camgraph.pipeline.errors import EXIT_ENVIRONMENT, EXIT_GAVE_UP
from camgraph.pipeline.plan import BLOCKED_LIMIT_S
from camgraph.pipeline.supervision.hangs import Limits
from camgraph.pipeline.supervision.stall_detector import Progress
from camgraph.pipeline.supervision.watchdog import Watchdog

HANG_S = 10.0
PATIENCE_S = 3 * HANG_S
PLAN: Any = SimpleNamespace(hang_s=HANG_S, open_s=120.0)


@dataclass
class OneProcess:
    """Stands for a process. A test says how it is; it notes what is done to it."""

    name: str
    in_flight: int = 0
    why_hung: str = ""
    killed_for: list[str] = field(default_factory=list)
    slept_s: list[float] = field(default_factory=list)
    limits: list[Limits] = field(default_factory=list)

    def __post_init__(self) -> None:
        sources, incoming = (("src",), ()) if self.name == "src" else ((), (SimpleNamespace(type="frame"),))
        self.plan = SimpleNamespace(name=self.name, sources=sources, incoming=incoming, delivers_events=False)
        self.all_ended = False
        self.reported = SimpleNamespace(blocked_since=0.0)
        self.heartbeat = SimpleNamespace(blocked_on=f"{self.name}: the disk is full")

    @property
    def life(self) -> Any:
        return SimpleNamespace(attempt=SimpleNamespace(killed_for="".join(self.killed_for)))

    def hung(self, now: float, limits: Limits) -> str:
        self.limits.append(limits)
        return self.why_hung

    def kill(self, why: str) -> None:
        self.killed_for.append(why)

    def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)

    def progress(self, *, trusted: bool, finite: bool) -> Progress:
        source = self.name == "src"
        readers = frozenset({"model"}) if source else frozenset[str]()
        return Progress(self.name, source, 0, 0, self.in_flight, readers, excused=not trusted)


class Run:
    """A source and its reader under a watchdog, with a clock that is moved by hand."""

    def __init__(self, *, finite: bool = True) -> None:
        self.began = self.now = time.monotonic()
        self.source, self.model = OneProcess("src"), OneProcess("model")
        self.problems: list[tuple[int, str]] = []
        fleet: Any = SimpleNamespace(processes=[self.source, self.model])
        self.watchdog = Watchdog(
            PLAN,
            fleet,
            finite=finite,
            fail=lambda status, problem: self.problems.append((status, problem)),
            log=structlog.get_logger(),
        )

    def go_on(self, seconds: float, *, running: bool = True) -> None:
        """Let time pass, with ten turns a second, as the supervisor's loop has them."""
        for _ in range(round(seconds * 10)):
            self.now += 0.1
            self.watchdog.absorb_sleep(self.now)
            for process in (self.source, self.model):
                self.watchdog.check_process(process, PLAN, self.now)  # type: ignore[arg-type]
            self.watchdog.check_run(PLAN, self.now, running=running)


def test_a_hung_process_is_killed_once_and_no_other() -> None:
    run = Run()
    run.model.why_hung = "no sign of life"
    run.go_on(1.0)
    assert run.model.killed_for == ["no sign of life"]
    assert run.source.killed_for == []
    assert run.model.limits[0] == Limits(HANG_S, 120.0)


def test_limits_of_a_reloaded_graph_count_from_then_on() -> None:
    run = Run()
    later: Any = SimpleNamespace(hang_s=99.0, open_s=120.0)
    run.watchdog.check_process(run.model, later, run.now)  # type: ignore[arg-type]
    assert run.model.limits == [Limits(99.0, 120.0)]


def test_nobody_is_killed_just_after_the_supervisor_was_stopped() -> None:
    run = Run()
    run.go_on(0.5)
    run.now += 60.0
    run.model.why_hung = "no sign of life"
    run.go_on(HANG_S - 0.5)
    assert run.model.killed_for == [], "it may have been stopped as well"
    assert [round(slept) for slept in run.model.slept_s] == [60]
    run.go_on(1.0)
    assert run.model.killed_for == ["no sign of life"]


@pytest.mark.parametrize("finite", [True, False])
def test_only_a_run_of_files_gives_up_on_what_blocks_it(finite: bool) -> None:
    run = Run(finite=finite)
    run.model.reported.blocked_since = run.now
    run.go_on(BLOCKED_LIMIT_S - 0.5)
    assert run.problems == []
    run.go_on(1.0)
    expected = (EXIT_ENVIRONMENT, "gave up after waiting for 30 s: model: the disk is full")
    assert run.problems[:1] == ([expected] if finite else [])


def test_a_sink_of_events_is_given_up_only_when_all_else_is_done() -> None:
    run = Run()
    run.model.plan.delivers_events, run.model.plan.incoming = True, (SimpleNamespace(type="event"),)
    run.model.reported.blocked_since = run.now
    run.go_on(3 * BLOCKED_LIMIT_S)
    assert run.problems == []
    run.source.all_ended = True
    run.go_on(BLOCKED_LIMIT_S - 0.5)
    assert run.problems == []
    run.go_on(1.0)
    assert run.problems[0] == (EXIT_ENVIRONMENT, "gave up after waiting for 30 s: model: the disk is full")


def test_a_stalled_run_restarts_its_reader_and_then_ends() -> None:
    run = Run()
    run.source.in_flight = 4
    run.go_on(PATIENCE_S - 1)
    assert run.model.killed_for == []
    run.go_on(2.0)
    assert (run.model.killed_for, run.source.killed_for, run.problems) == (["nothing moves"], [], [])
    run.go_on(PATIENCE_S + 1)
    [(status, problem)] = run.problems
    assert status == EXIT_GAVE_UP
    assert "4 of src" in problem


def test_a_run_that_has_not_begun_does_not_stand_still() -> None:
    run = Run()
    run.source.in_flight = 4
    run.go_on(PATIENCE_S + 5, running=False)
    assert (run.model.killed_for, run.problems) == ([], [])


def test_a_run_with_nothing_in_flight_is_only_silent() -> None:
    run = Run()
    run.go_on(PATIENCE_S + 5)
    assert (run.model.killed_for, run.problems) == ([], [])
