from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from camgraph.pipeline.errors import UserError
from camgraph.tools.commands.watching.several import MOST, Several, one_each

Clip = Callable[..., Path]


@pytest.fixture
def clips(tmp_path: Path, make_clip: Clip) -> Path:
    """A folder with two videos, a broken one, and things that are none."""
    folder = tmp_path / "clips"
    (folder / "more").mkdir(parents=True)
    for name in ("10.mp4", "2.MKV"):
        make_clip(folder / "new.mp4", frames=2).rename(folder / name)
    (folder / "hurt.mp4").write_bytes(b"\x01\x02" * 500)
    (folder / "notes.txt").write_text("dear diary")
    (folder / "thumb.jpg").write_bytes(b"")
    (folder / ".hidden.mp4").write_bytes(b"")
    return folder


@pytest.mark.parametrize("pattern", ["clips/*.[mM]*", "./clips/?*.m*4", "**/*.mp4"])
def test_a_pattern_becomes_all_that_fit_it(clips: Path, pattern: str) -> None:
    found = one_each([pattern], clips.parent)
    assert all(Path(source).is_file() for source in found.sources)
    assert str(clips / "10.mp4") in found.sources
    assert found.remarks == ()


def test_numbers_in_names_count(clips: Path) -> None:
    (clips / "hurt.mp4").unlink()
    assert [Path(source).name for source in one_each(["clips/*.*[4V]"], clips.parent).sources] == ["2.MKV", "10.mp4"]


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(clips: Path) -> None:
    (clips / "10.mp4").rename(clips / "a[1].mp4")
    assert one_each(["clips/a[1].mp4"], clips.parent) == Several(("clips/a[1].mp4",))


def test_each_video_of_a_folder_is_a_camera_and_the_rest_is_told(clips: Path) -> None:
    found = one_each(["clips"], clips.parent)
    assert found.sources == (str(clips / "2.MKV"), str(clips / "10.mp4"))
    left_out, broken = found.remarks
    assert left_out == (
        "clips: 2 of its files are watched, a camera each; left out: hurt.mp4, more/, notes.txt, thumb.jpg"
    )
    assert broken.startswith(f"{clips}/hurt.mp4: cannot be read as a video")


def test_a_folder_of_videos_alone_needs_no_remark(tmp_path: Path, make_clip: Clip) -> None:
    make_clip(tmp_path / "a.mp4", frames=2)
    assert one_each([str(tmp_path)], tmp_path) == Several((str(tmp_path / "a.mp4"),))


def test_a_folder_of_pictures_stays_one_camera(tmp_path: Path) -> None:
    (tmp_path / "1.png").touch()
    (tmp_path / "notes.txt").touch()
    assert one_each(["."], tmp_path) == Several((".",))


def test_a_folder_without_either_says_where_to_look(tmp_path: Path) -> None:
    (tmp_path / "day1").mkdir()
    with pytest.raises(
        UserError, match=r"holds neither videos nor pictures; its folders \(day1/\) are not looked into"
    ):
        one_each(["."], tmp_path)
    with pytest.raises(UserError, match=r"day1: this folder is empty$"):
        one_each(["day1"], tmp_path)


def test_a_folder_of_broken_videos_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(b"\x01\x02" * 500)
    with pytest.raises(UserError, match=r"a\.mp4: cannot be read as a video"):
        one_each(["."], tmp_path)


@pytest.mark.parametrize("source", [".", "*.mp4"])
def test_too_many_for_one_run_are_refused_before_they_are_opened(tmp_path: Path, source: str) -> None:
    for number in range(MOST + 1):
        (tmp_path / f"{number}.mp4").touch()
    with pytest.raises(UserError, match=f"{MOST + 1} files, and each would be a camera with a process of its own"):
        one_each([source], tmp_path)


def test_a_number_is_a_camera_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "video0").touch()
    (tmp_path / "video12").touch()
    assert one_each(["0", "12"], tmp_path / "elsewhere", tmp_path).sources == ("/dev/video0", "/dev/video12")
    with pytest.raises(UserError, match=rf"^1: the camera /dev/video1 is meant.*\(there are {tmp_path}/video0, "):
        one_each(["1"], tmp_path / "elsewhere", tmp_path)
    (tmp_path / "video0").unlink()
    (tmp_path / "video12").unlink()
    with pytest.raises(UserError, match=r"no such device \(this machine has none\): plug it in"):
        one_each(["0"], tmp_path / "elsewhere", tmp_path)


def test_a_file_whose_name_is_a_number_is_that_file(tmp_path: Path) -> None:
    (tmp_path / "0").touch()
    assert one_each(["0"], tmp_path) == Several(("0",))


@pytest.mark.parametrize("source", ["rtsp://h/x?a=*", "no.mp4", "asset:vtest.avi", "", "rtsp:/v:geheim@h/*", "a\0*"])
def test_anything_else_stays_as_it_is(tmp_path: Path, source: str) -> None:
    assert one_each([source], tmp_path) == Several((source,))


def test_a_device_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    found = one_each(["/dev/video77"], tmp_path)
    assert found.sources == ("/dev/video77",)
    assert found.remarks == ("/dev/video77: no such camera now; it is waited for, until Ctrl-C",)
