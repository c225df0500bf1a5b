"""What a run has told of its cameras."""

from __future__ import annotations

import pytest

from tools.live_faults.record import CameraStatus, Record, StateTold


@pytest.mark.parametrize(
    ("states", "losses", "said"),
    [
        ([], 0, ""),
        (["lost", "live", "stalled", "live"], 2, ""),
        (["lost", "live"], 2, "2 losses, events: lost back"),
        (["lost", "lost", "live", "live"], 2, "2 losses, events: lost lost back back"),
    ],
)
def test_one_loss_is_one_event_and_one_more(states: list[str], losses: int, said: str) -> None:
    record = Record(0.0)
    record.looks["a"] = CameraStatus(0.0, losses=losses)
    record.told = [StateTold(0.0, "a", "event", state) for state in states]
    assert record.unpaired("a") == said


def test_who_is_away_is_told_by_the_log() -> None:
    record = Record(0.0)
    for at_s, state in enumerate(("connecting", "live", "stalled", "lost", "live")):
        record.log_line({"event": "camera_state", "camera": "a", "state": state}, float(at_s))
    assert [told.state for told in record.away("a", 0.0)] == ["stalled", "lost"]
    assert [told.state for told in record.away("a", 2.5)] == ["lost"]
    assert record.away("b", 0.0) == []
