from __future__ import annotations

import os
from pathlib import Path

import pytest
from camgraph_test_stages.sink_graphs import planned_settings

from camgraph.pipeline.errors import Unavailable
from camgraph.stages.sinks.delivery.footage_files import NOT_IN_TIME, TOO_LARGE, FootageFiles, TooLarge

JPEG = b"\xff\xd8 a picture"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    folder = tmp_path / "ward"
    (folder / "footage").mkdir(parents=True)
    (folder / "footage/a.jpg").write_bytes(JPEG)
    (folder / "b.jpg").write_bytes(JPEG)
    return folder


def test_a_picture_of_the_folder_is_read(base: Path) -> None:
    for folders, name in ((["footage"], "footage/a.jpg"), (None, "footage/a.jpg"), (None, "b.jpg")):
        assert FootageFiles(folders, base).picture(name, 1000) == JPEG


def test_the_folder_may_be_anywhere_and_a_link(base: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    (disk / "c.jpg").write_bytes(JPEG)
    (base / "linked").symlink_to(disk)
    assert FootageFiles([str(disk)], base).picture(f"{disk}/c.jpg", 1000) == JPEG
    assert FootageFiles(["../disk"], base).picture("../disk/c.jpg", 1000) == JPEG
    assert FootageFiles(["linked"], base).picture("linked/c.jpg", 1000) == JPEG


@pytest.mark.parametrize("folders", [None, ["footage"]])
@pytest.mark.parametrize(
    "name",
    [
        "../x.jpg",
        "footage/../../x.jpg",
        "/etc/hosts",
        "footage/link",
        "asset:a.jpg",
        "~nobody-77/a.jpg",
        "a\0b",
        "",
        ".",
    ],
)
def test_files_elsewhere_are_refused(base: Path, name: str, folders: list[str] | None) -> None:
    (base.parent / "x.jpg").write_bytes(JPEG)
    (base / "footage/link").symlink_to(base.parent / "x.jpg")
    with pytest.raises(ValueError, match="neither in a folder of `sink_footage` nor beside the graph"):
        FootageFiles(folders, base).picture(name, 1000)


def test_only_jpegs_of_a_fair_size_are_pictures(base: Path) -> None:
    files = FootageFiles(["footage"], base)
    (base / "footage/env.jpg").write_text("PASSWORD=x")
    os.mkfifo(base / "footage/pipe.jpg")
    with pytest.raises(ValueError, match="no JPEG"):
        files.picture("footage/env.jpg", 1000)
    with pytest.raises(ValueError, match="no file"):
        files.picture("footage/pipe.jpg", 1000)
    with pytest.raises(TooLarge):
        files.picture("footage/a.jpg", 5)
    with pytest.raises(FileNotFoundError):
        files.picture("footage/later.jpg", 1000)


def test_picture_or_why_says_what_is_wrong(base: Path) -> None:
    files = FootageFiles(["footage"], base)
    (base / "footage/env.jpg").write_text("PASSWORD=x")
    assert files.picture_or_why("footage/a.jpg", 1000, may_come=True) == (JPEG, "")
    assert files.picture_or_why("footage/a.jpg", 5, may_come=True) == (None, TOO_LARGE)
    assert files.picture_or_why("footage/later.jpg", 1000, may_come=False) == (None, NOT_IN_TIME)
    with pytest.raises(Unavailable, match="being made"):
        files.picture_or_why("footage/later.jpg", 1000, may_come=True)
    picture, why = files.picture_or_why("footage/env.jpg", 1000, may_come=True)
    assert (picture, "no JPEG" in why) == (None, True)


@pytest.mark.parametrize("source", ["actions", "events"])
@pytest.mark.parametrize(
    ("use", "more"),
    [
        ("sink_email", "server: a, sender: a@b.c, to: a@b.c"),
        ("sink_command", "command: [sh]"),
        ("sink_mqtt", "address: 'mqtt://127.0.0.1'"),
    ],
)
def test_sinks_learn_the_folder_from_the_graph(tmp_path: Path, source: str, use: str, more: str) -> None:
    (tmp_path / "disk").mkdir()
    kept = f'kept: {{use: sink_footage, from: actions, with: {{path: "{tmp_path}/disk"}}}}'
    settings = planned_settings(tmp_path, use, more, source=source, beside=kept)
    assert settings["footage_folders"] == [f"{tmp_path}/disk"]
