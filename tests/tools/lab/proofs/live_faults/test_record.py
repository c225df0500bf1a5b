"""What a run has told of its cameras."""

from __future__ import annotations

import pytest

from camgraph.tools.lab.proofs.live_faults.record import CameraStatus, Record, StateReport


@pytest.mark.parametrize(
    ("states", "losses", "message"),
    [
        ([], 0, ""),
        (["lost", "live", "stalled", "live"], 2, ""),
        (["lost", "live"], 2, "2 losses, events: lost back"),
        (["lost", "lost", "live", "live"], 2, "2 losses, events: lost lost back back"),
    ],
)
def test_one_loss_is_one_event_and_one_more(states: list[str], losses: int, message: str) -> None:
    record = Record(0.0)
    record.looks["a"] = CameraStatus(0.0, losses=losses)
    record.reported = [StateReport(0.0, "a", "event", state) for state in states]
    assert record.unpaired("a") == message


def test_spared_while_status_shows_no_new_drops() -> None:
    record = Record(0.0)

    def status_at(at_s: float, **drops: int) -> None:
        camera = {"state": "live", "losses": 0, "facts": {}, "drops_by_reason": drops}
        record.status({"cameras": {"a": camera}, "processes": {}}, at_s)

    assert not record.is_spared("a", 0.5), "nothing was told"
    status_at(1.0, damaged=3)
    assert not record.is_spared("a", 0.5)
    status_at(2.0, damaged=3, queue_full=9)
    assert record.is_spared("a", 1.5)
    assert not record.is_spared("a", 2.5), "nothing was told since"
    status_at(3.0, damaged=4)
    assert not record.is_spared("a", 2.5)


def test_who_is_away_is_told_by_the_log() -> None:
    record = Record(0.0)
    for at_s, state in enumerate(("connecting", "live", "stalled", "lost", "live")):
        record.log_line({"event": "camera_state", "camera": "a", "state": state}, float(at_s))
    assert [reported.state for reported in record.away("a", 0.0)] == ["stalled", "lost"]
    assert [reported.state for reported in record.away("a", 2.5)] == ["lost"]
    assert record.away("b", 0.0) == []
