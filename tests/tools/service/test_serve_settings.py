"""The settings of `serve` that are refused before the run."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from camgraph.tools.service.serve import Serve, ServeSettings


def problems(folder: Path, **settings: object) -> list[str]:
    return [text for _, text in Serve.check(ServeSettings.model_validate(settings), folder)]


@pytest.mark.parametrize(
    ("name", "content", "is_refused"),
    [("notes.txt", b"milk, bread", True), ("history.sqlite", b"damaged", False), ("empty", b"", False)],
)
def test_no_other_file_is_taken_for_a_history(tmp_path: Path, name: str, content: bytes, *, is_refused: bool) -> None:
    """It would be set aside as a damaged one."""
    (tmp_path / name).write_bytes(content)
    found = problems(tmp_path, history=name)
    assert [text for text in found if "a file of something else" in text] == found
    assert bool(found) is is_refused


def test_a_database_of_any_name_is_a_history(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "past")) as db:
        db.execute("CREATE TABLE a (b)")
    assert problems(tmp_path, history="past") == []


def test_beyond_this_machine_tokens_are_needed(tmp_path: Path) -> None:
    assert any("set `tokens`" in text for text in problems(tmp_path, address="0.0.0.0:8350"))
