"""The places of unfinished records, and what a process believes of those that another one has left."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
import structlog
from camgraph_test_stages.waiting import until

from camgraph.pipeline.system import disk
from camgraph.pipeline.testing import HandContext
from camgraph.stages.sinks.footage.incident_record import FileState, IncidentRecord, read_record
from camgraph.stages.sinks.footage.recorder import Recorder, Unfinished, Wanted
from camgraph.stages.sinks.sink_footage import SinkFootage, SinkFootageSettings

PLACE = "front/2026-11-05/10-00-00_fall_0000abcd.json"


def left_behind(footage: Path, **clip: Any) -> IncidentRecord:
    """An incident of a process that was killed while its clip was written."""
    data = {"incident": f"{0xABCD:032x}", "camera": "front", "phase": "single", "start_time": "2026-11-05T10:00:00Z"}
    record = IncidentRecord(footage / PLACE, {"data": data, "id": "1", "source": "test", "time": data["start_time"]})
    record.files["snapshot"] = record.files["best"] = FileState("missing", "test")
    record.files["clip"] = FileState(**clip)
    record.write()
    Unfinished(footage / ".unfinished" / "test", footage).add(record)
    return record


def test_places_outlive_the_process_and_a_move_of_the_folder(tmp_path: Path) -> None:
    left_behind(tmp_path / "old")
    (tmp_path / "old").rename(tmp_path / "new")
    [found] = Unfinished(tmp_path / "new" / ".unfinished" / "test", tmp_path / "new").records()
    assert found.path == tmp_path / "new" / PLACE


@pytest.mark.parametrize(
    "text", [b"\xff\xfe", b"", b"/etc/passwd", b"../../x/2026-11-05/a.json", b"a\0b/c/d", b"x" * 5000]
)
def test_what_is_no_place_of_a_record_is_left_out(tmp_path: Path, text: bytes) -> None:
    record = left_behind(tmp_path)
    folder = tmp_path / ".unfinished" / "test"
    (folder / "other").write_bytes(text)
    (folder / "folder").mkdir()
    (folder / "loop").symlink_to("loop")
    assert [one.path for one in Unfinished(folder, tmp_path).records()] == [record.path]


def test_a_place_that_was_not_written_whole_is_left_out(tmp_path: Path) -> None:
    record = left_behind(tmp_path)
    folder = tmp_path / ".unfinished" / "test"
    (folder / f"{record.incident}.0123456789abcdef.part").write_text(PLACE)
    assert [one.path for one in Unfinished(folder, tmp_path).records()] == [record.path]


def test_the_folder_of_unfinished_records_may_go_at_any_moment(tmp_path: Path) -> None:
    """When the last record is finished, its folder is removed: not in the moment of the next one."""
    places = Unfinished(tmp_path / "unfinished" / "test", tmp_path)
    first, second = (IncidentRecord(tmp_path / PLACE, {"data": {"incident": name, "camera": "front"}}) for name in "12")
    is_over = threading.Event()

    def finish_records() -> None:
        while not is_over.is_set():
            places.remove(first)

    with ThreadPoolExecutor(1) as threads:
        finishing = threads.submit(finish_records)
        try:
            for _ in range(300):
                places.add(second)
                places.remove(second)
        finally:
            is_over.set()
        finishing.result()


def test_an_incident_is_on_the_disk_before_it_is_delivered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr(disk, "sync_folder", lambda folder: synced.append(folder.name))
    data = {"incident": "1f", "camera": "front", "phase": "start"}
    log: Any = structlog.get_logger()
    wanted = Wanted(1.0, 1.0, 5.0, 1 << 20, "clean", UTC, clips=True)
    folders = {"folder": tmp_path, "stages_folder": tmp_path, "unfinished": tmp_path / "unfinished"}
    Recorder(wanted, **folders, log=log, done=lambda *_: None).begin(IncidentRecord(tmp_path / PLACE, {"data": data}))
    assert synced == ["unfinished", "2026-11-05"]


def test_an_absolute_place_outside_is_left_out(tmp_path: Path) -> None:
    record = left_behind(tmp_path / "elsewhere")
    folder = tmp_path / "footage" / ".unfinished" / "test"
    folder.mkdir(parents=True)
    (folder / "planted").write_text(str(record.path))
    assert Unfinished(folder, tmp_path / "footage").records() == []


@pytest.mark.parametrize(
    "where", ["{outside}/secret.mp4", "../../secret.mp4", "2026-11-05/../../../secret.mp4", "loop.mp4"]
)
def test_no_file_outside_is_taken_for_a_clip(tmp_path: Path, where: str) -> None:
    footage = tmp_path / "footage"
    secret, part = tmp_path / "secret.mp4", tmp_path / "secret.mp4.part"
    secret.write_text("secret")
    part.write_text("of others")
    record = left_behind(footage, grows_in=where.format(outside=tmp_path))
    rescue(footage)
    assert part.exists()
    assert secret.stat().st_nlink == 1
    assert not record.file("clip").exists()
    assert json.loads(record.path.read_text())["clip"]["state"] == "missing"


def test_no_link_is_followed_for_a_clip(tmp_path: Path) -> None:
    footage, secret = tmp_path / "footage", tmp_path / "secret.mp4"
    secret.write_text("secret")
    record = left_behind(footage, grows_in="2026-11-05/link.mp4")
    (record.path.parent / "link.mp4").symlink_to(secret)
    rescue(footage)
    assert secret.stat().st_nlink == 1


@pytest.mark.processes
def test_a_shared_clip_is_copied_where_there_are_no_links(
    make_clip: Callable[..., Path], disk_without_links: Path
) -> None:
    record = left_behind(disk_without_links, grows_in="2026-11-05/other.mp4")
    shared = Path(shutil.copyfile(make_clip("a.mp4"), record.path.parent / "other.mp4"))
    rescue(disk_without_links)
    assert record.file("clip").read_bytes() == shared.read_bytes()
    assert json.loads(record.path.read_text())["clip"]["state"] == "ready"


def rescue(footage: Path) -> None:
    """A process comes after the killed one, and ends."""
    context = HandContext(footage.parent, footage.parent / "state" / "footage")
    context.state_folder.mkdir(parents=True)
    sink = SinkFootage(SinkFootageSettings.model_validate({"path": str(footage)}), context)
    sink.open()
    try:
        until(lambda: (found := read_record(footage / PLACE)) is not None and not found.is_pending)
    finally:
        sink.close()
