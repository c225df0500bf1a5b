from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from camgraph_test_stages.brokers import free_port

from camgraph.tools.lab.proofs.outage import Outcome, Webhook, _killed, _killed_by_pid, prove


def test_lost_repeated_and_disordered_events_are_counted() -> None:
    received = [("a", 0, "a0"), ("a", 2, "a2"), ("a", 1, "a1"), ("b", 0, "b0"), ("a", 2, "a2")]
    outcome = Outcome(frozenset(["a0", "a1", "a2", "b0", "b1"]), received=received)
    assert (outcome.lost, outcome.repeated, outcome.out_of_order, outcome.good) == (1, 1, 1, False)
    in_order = [received[number] for number in (0, 2, 1, 3, 1)]
    assert Outcome(frozenset(["a0", "a1", "a2", "b0"]), kills={"run": 1}, received=in_order).good


@pytest.mark.parametrize(
    "wrong",
    [
        {"received": []},
        {"committed": frozenset(), "received": []},
        {"received": [("a", 0, "a0"), ("a", 1, "a1"), ("a", 1, "another")]},
        {"received": [("a", 1, "a1"), ("a", 0, "a0")]},
        {"kills": {}},
        {"missed": ["outbox"]},
    ],
)
def test_nothing_is_proven_by_chance(wrong: dict[str, Any]) -> None:
    right = {"committed": frozenset(["a0", "a1"]), "kills": {"run": 1}, "received": [("a", 0, "a0"), ("a", 1, "a1")]}
    assert Outcome(**right).good
    assert not Outcome(**{**right, **wrong}).good


def test_a_kill_that_hits_nothing_is_none() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert not _killed(gone)
    assert not _killed_by_pid(gone.pid)
    assert not _killed_by_pid(0)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as living:
        assert _killed_by_pid(living.pid)


def test_a_short_outage(tmp_path: Path) -> None:
    side = Webhook(tmp_path, free_port())
    outcome = prove(tmp_path, side, 900, kills=3)
    assert outcome.good, outcome
    assert outcome.events >= 900
    assert outcome.kills == {"other side": 1, "alert": 1, "run": 1}
    assert outcome.kills
