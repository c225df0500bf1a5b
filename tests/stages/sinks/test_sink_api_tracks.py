"""People of frames reach a program at its pace."""

from __future__ import annotations

from pathlib import Path

import pytest
from camgraph_test_stages.program_inboxes import listening, taken, tracks
from camgraph_test_stages.waiting import until

from camgraph.pipeline.errors import Unavailable
from camgraph.pipeline.testing import opened
from camgraph.stages.sinks.sink_api_tracks import SinkApiTracks


def test_every_frame_of_files_comes_and_waits_for_room(tmp_path: Path) -> None:
    inbox = listening(tmp_path, "every")
    with opened(SinkApiTracks, {"address": str(tmp_path / "s")}, folder=tmp_path) as stage:
        stage.process([tracks(0), tracks(1)])
        with pytest.raises(Unavailable, match="not asked for more") as busy:
            stage.process([tracks(2), tracks(3)])
        assert busy.value.patient
        assert taken(inbox).seq == 0
        with pytest.raises(Unavailable):
            stage.process([tracks(2), tracks(3)])
        assert taken(inbox).seq == 1
        stage.process([tracks(2), tracks(3)])  # the first was sent already
        assert [taken(inbox).seq for _ in range(2)] == [2, 3]
        assert stage.context.counts == {}
    inbox.close()


def test_newest_frame_of_each_camera_on_request(tmp_path: Path) -> None:
    inbox = listening(tmp_path, "newest")
    with opened(SinkApiTracks, {"address": str(tmp_path / "s")}, folder=tmp_path) as stage:
        for seq in range(5):
            stage.process([tracks(seq, "a"), tracks(seq, "b")])
        got = [taken(inbox) for _ in range(2)]
        assert {(one.camera, one.seq, one.skipped) for one in got} == {("a", 4, 4), ("b", 4, 4)}
        assert got[0].ids.tolist() == [4]
        assert stage.context.counts == {("skipped.not_read", "a"): 4, ("skipped.not_read", "b"): 4}
        stage.process([tracks(5, "a")])
        assert (taken(inbox).seq, inbox.arrival) == (5, None)
    inbox.close()


def test_a_bug_of_the_sending_thread_is_told_and_costs_a_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inbox = listening(tmp_path, "newest")
    with opened(SinkApiTracks, {"address": str(tmp_path / "s")}, folder=tmp_path) as stage:
        assert isinstance(stage, SinkApiTracks)
        whole = stage._feed._pack  # the runtime has no bug to offer
        monkeypatch.setattr(stage._feed, "_pack", lambda item, skipped: whole(item, 1 // item.stamp.seq))
        stage.process([tracks(0)])
        with inbox.board.lock:
            inbox.ask()
        until(lambda: stage._feed._bug is not None)
        with pytest.raises(ZeroDivisionError):
            stage.process([tracks(1)])
        stage.process([tracks(2)])
        assert taken(inbox).seq == 2
    inbox.close()
