"""The lists of formats: what is on them, what never is, and that FFmpeg goes by them."""

from __future__ import annotations

from pathlib import Path

import av
import pytest

from camgraph.stages.video.formats import LIVE_FORMATS, MOST_FILE_PIXELS, TEXT, file_options
from camgraph.stages.video.scripts import ScriptKind

LEADING_ON = {"hls", "concat", "dash", "imf", "sdp", "rtsp", "lavfi", "vapoursynth", "applehttp", "webm_dash_manifest"}
"""FFmpeg opens other files or hosts by these, or runs what stands in the file."""
FOR_FILES = file_options(None)["format_whitelist"].split(",")


def test_nothing_on_a_list_leads_on_to_other_files() -> None:
    assert not LEADING_ON & set(FOR_FILES)
    assert not LEADING_ON & set(LIVE_FORMATS.split(","))


@pytest.mark.parametrize(
    ("script", "more", "protocols"), [("hls", "hls", "file,crypto"), ("ffconcat", "concat", "file,crypto")]
)
def test_a_script_is_read_by_its_own_format_alone(script: ScriptKind, more: str, protocols: str) -> None:
    options = file_options(script)
    assert options["format_whitelist"].split(",") == [*FOR_FILES, more]
    assert options["protocol_whitelist"] == protocols
    assert file_options(None)["protocol_whitelist"] == "file"


def test_a_camera_sends_what_a_file_may_hold_and_no_text() -> None:
    live = LIVE_FORMATS.split(",")
    assert set(live) < set(FOR_FILES)
    assert TEXT not in live
    assert len(live) == len(set(live))
    assert len(FOR_FILES) == len(set(FOR_FILES))


def test_names_are_those_of_ffmpeg() -> None:
    """A misspelt name would keep a format out. `webm` and others are second names of one demuxer."""
    known = {part for name in av.formats_available for part in name.split(",")}
    # Builds of FFmpeg leave some out.
    assert len(set(FOR_FILES) - known) <= 3, sorted(set(FOR_FILES) - known)


def test_ffmpeg_goes_by_the_list(tmp_path: Path) -> None:
    """A format that it knows, and that is not on the list: subtitles."""
    path = tmp_path / "a.mp4"
    path.write_text("1\n00:00:00,000 --> 00:00:01,000\nhello\n\n")
    with av.open(str(path)) as container:
        assert container.format.name == "srt"
    with pytest.raises(av.FFmpegError):
        av.open(str(path), options=file_options(None))


def test_one_picture_may_be_as_large_as_the_largest_sensor() -> None:
    assert file_options(None)["max_pixels"] == str(MOST_FILE_PIXELS)
    assert 12_000 * 11_000 < MOST_FILE_PIXELS < 200_000_000
