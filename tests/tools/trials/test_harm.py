"""The arithmetic of kills; the kills themselves are in tests/live."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tools.live_kills import KillProof, Limits, faults_of, report
from tools.trials.delivery import Delivered
from tools.trials.harm import Count, Round, Series, is_back, newest_epoch, rates


def test_a_camera_is_not_judged_by_the_rounds_in_which_its_own_capture_was_harmed() -> None:
    marks = [
        {"a": Count(0, 0, 0), "b": Count(0, 0, 0)},
        {"a": Count(10, 20, 20), "b": Count(10, 100, 90)},
        {"a": Count(20, 120, 110), "b": Count(20, 200, 180)},
    ]
    assert rates(marks, ["capture.a", "infer.0"], own=False) == {"a": 10, "b": 10}
    assert rates(marks, ["capture.a", "infer.0"], own=True) == {"a": 9, "b": 9}
    assert rates(marks, ["capture.a", "capture.a"], own=True) == {"b": 9}


def status(pid: int, frames: int, *, state: str = "running", camera: str = "live", items: int = 5) -> dict[str, Any]:
    return {
        "units": {"capture.a": {"pid": pid, "state": state}, "people.0": {"pid": pid, "state": state}},
        "cameras": {"a": {"state": camera, "frames": frames}},
        "stages": {"people": {"items": items}},
    }


@pytest.mark.parametrize(
    ("now", "capture", "people"),
    [
        (status(1, 50, items=9), False, False),
        (status(2, 50, items=9, state="starting"), False, False),
        (status(2, 50, camera="connecting"), False, False),
        (status(2, 10), False, False),
        (status(2, 11, items=6), True, True),
        (status(0, 11, items=6), False, False),
    ],
)
def test_a_process_is_back_when_another_one_has_brought_something(
    now: dict[str, Any], capture: bool, people: bool
) -> None:
    before = status(1, 10)
    assert is_back("capture.a", before, now) == capture
    assert is_back("people.0", before, now) == people


def test_the_newest_epoch_is_that_of_the_camera_alone(tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    assert newest_epoch(events, "a") == 0
    told = [{"camera": "a", "frame": {"epoch": 3}}, {"camera": "b", "frame": {"epoch": 9}}, {"camera": "a"}]
    events.write_text("".join(json.dumps({"data": data}) + "\n" for data in told) + '{"data": {"cam')
    assert newest_epoch(events, "a") == 3


def good() -> KillProof:
    one = Series("log", [Round("log.0", 1.0, 4.0)], {"a": 0.99})
    gone = [Round("supervisor", 5.0, 0.5)]
    problem = "tracks lost what it remembered (signal 9) and began anew"
    return KillProof([one], [one], gone, gone, deaths=2, exit_status=0, problems=[problem])


def test_a_good_proof_has_no_faults_and_its_page_says_so() -> None:
    assert faults_of(good(), Limits()) == []
    page = report(good(), [], 8)
    assert "All was as it should be" in page
    assert "| log | 1 | 1.00 s, 1.00 s | 99.0% |" in page


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            {"killed": [Series("log", [Round("log.0", 3.5)], {"a": 1})]},
            "log: 1 of 1 were back after more than 3 s, the last after 3.5 s",
        ),
        ({"killed": [Series("log", [Round("log.0", 1.0)], {"a": 0.9})]}, "a had 90.0% of its rate"),
        ({"killed": [Series("log", [Round("log.0", 1, faults=("log.0: zombies [5]",))], {})]}, "zombies"),
        ({"supervisor_killed": [Round("supervisor", 1, 2.5)]}, "2.5 s after the supervisor's death"),
        ({"supervisor_frozen": [Round("supervisor", 1, faults=("blamed others",))]}, "blamed others"),
        ({"deaths": 3}, "2 processes were harmed, and 3 died"),
        ({"delivered": Delivered(2, ("x",), 0, (), 0)}, "1 lost"),
        ({"left": ["process 7"]}, "left over: process 7"),
        ({"problems": ["camera a: gone"]}, "the run says: camera a: gone"),
    ],
)
def test_each_thing_that_is_wrong_is_said(change: dict[str, Any], told: str) -> None:
    proof = good()
    for name, value in change.items():
        setattr(proof, name, value)
    assert told in "; ".join(faults_of(proof, Limits()))
