"""`sink_jsonl` that begins new files, and leaves out events; the rest is in test_sink_jsonl.py."""

from __future__ import annotations

import gzip
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import structlog
from camgraph_test_stages.incident_views import event
from camgraph_test_stages.waiting import until
from hypothesis import given
from hypothesis import strategies as st

from camgraph.pipeline.testing import HandContext, opened, reports_of
from camgraph.stages.sinks.sink_jsonl import SinkJsonl, SinkJsonlSettings
from camgraph.stages.sinks.writing.rotation import RotateSettings, Rotation, is_due, pack

DAY_S = 86_400.0


def files(folder: Path) -> list[Path]:
    """Old ones, then the present one."""
    old = sorted((path for path in folder.glob("events-*")), key=lambda path: path.name.split(".")[0].ljust(40, " "))
    return [*old, folder / "events.jsonl"]


def lines_of(path: Path) -> list[bytes]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return data.splitlines()


def all_ids(folder: Path) -> list[str]:
    return sorted(json.loads(line)["id"] for path in files(folder) for line in lines_of(path))


def settings(**rotate: Any) -> dict[str, Any]:
    return {"path": "events.jsonl", "sync": False, "rotate": rotate}


def test_no_file_grows_over_its_size_and_nothing_is_lost(tmp_path) -> None:
    with opened(SinkJsonl, settings(mb=0.005, compress=False), folder=tmp_path) as sink:
        for number in range(60):
            sink.process([event(number)])
    found = files(tmp_path)
    assert len(found) > 3
    assert max(path.stat().st_size for path in found) <= 5000
    assert all_ids(tmp_path) == sorted(event(number).id for number in range(60))
    assert all(re.fullmatch(r"events-\d{8}T\d{6}Z(-\d+)?\.jsonl", path.name) for path in found[:-1])


def test_old_files_are_packed_and_the_oldest_go(tmp_path) -> None:
    (tmp_path / "events-mine.jsonl").write_text("somebody's own")
    with opened(SinkJsonl, settings(mb=0.002, keep=3), folder=tmp_path) as sink:
        for number in range(40):
            sink.process([event(number)])
        rotation = sink._rotation  # type: ignore[attr-defined]
        until(lambda: rotation.tidy() or [path.suffix for path in rotation.old_files()] == [".gz"] * 3, every_s=0.02)
        assert not list(tmp_path.glob("*.part"))
    kept = [json.loads(line)["id"] for path in rotation.old_files() for line in lines_of(path)]
    present = [json.loads(line)["id"] for line in lines_of(tmp_path / "events.jsonl")]
    everything = [event(number).id for number in range(40)]
    assert kept + present == everything[-len(kept + present) :], "the newest ones, in their order"
    assert (tmp_path / "events-mine.jsonl").read_text() == "somebody's own"


def test_a_new_name_is_behind_all_others(tmp_path) -> None:
    """Also if earlier ones of the same second were deleted, and if the clock was set back."""
    rotation = Rotation(tmp_path / "events.jsonl", RotateSettings(mb=1), structlog.get_logger())
    names = []
    for last_write_s in (1000.0, 1000.5, 1000.9, 1007.0, 1003.0, 1003.0):
        names.append(rotation.new_name(last_write_s))
        names[-1].touch()
        if len(names) == 2:
            names[0].unlink()
    assert rotation.old_files() == names[1:]


def test_a_new_day_is_a_new_file_also_after_a_pause(tmp_path) -> None:
    with opened(SinkJsonl, settings(every="1d", compress=False), folder=tmp_path) as sink:
        sink.process([event(1)])
    yesterday = (tmp_path / "events.jsonl").stat().st_mtime - DAY_S
    os.utime(tmp_path / "events.jsonl", (yesterday, yesterday))
    with opened(SinkJsonl, settings(every="1d", compress=False), folder=tmp_path) as sink:
        sink.process([event(2), event(3)])
    old, new = files(tmp_path)
    assert [len(lines_of(path)) for path in (old, new)] == [1, 2]


