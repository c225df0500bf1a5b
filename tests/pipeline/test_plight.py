"""What a process is in for, as its supervisor sees it: opened, dead and opened again, dying again and again."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.graph import load_plan
from pipeline.supervision.process import Process

GRAPH = """
version: 1
name: plight
cameras: {a: {frames: 1}}
stages:
  src: {use: count_source}
  out: {use: collect, from: src, with: {path: out}}
"""


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Process:
    (tmp_path / "g.yaml").write_text(GRAPH)
    monkeypatch.setattr("pipeline.supervision.process.time.monotonic", lambda: NOW)
    process = Process(load_plan(tmp_path / "g.yaml").units[-1], 0)
    process.state, process.started_at = "starting", NOW - 40
    return process


NOW = 1000.0


def opens(process: Process, at: float) -> None:
    process.state, process.ready_at = "running", at


def dies(process: Process, of: str, *, opened: bool = True) -> None:
    process.back_off(opened=opened, most_s=60)
    process.died_of = of


def told(process: Process, now: float = NOW) -> str:
    plight = process.plight(now)
    return f"{plight.why} ({plight.since_s:.0f} s)" if plight else ""


def test_the_first_start_is_no_trouble_of_its_own(process: Process) -> None:
    plight = process.plight(NOW)
    assert plight
    assert (plight.why, plight.since_s, plight.opening) == ("is being opened", 40.0, True)
    opens(process, NOW)
    assert told(process) == ""


def test_one_that_died_says_of_what_until_it_is_open_again(process: Process) -> None:
    opens(process, NOW - 10)
    dies(process, "signal 9")
    assert told(process, NOW + 1) == "has died of: signal 9; it is started again in 0 s (1 s)"
    process.state = "starting"
    assert told(process, NOW + 30) == "has died of: signal 9; it is being opened again (30 s)"
    opens(process, NOW + 31)
    assert told(process, NOW + 31) == "", "one death is over when it is open again"


def test_one_that_keeps_dying_is_told_of_although_it_runs_between(process: Process) -> None:
    for _ in range(4):
        opens(process, NOW - 1)
        dies(process, "signal 11")
    assert told(process, NOW) == "has died 4 times in a row, last of: signal 11; it is started again in 0 s (0 s)"
    opens(process, NOW + 1)
    assert told(process, NOW + 5) == "runs, but has died 4 times in a row, last of: signal 11 (5 s)"
    assert told(process, NOW + 100) == "", "it has been steady since"


def test_one_that_does_not_open_says_why_and_when_it_is_tried_again(process: Process) -> None:
    for _ in range(4):
        process.failure = (2, "no such model")
        dies(process, "exit status 2", opened=False)
    assert told(process) == "has died 4 times in a row, last of: no such model; it is started again in 2 s (0 s)"
    opens(process, NOW + 3)
    assert told(process, NOW + 4) == "", "what kept it from opening is over"


def test_one_that_is_needed_no_longer_is_in_no_plight(process: Process) -> None:
    process.leaving = True
    assert told(process) == ""
    process.leaving, process.state = False, "finished"
    assert told(process) == ""


def test_what_the_machine_lacks_is_named(process: Process) -> None:
    opens(process, NOW - 10)
    dies(process, "signal 9")
    process.put_off(NOW + 1, "too few descriptors")
    assert told(process, NOW + 3) == "cannot be started: too few descriptors (3 s)"
