from __future__ import annotations

from pathlib import Path

import av
import cv2
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from camgraph.pipeline.errors import EnvironmentProblem, UserError
from camgraph.stages.sinks.writing.recording import Encoding, Recording, choose_encoder
from camgraph.tools.commands.contact_sheet import GAP, SHEET_WIDTH, bar_height, contact_sheet, main, moments


def video(path: Path, size: tuple[int, int] = (320, 240), seconds: int = 4) -> Path:
    """A video whose grey level tells the second: 40, 80, 120, ..."""
    recording = Recording(path, size, Encoding(choose_encoder("auto"), crf=15))
    for n in range(seconds * 10):
        picture = np.full((size[1], size[0], 3), 40 + 40 * (n // 10), np.uint8)
        recording.write(picture, n * 100_000_000)
    recording.close()
    return path


def test_a_row_per_video_and_a_column_per_moment(tmp_path) -> None:
    target = tmp_path / "sheet.png"
    contact_sheet([video(tmp_path / "front.mp4"), video(tmp_path / "yard.mp4", (640, 240))], target, columns=4)
    sheet = cv2.imread(str(target))
    width = (SHEET_WIDTH - GAP) // 4 - GAP
    heights = round(width * 3 / 4), round(width * 3 / 8)
    bars = [bar_height(height, width) for height in heights]
    assert sheet.shape == (sum(heights) + sum(bars) + 4 * GAP, 4 * (width + GAP) + GAP, 3)
    for top in (GAP + bars[0], heights[0] + sum(bars) + 3 * GAP):
        levels = [int(sheet[top + 60, GAP + width // 2 + column * (width + GAP)].mean()) for column in range(4)]
        assert levels == pytest.approx([40, 80, 120, 160], abs=4)
    assert not list(tmp_path.glob("*.part"))


def test_caption_stands_above_the_pictures(tmp_path) -> None:
    target = tmp_path / "sheet.png"
    contact_sheet([video(tmp_path / "front.mp4", seconds=2)], target, columns=2)
    sheet = cv2.imread(str(target))
    width = (SHEET_WIDTH - GAP) // 2 - GAP
    bar = bar_height(round(width * 3 / 4), width)
    for left in (GAP, 2 * GAP + width):
        assert (sheet[GAP : GAP + bar, left : left + 250] > 180).any(), "light letters on grey 40"
    assert not (sheet[GAP + bar :] > 180).any()


def test_a_video_of_one_picture_fills_its_row(tmp_path) -> None:
    recording = Recording(tmp_path / "a.mp4", (64, 64), Encoding(choose_encoder("auto")))
    recording.write(np.full((64, 64, 3), 200, np.uint8), 0)
    recording.close()
    contact_sheet([tmp_path / "a.mp4"], tmp_path / "sheet.png", columns=3)
    sheet = cv2.imread(str(tmp_path / "sheet.png"))
    assert (sheet[100, [100, 800, 1400]] > 190).all()


@given(st.floats(0, 1e5), st.integers(1, 16))
def test_moments_lie_inside_and_evenly(duration_s, columns) -> None:
    times = moments(duration_s, columns)
    assert len(times) == columns
    assert all(0 <= at_s <= duration_s for at_s in times)
    assert np.diff(times) == pytest.approx(np.full(columns - 1, duration_s / columns))


def test_what_is_no_video_is_named(tmp_path) -> None:
    (tmp_path / "text.mp4").write_text("not a video")
    with av.open(str(tmp_path / "sound.wav"), "w") as container:
        container.add_stream("pcm_s16le", rate=8000)
        container.start_encoding()
    for name in ("text.mp4", "gone.mp4", "sound.wav"):
        with pytest.raises(UserError, match=f"{name}: .*; give a"):
            contact_sheet([tmp_path / name], tmp_path / "sheet.png")
    with pytest.raises(UserError, match="name at least one"):
        contact_sheet([], tmp_path / "sheet.png")
    assert not (tmp_path / "sheet.png").exists()


def test_a_target_that_cannot_be_written_is_named(tmp_path) -> None:
    with pytest.raises(EnvironmentProblem, match=r"sheet.png: cannot write: No such file"):
        contact_sheet([video(tmp_path / "a.mp4", seconds=1)], tmp_path / "gone" / "sheet.png")


def test_the_command(tmp_path) -> None:
    clip, target = video(tmp_path / "a.mp4", seconds=1), tmp_path / "sheet.png"
    done = CliRunner().invoke(main, [str(clip), "-o", str(target), "--columns", "2"])
    assert (done.exit_code, done.stdout.strip()) == (0, str(target))
    failed = CliRunner().invoke(main, [str(tmp_path / "gone.mp4"), "-o", str(target)])
    assert failed.exit_code == 2
    assert "gone.mp4: cannot be read as a video: No such file or directory" in failed.stderr
    assert "Traceback" not in failed.stderr


def test_real_clips(tmp_path, test_data) -> None:
    clips = [test_data / "videos" / name for name in ("intel_asl_yes.mkv", "mmaction2_test_video_structuralize.mp4")]
    contact_sheet(clips, tmp_path / "sheet.png", columns=5)
    sheet = cv2.imread(str(tmp_path / "sheet.png"))
    assert sheet.shape[1] > 1500
    assert sheet.std() > 30
