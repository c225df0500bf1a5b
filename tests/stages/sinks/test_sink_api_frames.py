"""Pictures of frames reach a program, annotated or as they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from camgraph_test_stages.program_inboxes import listening, taken, tracks

from camgraph.pipeline.testing import opened, stamp
from camgraph.stages.messages import Frame, Tracks
from camgraph.stages.sinks.sink_api_frames import SinkApiFrames


def joined(seq: int) -> dict[str, Frame | Tracks]:
    return {"frames": Frame.of_bgr(stamp(seq), np.full((64, 96, 3), 90, np.uint8)), "tracks": tracks(seq)}


def test_a_picture_is_drawn_or_left_as_it_is(tmp_path: Path) -> None:
    for annotated, contrast in ((True, 100), (False, 0)):
        folder = tmp_path / str(annotated)
        folder.mkdir()
        inbox = listening(folder, "every")
        settings = {"address": str(folder / "s"), "annotated": annotated}
        with opened(SinkApiFrames, settings, folder=folder) as stage:
            stage.process([joined(0)])
            picture = taken(inbox)
        assert (picture.pixels.shape, picture.seq, picture.scale) == ((64, 96, 3), 0, 1.0)
        assert (np.ptp(picture.pixels) > 0, np.ptp(picture.pixels) >= contrast) == (annotated, True)
        inbox.close()


def test_the_ways_of_people_are_drawn_if_wanted(tmp_path: Path) -> None:
    drawn = []
    for trail_s in (0, 3):
        folder = tmp_path / str(trail_s)
        folder.mkdir()
        inbox = listening(folder, "every")
        with opened(SinkApiFrames, {"address": str(folder / "s"), "trail_s": trail_s}, folder=folder) as stage:
            for seq in range(2):
                item = joined(seq)
                item["tracks"].ids[:] = 1
                item["tracks"].boxes[:] += 20 * seq
                stage.process([item])
                picture = taken(inbox)
        drawn.append(picture.pixels)
        inbox.close()
    changed = (drawn[0] != drawn[1]).any(axis=2)
    assert changed.any()
    assert changed[:40].sum() == 0  # above the feet


def test_a_frame_that_waits_is_a_copy(tmp_path: Path) -> None:
    inbox = listening(tmp_path, "newest")
    with opened(SinkApiFrames, {"address": str(tmp_path / "s"), "annotated": False}, folder=tmp_path) as stage:
        item = joined(3)
        pixels = np.full((64, 96, 3), 90, np.uint8)
        item["frames"] = Frame.of_bgr(stamp(3), pixels)
        stage.process([item])
        pixels[:] = 0
        assert taken(inbox).pixels.min() == 90
    inbox.close()
