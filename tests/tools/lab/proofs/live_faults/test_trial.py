"""One fault by hand: the test writes the record and moves the clock."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from datetime import UTC, datetime
from typing import Any

import pytest

from camgraph.tools.lab.proofs.live_faults.cameras import Patient
from camgraph.tools.lab.proofs.live_faults.cases import Case
from camgraph.tools.lab.proofs.live_faults.record import Record
from camgraph.tools.lab.proofs.live_faults.trial import Result, Trial

CUT = Case("cut", lambda _: None, states=("lost",), returns="struck", settles_s=1)
ODD = Case("odd", lambda _: None, holds_s=2)


class AtOnce(Executor):
    """Does it here and now."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **keys: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(fn(*args, **keys))
        return done


class Story:
    """A camera of ten frames a second, as far as it is ``live``; told of twice a second."""

    def __init__(self, case: Case) -> None:
        self.now_s = 1000.0
        self.record = Record(0.0)
        self.live = True
        self.drops: dict[str, int] = {}
        self._losses = 0
        self._frames = 0
        self._trial = Trial(case, Patient("cam", "tcp"), self.record, AtOnce(), self.now_s)

    def goes_on(self, seconds: float) -> None:
        for _ in range(round(seconds * 10)):
            self.now_s += 0.1
            if self.live:
                self._frame()
            self.status()
            if self._trial.phase != "over":
                self._trial.turn(self.now_s)

    def reported(self, state: str, *, by_event: bool = True) -> None:
        self.live = state == "live"
        self._losses += not self.live
        self.record.log_line({"event": "camera_state", "camera": "cam", "state": state}, self.now_s)
        if by_event:
            kind = "back" if self.live else "lost"
            event = {"type": f"camgraph.camera.{kind}", "data": {"camera": "cam", "state": state}}
            self.record.event(event, self.now_s)

    def status(self) -> None:
        state = "live" if self.live else "lost"
        camera = {"state": state, "losses": self._losses, "facts": {}, "drops_by_reason": dict(self.drops)}
        self.record.status({"cameras": {"cam": camera}, "processes": {}}, self.now_s)

    @property
    def phase(self) -> str:
        return self._trial.phase

    @property
    def struck_s(self) -> float:
        return self._trial.result.from_s

    def result(self) -> Result:
        assert self._trial.phase == "over"
        return self._trial.result

    def _frame(self) -> None:
        self._frames += 1
        time = datetime.fromtimestamp(self.now_s, UTC).isoformat(timespec="milliseconds")
        data = {"camera": "cam", "phase": "update", "frame": {"epoch": 0, "seq": self._frames}}
        self.record.event({"type": "camgraph.incident.update", "time": time, "data": data}, self.now_s)


def test_what_is_told_and_back_is_measured() -> None:
    story = Story(CUT)
    story.goes_on(2)
    assert story.phase == "struck"
    struck_s = story.struck_s
    story.reported("lost")
    lost_s = story.now_s - struck_s
    story.goes_on(1.5)
    story.reported("live")
    story.goes_on(2)
    result = story.result()
    assert result.problems == []
    assert result.reported_s == pytest.approx(lost_s + 0.1)
    assert result.back_s == pytest.approx(lost_s + 1.6)


def test_a_fault_that_nobody_tells_of_is_found() -> None:
    story = Story(CUT)
    story.goes_on(60)
    assert any("told [] of ['lost']" in problem for problem in story.result().problems)


def test_one_that_the_log_alone_tells_is_found() -> None:
    story = Story(CUT)
    story.goes_on(2)
    story.reported("lost", by_event=False)
    story.goes_on(1)
    story.reported("live", by_event=False)
    story.goes_on(60)
    assert any("told" in problem for problem in story.result().problems)


def test_one_that_is_told_late_and_back_late_is_found() -> None:
    story = Story(CUT)
    story.goes_on(13)
    story.reported("lost")
    story.goes_on(7)
    story.reported("live")
    story.goes_on(2)
    late = story.result().late
    assert [words.split(",")[1] for words in late] == [" expected at most 10", " expected at most 5"]


def test_one_that_is_not_back_is_found() -> None:
    story = Story(CUT)
    story.goes_on(2)
    story.reported("lost")
    story.goes_on(60)
    assert any("not back" in problem for problem in story.result().problems)


def test_one_that_should_have_stayed_live_is_found() -> None:
    story = Story(ODD)
    story.goes_on(2)
    story.reported("lost")
    story.reported("live")
    story.goes_on(5)
    assert story.result().problems == ["it was ['lost'] and should have stayed live"]


def test_frames_that_are_dropped_for_another_reason_are_found() -> None:
    story = Story(ODD)
    story.goes_on(2)
    story.drops = {"queue_full": 3, "damaged": 1}
    story.goes_on(5)
    assert story.result().problems == ["dropped for other reasons than none: {'damaged'}"]


def test_late_reports_of_earlier_drops_do_not_count() -> None:
    story = Story(ODD)
    story.drops = {"damaged": 1}
    story.goes_on(1)
    story.drops = {"damaged": 2, "queue_full": 4}
    story.goes_on(1.4)
    assert story.phase == "waiting"
    story.drops = {"damaged": 2, "queue_full": 5}
    story.goes_on(6)
    assert story.result().problems == []


def test_a_fault_on_one_that_is_not_well_is_no_trial() -> None:
    story = Story(CUT)
    story.reported("lost")
    story.goes_on(40)
    assert any("not well before" in problem for problem in story.result().problems)
