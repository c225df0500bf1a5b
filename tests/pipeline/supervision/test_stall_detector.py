"""When a graph counts as stuck; time is moved by hand."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from camgraph.pipeline.supervision.stall_detector import Progress, StallDetector, Stuck

PATIENCE_S = 30.0


class Watched:
    """Three processes in a row, looked at each second."""

    def __init__(self, *, finite: bool) -> None:
        self.now = 0.0
        self.detector = StallDetector(PATIENCE_S, finite=finite, now=0.0)
        self.processes: dict[str, dict[str, Any]] = {
            "src": {"source": True, "in_flight": 3, "readers": frozenset({"mid"})},
            "mid": {"source": False, "in_flight": 0, "readers": frozenset({"out"})},
            "out": {"source": False, "in_flight": 0, "readers": frozenset()},
        }
        self.work = dict.fromkeys(self.processes, 0)

    def sights(self) -> Sequence[Progress]:
        return [Progress(n, done=self.work[n], seen=self.work[n], **p) for n, p in self.processes.items()]

    def wait(self, seconds: int, *working: str) -> list[Stuck]:
        """Let time pass while some of them work; what was said."""
        reported = []
        for _ in range(seconds):
            self.now += 1
            for name in working:
                self.work[name] += 1
            reported.append(self.detector.judge(self.sights(), self.now))
        return [stuck for stuck in reported if stuck]


def test_files_that_do_not_move_are_stuck_where_messages_stay() -> None:
    watched = Watched(finite=True)
    assert watched.wait(30) == []
    assert watched.wait(3) == [Stuck(("mid",), {"src": 3, "mid": 0, "out": 0}, over=False)]


def test_second_stall_ends_a_finite_run() -> None:
    watched = Watched(finite=True)
    assert len(watched.wait(35)) == 1
    assert watched.wait(100, "mid") == []
    assert [stuck.over for stuck in watched.wait(35)] == [True]


@pytest.mark.parametrize("mover", ["src", "mid", "out"])
@pytest.mark.parametrize("finite", [True, False])
def test_what_moves_is_not_stuck(mover: str, finite: bool) -> None:
    assert Watched(finite=finite).wait(100, mover, "mid") == []


@pytest.mark.parametrize("finite", [True, False])
def test_where_nothing_is_in_flight_nothing_is_stuck(finite: bool) -> None:
    watched = Watched(finite=finite)
    watched.processes["src"]["in_flight"] = 0
    assert watched.wait(1000) == []
    assert watched.wait(1000, "src") == []


def test_excused_process_is_not_stalled() -> None:
    watched = Watched(finite=True)
    watched.processes["out"]["excused"] = True
    assert watched.wait(1000) == []
    watched.processes["out"]["excused"] = False
    assert watched.wait(30) == []
    assert len(watched.wait(2)) == 1


def test_live_cameras_that_bring_nothing_are_still_and_not_stuck() -> None:
    watched = Watched(finite=False)
    assert watched.wait(10_000) == []
    assert watched.wait(20, "src") == []


def test_live_stalls_restart_with_backoff() -> None:
    watched = Watched(finite=False)
    times = []
    for _ in range(1000):
        times += [watched.now for stuck in watched.wait(1, "src") if not stuck.over]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert times[0] == pytest.approx(PATIENCE_S, abs=3)
    assert gaps[:3] == pytest.approx([60, 120, 240], abs=3)


def test_he_whose_readers_all_wait_themselves_is_not_named() -> None:
    watched = Watched(finite=True)
    watched.processes["mid"]["in_flight"] = 2
    [stuck] = watched.wait(35)
    assert stuck.culprits == ("out",)


@pytest.mark.parametrize("finite", [False, True])
def test_looking_for_an_hour_leaves_nothing_in_memory(finite: bool) -> None:
    watched = Watched(finite=finite)
    watched.wait(100, *watched.work)
    gc.collect()  # empties what Python sets aside
    before = sys.getallocatedblocks()
    watched.wait(1500, *watched.work)
    assert sys.getallocatedblocks() - before < 200
