"""The library of actions over clips."""

from __future__ import annotations

from pathlib import Path

from stages.rulebook.library import library
from tools.benchmarks.action_clips import rules_of, videos_in


def test_clips_are_found_in_folders(tmp_path: Path) -> None:
    for name in ("b.mkv", "a.MP4", "notes.txt"):
        (tmp_path / name).touch()
    alone = tmp_path / "b.mkv"
    assert [clip.name for clip in videos_in([tmp_path, alone])] == ["a.MP4", "b.mkv", "b.mkv"]


def test_every_action_has_its_place() -> None:
    assert set(rules_of(tuple(library().templates)).rules) == set(library().templates)
