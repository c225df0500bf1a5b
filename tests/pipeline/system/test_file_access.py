"""Pictures and events show people: other users of the machine read them only if the graph says so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from camgraph.pipeline.system.file_access import ReadableBy, kept_from_others


def modes(folder: Path) -> tuple[int, int]:
    """Of a new file and of a new folder."""
    (folder / "file").touch()
    (folder / "folder").mkdir()
    found = (folder / "file").stat().st_mode & 0o777, (folder / "folder").stat().st_mode & 0o777
    (folder / "file").unlink()
    (folder / "folder").rmdir()
    return found


@pytest.mark.parametrize(
    ("umask", "readable_by", "expected"),
    [
        (0o022, "owner", (0o600, 0o700)),
        (0o022, "group", (0o640, 0o750)),
        (0o022, "everyone", (0o644, 0o755)),
        (0o002, "group", (0o640, 0o750)),
        (0o002, "everyone", (0o664, 0o775)),
        (0o077, "group", (0o600, 0o700)),
        (0o077, "everyone", (0o600, 0o700)),
    ],
)
def test_nobody_gets_more_than_is_said(
    tmp_path: Path, umask: int, readable_by: ReadableBy, expected: tuple[int, int]
) -> None:
    before = os.umask(umask)
    try:
        with kept_from_others(readable_by):
            assert modes(tmp_path) == expected
        assert os.umask(umask) == umask, "it is as it was before"
    finally:
        os.umask(before)
