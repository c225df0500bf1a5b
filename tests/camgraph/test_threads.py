"""Threads of a program and of its run, and Ctrl-C at every line of what they share."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from camgraph_test_stages.interrupts import Interrupts
from camgraph_test_stages.waiting import until

import camgraph
from camgraph import background, inbox, runs, threads
from camgraph.background import Background
from camgraph.inbox import Board, Inbox, Selection
from camgraph.pipeline.monitoring.run_status import RunStatus
from camgraph.runs import Items
from camgraph.threads import Latch, start_thread

Graphs = Callable[..., Path]


class StandIn:
    """Stands for a run: goes on until it is stopped, and looks at each turn."""

    def __init__(self, look: Callable[[Any], None]) -> None:
        self._look = look
        self._over = False

    def run(self) -> str:
        while not self._over:
            self._look(self)
            threading.Event().wait(0.001)
        return "the outcome"

    def status(self) -> RunStatus:
        return RunStatus(phase="running")

    def stop(self) -> None:
        self._over = True

    hurry = stop


class Standing(Background):
    """A background whose run is a stand-in."""

    def _listen(self, folder: Any) -> None:
        pass

    def _made(self, folder: Any) -> Any:
        return StandIn(self._look)


def alive(name: str) -> list[str]:
    return [one.name for one in threading.enumerate() if name in one.name]


# ---- the latch


def test_a_latch_lets_all_go_on_that_wait_and_that_come_later() -> None:
    latch, passed = Latch(), list[int]()
    waiting = [threading.Thread(target=lambda: passed.append(latch.wait())) for _ in range(3)]
    for one in waiting:
        one.start()
    until(lambda: len(latch._waiting) == 3)
    assert not latch.is_set()
    assert not latch.wait(0.001)
    assert not latch.wait(-1)
    assert len(latch._waiting) == 3, "who waits no more is forgotten"
    latch.set()
    latch.set()
    for one in waiting:
        one.join(60)
    assert passed == [True] * 3
    assert latch.wait(0)


def test_a_thread_that_the_system_does_not_allow_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        start_thread(lambda: None, "camgraph-refused")


def test_a_run_without_a_thread_is_over_at_once(graph: camgraph.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(background, "start_thread", refuse)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        camgraph.run(graph).start()
    assert all(one.wait(0) for one in background._all_running())


# ---- interrupts


def test_an_interrupted_start_leaves_a_whole_thread_or_none() -> None:
    ends: list[Latch] = []

    def act() -> None:
        go_on, end = Latch(), Latch()
        ends.append(go_on)
        start_thread(lambda: (go_on.wait(), end.set()), "camgraph-interrupted")
        go_on.set()
        end.wait()

    interrupts = Interrupts(threads)
    lines = interrupts.lines(act)
    assert len(lines) > 15
    for line in lines:
        assert interrupts.interrupted(act, line), line
        ends[-1].set()
        until(lambda: not alive("camgraph-interrupted"), why=lambda line=line: line)  # type: ignore[misc]


@pytest.fixture
def graph(counting: Graphs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> camgraph.Graph:
    """A graph whose runs are stand-ins."""

    @contextmanager
    def alone(_: object) -> Iterator[Any]:
        yield SimpleNamespace(own=tmp_path)

    monkeypatch.setattr(background, "only_run", alone)
    monkeypatch.setattr(runs, "Background", Standing)
    return camgraph.load(counting(1))


def test_an_interrupt_at_any_line_leaves_nothing_that_runs(graph: camgraph.Graph, name: str) -> None:
    def act() -> None:
        run = camgraph.run(graph)
        run.events()
        run.start()
        run.status()
        run.close()

    interrupts = Interrupts(runs, background, threads)
    act()
    lines = interrupts.lines(act)
    assert len(lines) > 80
    for line in lines:
        interrupts.interrupted(act, line)
        gc.collect()
        until(lambda: not alive(name), why=lambda line=line: line)  # type: ignore[misc]


def test_a_run_with_callbacks_can_be_closed_after_an_interrupt(graph: camgraph.Graph, name: str) -> None:
    made: list[camgraph.Run] = []

    def act() -> None:
        made.append(camgraph.run(graph, on_event=print))
        made[-1].start()

    interrupts = Interrupts(runs, background, threads)
    lines = interrupts.lines(act)
    assert len(lines) > 50
    for line in lines:
        while made:
            made.pop().close()
        until(lambda: not alive(name), why=lambda line=line: line)  # type: ignore[misc]
        interrupts.interrupted(act, line)
    while made:
        made.pop().close()


def test_an_interrupted_loop_leaves_the_runs_lock_free() -> None:
    class Asked:
        """Stands for the run that a loop reads."""

        def __init__(self) -> None:
            self.board = Board()
            self.box: Inbox[Any] = Inbox("events", self.board, window=1, read=lambda parcel: parcel, identity=id)

        def select(self, _: object) -> Selection:
            return Selection([self.box], [self.box])

        def _raise_problems(self) -> None:
            pass

    left = Latch()

    def end_once_read(board: Board) -> None:
        until(lambda: board._callbacks or left.is_set())
        board.end()

    def act() -> None:
        run: Any = Asked()
        others.append(threading.Thread(target=lambda: end_once_read(run.board), name="ends"))
        others[-1].start()
        assert next(Items(run, ("events",)), None) is None

    others: list[threading.Thread] = []
    interrupts = Interrupts(runs, inbox, threads)
    lines = interrupts.lines(act)
    assert len(lines) > 30
    for line in lines:
        left = Latch()
        interrupts.interrupted(act, line)
        left.set()
        others[-1].join(10)
        assert not others[-1].is_alive(), line
