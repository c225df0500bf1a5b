from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipeline.graph import load_plan
from stages.delivery.footage_files import FootageFiles, TooLarge

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


@pytest.mark.parametrize("source", ["actions", "events"])
@pytest.mark.parametrize(
    "out",
    [
        "sink_email, with: {server: a, sender: a@b.c, to: a@b.c}",
        "sink_command, with: {command: [sh]}",
        "sink_mqtt, with: {address: 'mqtt://127.0.0.1'}",
    ],
)
def test_sinks_learn_the_folder_from_the_graph(tmp_path: Path, source: str, out: str) -> None:
    (tmp_path / "rules.yaml").write_text("{version: 1, rules: [{use: fall}]}")
    graph = tmp_path / "ward.yaml"
    graph.write_text(f"""
version: 1
name: ward
cameras: {{room-3: {{frames: 3}}}}
stages:
  numbers: {{use: count_source, each: cameras}}
  tracks:  {{use: stands, from: numbers}}
  actions: {{use: rules, from: tracks, with: {{file: rules.yaml}}}}
  kept:    {{use: sink_footage, from: actions, with: {{path: "{tmp_path}/disk", clips: false}}}}
  out:     {{from: {source}, use: {out}}}
""")
    (tmp_path / "disk").mkdir()
    stages = [stage for process in load_plan(graph).processes for stage in process.stages]
    assert next(stage.settings["footage_folders"] for stage in stages if stage.name == "out") == [f"{tmp_path}/disk"]
