"""What `watch` makes of what was asked for, where the run itself does not show it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from camgraph.tools.commands.watching.starting import Asked, _outbox

ASKED = Asked(("a.mp4",), events="events.jsonl")


def test_each_events_file_has_an_outbox_of_its_own(tmp_path: Path) -> None:
    """What waits for one file, since its disk was full, is for that file alone: wherever `watch` is called from."""
    here, there = tmp_path / "here", tmp_path / "there"
    first = _outbox(ASKED, here)
    assert first == _outbox(replace(ASKED, sources=("b.mp4",)), here)
    assert first == _outbox(replace(ASKED, events=str(here / "events.jsonl")), there)
    others = [
        _outbox(ASKED, there),
        _outbox(replace(ASKED, events="other.jsonl"), here),
        _outbox(replace(ASKED, events="-"), here),
        _outbox(replace(ASKED, name="else"), here),
    ]
    assert len({first, *others}) == 5