@pytest.mark.parametrize("incarnation", [1, 2])
def test_what_was_interrupted_is_done_at_the_next_start(tmp_path, incarnation) -> None:
    (tmp_path / "events-20260101T000000Z.jsonl").write_bytes(event(1).body + b"\n")
    (tmp_path / "events-20260101T000000Z.jsonl.gz.part").write_bytes(b"half")
    context = HandContext(tmp_path, tmp_path, incarnation=incarnation)
    sink = SinkJsonl(SinkJsonlSettings(**settings(mb=1)), context)
    sink.open()
    sink.close()
    assert lines_of(tmp_path / "events-20260101T000000Z.jsonl.gz") == [event(1).body]
    assert not list(tmp_path.glob("*.part"))
    assert not (tmp_path / "events-20260101T000000Z.jsonl").exists()


def test_without_a_new_file_the_present_one_grows_with_a_log(tmp_path, monkeypatch) -> None:
    def fail(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    with opened(SinkJsonl, settings(mb=0.001), folder=tmp_path) as sink:
        sink.process([event(1), event(2)])
        with monkeypatch.context() as patch:
            patch.setattr(Path, "rename", fail)
            sink.process([event(3), event(4)])
            assert "cannot begin a new file: Permission denied; it grows on" in reports_of(sink).troubles[""]
            assert len(lines_of(tmp_path / "events.jsonl")) == 4
        sink.process([event(5)])
        assert reports_of(sink).troubles == {}
    assert len(lines_of(tmp_path / "events.jsonl")) == 1


def test_a_link_stays_and_its_target_begins_anew(tmp_path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "events.jsonl").symlink_to("disk/all.jsonl")
    with opened(SinkJsonl, settings(mb=0.001, compress=False), folder=tmp_path) as sink:
        for number in range(6):
            sink.process([event(number)])
    assert (tmp_path / "events.jsonl").is_symlink()
    assert len(list((tmp_path / "disk").glob("all-*.jsonl"))) >= 2
    assert sum(len(lines_of(path)) for path in (tmp_path / "disk").iterdir()) == 6


def test_logrotate_beside_it_is_followed(tmp_path) -> None:
    with opened(SinkJsonl, settings(mb=1), folder=tmp_path) as sink:
        sink.process([event(1)])
        (tmp_path / "events.jsonl").rename(tmp_path / "events.jsonl.1")
        sink.process([event(2)])
    assert [len(lines_of(tmp_path / name)) for name in ("events.jsonl.1", "events.jsonl")] == [1, 1]


def test_packing_keeps_the_mode_and_the_time(tmp_path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"x" * 3_000_000)
    path.chmod(0o600)
    pack(path)
    packed = tmp_path / "a.jsonl.gz"
    assert gzip.decompress(packed.read_bytes()) == b"x" * 3_000_000
    assert packed.stat().st_mode & 0o777 == 0o600
    assert not path.exists()


def test_names_never_clash(tmp_path) -> None:
    rotation = Rotation(tmp_path / "e.jsonl", RotateSettings(mb=1), log=None)  # type: ignore[arg-type]
    for _ in range(12):
        rotation.new_name(0.0).touch()
    (tmp_path / "e-19700101T000000Z-13.jsonl.gz").touch()
    assert rotation.new_name(0.0).name == "e-19700101T000000Z-14.jsonl"
    assert [path.name.split("-")[-1] for path in rotation.old_files()[1:3]] == ["2.jsonl", "3.jsonl"]
    assert rotation.old_files()[-1].name == "e-19700101T000000Z-13.jsonl.gz"


@given(st.integers(1, 10**9), st.integers(0, 10**6), st.floats(0, 4e9), st.floats(0, 1e6))
def test_an_empty_file_is_kept_and_a_period_has_one_file(size, more, written_s, later_s) -> None:
    daily, sized = RotateSettings(every="1d"), RotateSettings(mb=1)
    assert not is_due(daily, 0, more, written_s, written_s + later_s)
    assert not is_due(sized, 0, more, written_s, written_s + later_s)
    assert is_due(daily, size, more, written_s, written_s + later_s) == (
        int(written_s // DAY_S) != int((written_s + later_s) // DAY_S)
    )
    assert is_due(sized, size, more, written_s, written_s + later_s) == (size + more > 1_000_000)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"rotate": {}}, "expected `mb`, `every`, or both"),
        ({"rotate": {"mb": 0}}, "greater than 0"),
        ({"rotate": {"mb": 1}, "path": "-"}, "`rotate` is for files"),
        ({"rotate": {"mb": 1}, "order": "time"}, "`order: time` makes one identical file a run"),
    ],
)
def test_mistakes_in_settings(values, text) -> None:
    with pytest.raises(ValueError, match=text):
        SinkJsonlSettings(**{"path": "events.jsonl", **values})
