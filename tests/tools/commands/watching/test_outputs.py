from __future__ import annotations

from pathlib import Path

import pytest

from camgraph.pipeline.errors import UserError
from camgraph.tools.commands.watching.outputs import ready_events, ready_tracks, ready_videos


def test_events_behind_others_are_noticed(tmp_path: Path) -> None:
    assert not ready_events("-", tmp_path)
    assert not ready_events("new/events.jsonl", tmp_path)
    assert (tmp_path / "new").is_dir()
    (tmp_path / "events.jsonl").touch()
    assert not ready_events("events.jsonl", tmp_path)
    (tmp_path / "events.jsonl").write_text("{}\n")
    assert ready_events("events.jsonl", tmp_path)
    assert not ready_events("/dev/null", tmp_path)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("folder", "folder: is a folder, expected a file"),
        ("/nowhere/events.jsonl", "/nowhere: no such folder"),
        ("file/events.jsonl", "file: cannot use this folder"),
        ("/proc/version", "no permission to write there|Permission"),
    ],
)
def test_places_where_no_events_can_be_written(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    if text == "/proc/version" and (tmp_path.owner() == "root"):
        pytest.skip("root may write everywhere")
    with pytest.raises(UserError, match=rf"--events: .*({why})"):
        ready_events(text, tmp_path)


def test_a_folder_for_videos_is_made(tmp_path: Path) -> None:
    ready_videos("a/b", tmp_path)
    assert (tmp_path / "a" / "b").is_dir()


@pytest.mark.parametrize(
    ("text", "why"),
    [("{x}", "cannot hold braces"), ("file", "is a file, expected a folder"), ("/nowhere/v", "no such")],
)
def test_places_where_no_videos_can_be_written(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=rf"--video.*{why}"):
        ready_videos(text, tmp_path)


def test_tracks_beside_those_of_an_earlier_run_are_noticed(tmp_path: Path) -> None:
    assert not ready_tracks("t/{camera}.txt", tmp_path, "watch", ["a", "b"])
    (tmp_path / "t" / "b.txt").touch()
    assert ready_tracks("t/{camera}.txt", tmp_path, "watch", ["a", "b"])
    assert not ready_tracks("t/{camera}.jsonl", tmp_path, "watch", ["a", "b"])
    assert not ready_tracks("one.txt", tmp_path, "watch", ["a"])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("t.csv", r"its end names no format; expected one of \.txt \(mot\), \.jsonl \(jsonl\)"),
        ("t.txt", r"there are 2 cameras, and each needs a file of its own: --tracks 't\.\{camera\}\.txt'"),
        ("{camera}/{x}.txt", r"there is no \{x\}"),
        ("/nowhere/{camera}.txt", "no such folder"),
    ],
)
def test_places_where_no_tracks_can_be_written(text: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"--tracks.*{why}"):
        ready_tracks(text, tmp_path, "watch", ["a", "b"])
