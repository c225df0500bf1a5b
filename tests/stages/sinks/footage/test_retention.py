"""The oldest incidents go first: by age and by size, and never what is kept or unfinished."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import structlog
from camgraph_test_stages.waiting import until
from structlog.testing import capture_logs

from camgraph.stages.sinks.footage.incident_index import IncidentFilter, incidents_in
from camgraph.stages.sinks.footage.incident_record import FileState, IncidentRecord, State, read_record, records_in
from camgraph.stages.sinks.footage.retention import KeepRule, Retention, remove

DAY_S = 86_400.0
NOW_S = 2_000_000_000.0
LOG = structlog.get_logger()


def incident(
    folder: Path,
    number: int,
    *,
    size: int = 1000,
    state: State = "ready",
    keep: bool = False,
    camera: str = "front",
    severity: str = "warning",
) -> Path:
    """One of the day `number`, that many days before `NOW_S` less thirty."""
    path = folder / camera / f"2026-11-{number:02d}" / f"10-00-00_fall_{number:08x}.json"
    data: dict[str, Any] = {"incident": f"{number:032x}", "camera": camera, "severity": severity}
    record = IncidentRecord(path, {"data": data}, {}, {"snapshot": FileState(state), "clip": FileState(state)})
    record.write()
    record.mark_keep(keep)
    record.file("snapshot").write_bytes(bytes(size))
    record.file("clip").write_bytes(bytes(size))
    os.utime(path, (NOW_S - (30 - number) * DAY_S,) * 2)
    return path


def left(folder: Path) -> list[int]:
    return [int(record.incident, 16) for record in records_in(folder)]


def test_old_ones_go_with_their_files_and_folders(tmp_path: Path) -> None:
    for number in (5, 25):
        incident(tmp_path, number)
    assert Retention(tmp_path, LOG, keep_s=10 * DAY_S, keep_bytes=1e9).sweep(NOW_S) == 1
    assert left(tmp_path) == [25]
    assert not (tmp_path / "front" / "2026-11-05").exists()


def test_too_much_takes_the_oldest(tmp_path: Path) -> None:
    for number in range(1, 11):
        incident(tmp_path, number)
    Retention(tmp_path, LOG, keep_s=100 * DAY_S, keep_bytes=7000).sweep(NOW_S)
    assert left(tmp_path) == [8, 9, 10]


def test_a_shared_clip_counts_once(tmp_path: Path) -> None:
    first, second = (read_record(incident(tmp_path, number, size=2000)) for number in (1, 2))
    assert first is not None
    assert second is not None
    second.file("clip").unlink()
    os.link(first.file("clip"), second.file("clip"))
    assert Retention(tmp_path, LOG, keep_s=100 * DAY_S, keep_bytes=7500).sweep(NOW_S) == 0
    remove(first)
    assert second.file("clip").stat().st_size == 2000, "the other incident still has it"


def test_what_is_kept_or_written_stays(tmp_path: Path) -> None:
    incident(tmp_path, 1, keep=True)
    os.utime(incident(tmp_path, 2, state="pending"), (NOW_S - 3600,) * 2)
    incident(tmp_path, 3)
    incident(tmp_path, 4, state="pending")  # which nobody writes any more
    Retention(tmp_path, LOG, keep_s=1.0, keep_bytes=1.0).sweep(NOW_S)
    assert left(tmp_path) == [1, 2]


def test_a_clip_that_was_left_unfinished_goes_too(tmp_path: Path) -> None:
    path = incident(tmp_path, 5)
    path.with_suffix(".mp4").rename(path.with_suffix(".mp4.part"))
    assert Retention(tmp_path, LOG, keep_s=100 * DAY_S, keep_bytes=1500).sweep(NOW_S) == 1, "its bytes count"
    assert list(tmp_path.iterdir()) == []


def test_who_writes_the_record_does_not_take_the_mark_away(tmp_path: Path) -> None:
    path = incident(tmp_path, 1)
    of_recorder, of_somebody = read_record(path), read_record(path)
    assert of_recorder is not None
    assert of_somebody is not None
    of_somebody.mark_keep(True)
    of_recorder.write()
    assert of_recorder.keep
    of_somebody.mark_keep(False)
    of_recorder.write()
    assert not of_recorder.keep
    of_somebody.mark_keep(True)
    remove(of_recorder)
    assert list(tmp_path.iterdir()) == []


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "front" / "2026-11-01"
    folder.mkdir(parents=True)
    (folder / "notes.json").write_text('{"mine": true}')
    (folder / "list.json").write_text("[1, 2]")
    incident(tmp_path, 1)
    Retention(tmp_path, LOG, keep_s=1.0, keep_bytes=1.0).sweep(NOW_S)
    assert sorted(path.name for path in folder.iterdir()) == ["list.json", "notes.json"]


def test_the_first_rule_that_fits_says_how_long(tmp_path: Path) -> None:
    incident(tmp_path, 1, severity="alarm")
    incident(tmp_path, 2, severity="info")
    incident(tmp_path, 29, severity="info")
    incident(tmp_path, 3, camera="back", severity="alarm")
    incident(tmp_path, 4)
    incident(tmp_path, 28)
    rules = [
        KeepRule(camera="back", keep_s=5 * DAY_S),
        KeepRule(severity="alarm", keep_s=90 * DAY_S),
        KeepRule(severity="info", keep_s=3 * DAY_S),
    ]
    Retention(tmp_path, LOG, keep_s=10 * DAY_S, keep_bytes=1e9, rules=rules).sweep(NOW_S)
    assert left(tmp_path) == [1, 28, 29]


def test_a_rule_bounds_the_size_of_its_own_incidents(tmp_path: Path) -> None:
    for number in range(1, 6):
        incident(tmp_path, number, severity="info")
        incident(tmp_path, 10 + number)
    Retention(
        tmp_path, LOG, keep_s=90 * DAY_S, keep_bytes=1e9, rules=[KeepRule(severity="info", keep_bytes=5000)]
    ).sweep(NOW_S)
    assert left(tmp_path) == [4, 5, 11, 12, 13, 14, 15]


def test_a_folder_that_cannot_be_read_costs_no_other(tmp_path: Path) -> None:
    (tmp_path / "a-loop").symlink_to("a-loop")
    (tmp_path / "front").mkdir()
    (tmp_path / "front" / "2026-11-02").symlink_to("2026-11-02")
    incident(tmp_path, 5)
    assert left(tmp_path) == [5]
    assert Retention(tmp_path, LOG, keep_s=10 * DAY_S, keep_bytes=1e9).sweep(NOW_S) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"clip": {"crops": [""]}},
        {"clip": {"crops": 5}},
        {"clip": {"crops": ["../../other/file.jpg"]}},
        {"clip": {"state": "ready", "bytes": "many"}},
        {"clip": {"state": ["ready"]}},
        {"clip": {"state": "ready", "seconds": float("inf")}},
        {"first": {"data": {"incident": "../../x", "camera": "front"}}},
        {"first": {"data": {"incident": "", "camera": "front"}}},
        {"first": "event"},
    ],
    ids=str,
)
def test_a_record_that_others_have_changed_is_none(tmp_path: Path, change: dict[str, Any]) -> None:
    damaged = incident(tmp_path, 5)
    damaged.write_text(json.dumps(json.loads(damaged.read_text()) | change))
    incident(tmp_path, 6)
    assert left(tmp_path) == [6]
    assert Retention(tmp_path, LOG, keep_s=10 * DAY_S, keep_bytes=1e9).sweep(NOW_S) == 1
    assert damaged.exists()


@pytest.mark.parametrize("version", [None, 1, 2])
def test_records_of_other_versions_are_read(tmp_path: Path, version: int | None) -> None:
    """Those of before named none, and a newer one may say more."""
    path = incident(tmp_path, 5)
    plain = json.loads(path.read_text())
    assert plain.pop("version") == 1
    more = {} if version is None else {"version": version, "mood": "good"}
    path.write_text(json.dumps(plain | more))
    assert left(tmp_path) == [5]


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 34)


@pytest.mark.parametrize("plant", [_pipe, _endless, _huge])
def test_what_is_no_record_keeps_nobody_waiting(tmp_path: Path, plant: Callable[[Path], None]) -> None:
    real = incident(tmp_path, 5)
    plant(real.with_name("10-00-00_fall_00000006.json"))
    assert left(tmp_path) == [5]
    assert [
        one.incident for one in incidents_in(tmp_path, IncidentFilter())
    ] == []  # its event lacks the facts of a list
    assert Retention(tmp_path, LOG, keep_s=10 * DAY_S, keep_bytes=1e9).sweep(NOW_S) == 1


def test_a_bug_in_a_sweep_is_logged(tmp_path: Path) -> None:
    retention = Retention(tmp_path, LOG, keep_s=10 * DAY_S, keep_bytes=1e9)
    retention._rules = []
    incident(tmp_path, 5)
    with capture_logs() as lines:
        retention.remove_due()
        until(lambda: lines)
    assert lines[0]["event"] == "retention_failed"
    assert retention.remove_due() == 0
