"""The thread that has a run: how it starts, answers, is stopped and ends. The run itself is a stand-in."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from camgraph_test_stages.waiting import until

from camgraph import background as module
from camgraph.background import Background
from camgraph.inbox import Board, Inbox
from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.pipeline.monitoring.run_status import CameraStatus, RunStatus
from camgraph.pipeline.plan import RunPlan


class StandIn:
    """Stands for a supervisor: turns until it is stopped, and calls back at each turn as one does."""

    def __init__(self, look: Callable[[Any], None]) -> None:
        self._look = look
        self.stops = self.hurries = self.turns = 0
        self.switches: dict[str, bool] = {}

    def run(self) -> str:
        while not self.stops:
            self.turns += 1
            self._look(self)
            threading.Event().wait(0.002)
        return "the outcome"

    def status(self) -> RunStatus:
        return RunStatus(phase="over" if self.stops else "running")

    def stop(self) -> None:
        self.stops += 1

    def hurry(self) -> None:
        self.hurries += 1

    def turn_switch(self, name: str, *, on: bool) -> None:
        if name != "armed":
            raise UserError(f"there is no switch {name}")
        self.switches[name] = on


class Run(Background):
    """A background whose run is a stand-in."""

    failure: BaseException | None = None

    def _made(self, folder: Any) -> Any:
        if self.failure:
            raise self.failure
        self.stand_in = StandIn(self._look)
        return self.stand_in


@pytest.fixture
def name() -> str:
    return "standin"


@pytest.fixture
def make(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Run]]:
    @contextmanager
    def alone(plan: RunPlan) -> Iterator[Any]:
        yield SimpleNamespace(own=tmp_path)

    monkeypatch.setattr(module, "only_run", alone)
    runs: list[Run] = []

    def made(*inboxes: Inbox[Any], failure: BaseException | None = None) -> Run:
        loader: Any = None
        board = inboxes[0].board if inboxes else Board()
        run = Run(RunPlan(name, str(tmp_path), (), {"front": {}}), loader, board, inboxes, owner=lambda: board)
        run.failure = failure
        runs.append(run)
        return run

    yield made
    for run in runs:
        run.stop()
        assert run.wait(60)


def test_status_before_the_start_names_every_camera(make: Callable[..., Run]) -> None:
    run = make()
    run._over.set()  # nobody is there to answer
    assert run.status() == RunStatus(graph="standin", phase="starting", cameras={"front": CameraStatus()})


def test_a_runs_last_answer_stays_after_its_end(make: Callable[..., Run]) -> None:
    run = make()
    run.start()
    assert run.status() == RunStatus(phase="running")
    run.stop()
    assert run.wait(60)
    assert run.status() == RunStatus(phase="over")
    assert run.outcome == "the outcome"  # type: ignore[comparison-overlap]


def test_an_error_at_the_start_is_raised_where_it_was_started(make: Callable[..., Run]) -> None:
    run = make(failure=UserError("this machine cannot"))
    with pytest.raises(UserError, match="this machine cannot"):
        run.start()
    assert run.wait(0)


def test_a_stop_arrives_once_and_a_hurry_even_without_a_look(make: Callable[..., Run]) -> None:
    run = make()
    run.start()
    run.stop()
    run.stop()
    assert run.wait(60)
    assert (run.stand_in.stops, run.stand_in.hurries) == (1, 0)
    run.hurry()
    assert run.stand_in.hurries == 1


def test_switches_are_set_by_the_thread_of_the_run(make: Callable[..., Run]) -> None:
    run = make()
    run.start()
    run.switch("armed", on=True)
    assert run.stand_in.switches == {"armed": True}
    with pytest.raises(UserError, match="no switch lamp"):
        run.switch("lamp", on=True)
    run.stop()
    run.wait(60)
    with pytest.raises(EnvironmentProblem, match="it is over"):
        run.switch("armed", on=False)


def test_an_abandoned_run_keeps_unread_items_for_a_later_one(make: Callable[..., Run]) -> None:
    inbox: Inbox[Any] = Inbox("events", Board(), window=1, read=lambda parcel: parcel, identity=id)
    run = make(inbox)
    run.start()
    run.abandon()
    assert run.is_ending
    assert run.wait(60)
    assert inbox.discarded == 0
    assert run.board.over


def test_a_run_waits_for_an_ending_one_of_the_same_name(make: Callable[..., Run]) -> None:
    first, second = make(), make()
    first.start()
    first.stop()
    second.start()
    assert first.wait(0)
    until(lambda: second.stand_in.turns)
