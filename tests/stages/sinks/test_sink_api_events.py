"""An event counts as delivered when the program is done with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from camgraph.events import Event as ProgramEvent
from camgraph.events import event_of
from camgraph.inbox import Board, Inbox, Selection
from camgraph.pipeline.errors import Unavailable
from camgraph.pipeline.testing import opened, stamp
from camgraph.stages.messages import Event
from camgraph.stages.sinks.sink_api_events import SinkApiEvents


def event(number: int) -> Event:
    return Event(stamp(number), f"e{number}", f"e{number}", "single", b'{"id": "e%d"}' % number)


def test_an_event_is_handed_in_until_the_program_is_done_with_it(tmp_path: Path) -> None:
    board = Board()
    inbox: Inbox[ProgramEvent] = Inbox("events", board, window=8, read=event_of, identity=lambda one: one.id)
    inbox.listen(tmp_path / "s", "every")
    reader = Selection([inbox], [inbox])
    with opened(SinkApiEvents, {"address": str(tmp_path / "s")}, folder=tmp_path) as stage:
        for _ in range(2):
            with pytest.raises(Unavailable, match="has not acknowledged") as busy:
                stage.process([event(0)])
            assert busy.value.patient
        with board.lock:
            assert reader.ready() is inbox
            got = inbox.take()
            assert (got.id, got.camera, got.earlier_run) == ("e0", "cam", False)
            assert reader.ready() is None  # it was sent once
            reader.confirm()
        assert list(stage.process([event(0)])) == []
        assert stage.context.counts == {("written", "cam"): 1}
        with board.lock:
            inbox.discard()
        stage.process([event(1)])
        with board.lock:
            inbox.close()
        with pytest.raises(Unavailable):
            stage.process([event(2)])
    assert inbox.discarded == 1
