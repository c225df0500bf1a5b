"""The run as the service asks it: once a second at most, and never for a state from before a change."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from camgraph_test_stages.waiting import until

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.pipeline.monitoring.run_status import RunStatus
from camgraph.tools.service.run import run_link
from camgraph.tools.service.run.run_link import RunLink

WITHIN_S = 90.0


def test_after_a_missing_picture_the_next_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[str] = []

    def silent(path: Path, camera: str) -> Any:
        asked.append(camera)
        raise EnvironmentProblem("no picture came", error_id="no-picture")

    monkeypatch.setattr(run_link, "ask_picture", silent)
    link = RunLink("none")
    monkeypatch.setattr(link, "sockets", lambda pattern: [tmp_path / "pictures"])
    for _ in range(3):
        with pytest.raises(EnvironmentProblem):
            link.picture("hall")
    assert asked == ["hall"]
    monkeypatch.setattr(run_link, "_NO_PICTURES_S", 0.0)
    link._pictures_s = 0.0
    for _ in range(2):
        with pytest.raises(EnvironmentProblem):
            link.picture("hall")
    assert asked == ["hall"] * 3


def test_a_scrape_each_second_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    now, slow, answered = [100.0], threading.Event(), [0]

    def ask(name: str, op: str, *, within_s: float) -> dict[str, Any]:
        if answered[0]:
            assert slow.wait(WITHIN_S)
        answered[0] += 1
        return {"n": answered[0]}

    monkeypatch.setattr(run_link, "ask", ask)
    monkeypatch.setattr(run_link.time, "monotonic", lambda: now[0])
    link = RunLink("none")
    assert link.answer() == {"n": 1}
    now[0] += 1.2
    assert [link.answer() for _ in range(3)] == [{"n": 1}] * 3, "while the run is asked once more"
    slow.set()
    until(lambda: link.answer() == {"n": 2})
    assert answered == [2]
    now[0] += 5.0
    assert link.answer() == {"n": 3}, "a state of long ago is none"
    link._status.forget()
    assert link.answer() == {"n": 4}


class Run:
    """A run that can be paused. `at_status`: called when it is asked for its state, before the answer is on its way."""

    def __init__(self) -> None:
        self.is_paused = False
        self.at_status: Callable[[], object] = lambda: None
        self.at_pause: Callable[[], object] = lambda: None

    def ask(self, name: str, op: str, **values: Any) -> dict[str, Any]:
        if op == "status":
            answer = {"paused": self.is_paused}
            self.at_status()
            return answer
        self.at_pause()
        self.is_paused = True
        return {}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    run = Run()
    monkeypatch.setattr(run_link, "ask", run.ask)
    monkeypatch.setattr(run_link.time, "monotonic", lambda: 100.0)  # nothing becomes old by itself
    return run


def test_who_asks_during_a_change_does_not_keep_the_old_state(run: Run) -> None:
    link, seen = RunLink("none"), []
    run.at_pause = lambda: seen.append(link.answer())
    link.ask("pause")
    assert seen == [{"paused": False}]
    assert link.answer() == {"paused": True}


def test_a_change_that_fails_is_asked_for_as_well(run: Run) -> None:
    """It may have been made, and its answer lost."""
    link = RunLink("none")

    def lost() -> None:
        link.answer()
        run.is_paused = True
        raise EnvironmentProblem("the run does not answer", error_id="run-silent")

    run.at_pause = lost
    with pytest.raises(EnvironmentProblem):
        link.ask("pause")
    assert link.answer() == {"paused": True}


def test_an_answer_on_its_way_during_a_change_is_not_kept(run: Run) -> None:
    link, begun, go_on = RunLink("none"), threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        assert go_on.wait(WITHIN_S)

    run.at_status = slow
    asks = threading.Thread(target=link.answer)
    asks.start()
    assert begun.wait(WITHIN_S)
    link.ask("pause")  # which does not wait for the other one
    run.at_status = lambda: None
    go_on.set()
    asks.join()
    assert link.answer() == {"paused": True}


def test_after_a_failure_no_state_of_long_ago_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two looks at the clock, another thread may have asked the run anew."""
    link, now, answered = RunLink("none"), [100.0], [0]
    fails, is_asked_beside = [False], [False]

    def ask(name: str, op: str, *, within_s: float) -> dict[str, Any]:
        if fails[0]:
            raise EnvironmentProblem("the run does not answer", error_id="run-silent")
        answered[0] += 1
        return {"n": answered[0]}

    def monotonic() -> float:
        if is_asked_beside[0] and not link._status._asking.locked():
            is_asked_beside[0] = False
            link.answer()
            now[0] += 1.5
        return now[0]

    monkeypatch.setattr(run_link, "ask", ask)
    monkeypatch.setattr(run_link.time, "monotonic", monotonic)
    assert link.answer() == {"n": 1}
    now[0], fails[0] = 110.0, True
    with pytest.raises(EnvironmentProblem):
        link.answer()
    now[0], fails[0], is_asked_beside[0] = 112.0, False, True
    assert link.answer()["n"] > 1


def test_a_clock_that_is_set_forward_begins_no_run_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    uptime_s, clock_s = [10.0], [5000.0]
    link = RunLink("none")
    monkeypatch.setattr(link, "status", lambda: RunStatus(uptime_s=uptime_s[0]))
    monkeypatch.setattr(run_link.time, "time", lambda: clock_s[0])
    begun_s = link.begun_s()
    assert 4980 < begun_s <= 4990
    uptime_s[0], clock_s[0] = 20.0, 90_000.0
    assert link.begun_s() == begun_s
    uptime_s[0] = 1.0  # another run
    assert 89_980 < link.begun_s() < 90_000
