from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tools.proofs.outage import Outcome, Webhook, prove


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_lost_repeated_and_disordered_events_are_counted() -> None:
    received = [("a", 0, "a0"), ("a", 2, "a2"), ("a", 1, "a1"), ("b", 0, "b0"), ("a", 2, "a2")]
    outcome = Outcome(frozenset(["a0", "a1", "a2", "b0", "b1"]), received=received)
    assert (outcome.lost, outcome.repeated, outcome.out_of_order, outcome.good) == (1, 1, 1, False)
    in_order = [received[number] for number in (0, 2, 1, 3, 1)]
    assert Outcome(frozenset(["a0", "a1", "a2", "b0"]), received=in_order).good


@pytest.mark.benchmark
def test_a_short_outage(tmp_path: Path) -> None:
    side = Webhook(tmp_path, free_port())
    outcome = prove(tmp_path, side, 900, kills=3)
    assert outcome.good, outcome
    assert outcome.events >= 900
    assert outcome.kills
