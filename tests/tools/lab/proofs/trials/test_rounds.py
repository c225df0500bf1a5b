"""What is measured of rounds of harm; the harm itself is in tests/live."""

from __future__ import annotations

from typing import Any

import pytest

from camgraph.tools.lab.proofs.trials.rounds import Count, is_back, lost, over, rates


def test_rates_skip_rounds_that_harm_own_capture() -> None:
    marks = [
        {"a": Count(0, 0, 0), "b": Count(0, 0, 0)},
        {"a": Count(10, 20, 20), "b": Count(10, 100, 90)},
        {"a": Count(20, 120, 110), "b": Count(20, 200, 180)},
    ]
    assert rates(marks, ["capture.a", "infer.0"], "captured") == {"a": 10, "b": 10}
    assert rates(marks, ["capture.a", "infer.0"], "processed") == {"a": 9, "b": 9}
    assert rates(marks, ["capture.a", "capture.a"], "processed") == {"b": 9}


def test_a_rate_is_held_against_the_one_before() -> None:
    assert over({"a": 9, "b": 5, "c": 1}, {"a": 10, "b": 0}) == {"a": 0.9}


def status(pid: int, frames: int, *, state: str = "running", camera: str = "live", items: int = 5) -> dict[str, Any]:
    return {
        "processes": {"capture.a": {"pid": pid, "state": state}, "people.0": {"pid": pid, "state": state}},
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
def test_process_is_back_once_successor_has_output(now: dict[str, Any], capture: bool, people: bool) -> None:
    before = status(1, 10)
    assert is_back("capture.a", before, now) == capture
    assert is_back("people.0", before, now) == people


def test_another_camera_that_was_lost_meanwhile_is_found() -> None:
    before, now = ({"cameras": {name: {"losses": n} for name in "ab"}} for n in (1, 2))
    assert lost("capture.a", before, now) == ["b"]
    assert lost("infer.0", before, now) == ["a", "b"]
    assert lost("infer.0", before, before) == []
