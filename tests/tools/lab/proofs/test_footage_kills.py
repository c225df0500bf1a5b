"""One kill of the loop that `tools.lab.proofs.footage_kills` runs, and what it would not let pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from camgraph.tools.lab.blinking import FPS, PERIOD_S, write_clip
from camgraph.tools.lab.proofs import clip_playback
from camgraph.tools.lab.proofs.footage_kills import Findings, prove, report, why_not_playing


def test_events_and_clips_outlive_a_kill() -> None:
    found = prove(1, cameras=1, groups=[("footage.0", "outbox.0")])
    assert found.faults == []
    assert found.incidents >= 2
    assert found.files["clip ready"] >= 1
    assert "**All of this is proven.**" in report(found)


def test_faults_are_on_the_page() -> None:
    assert "- a clip is gone" in report(Findings(faults=["a clip is gone"]))


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    path = tmp_path / "clip.mp4"
    write_clip(path)
    return path


def test_a_whole_clip_plays(clip: Path) -> None:
    assert list(why_not_playing(clip)) == []


def test_a_clip_that_is_cut_off_does_not_play(clip: Path) -> None:
    clip.write_bytes(clip.read_bytes()[:2000])
    assert "does not play" in next(why_not_playing(clip))


@pytest.mark.skipif(clip_playback.browser() is None, reason="Chromium is not installed")
@pytest.mark.processes
def test_a_browser_plays_a_clip_to_its_end(clip: Path, tmp_path: Path) -> None:
    other = tmp_path / "broken.mp4"
    other.write_bytes(b"no clip")
    good, broken = clip_playback.play([clip, other], tmp_path / "shown.png")
    assert good.error == ""
    assert good.seconds == pytest.approx(PERIOD_S, abs=0.2)
    assert good.frames >= PERIOD_S * FPS * 0.8
    assert broken.error
    assert (tmp_path / "shown.png").stat().st_size > 10_000
