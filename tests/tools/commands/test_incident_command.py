"""`camgraph incidents`: lists what is kept, and says why an incident fired, in words."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from stages.footage.incident_record import FileState, IncidentRecord
from tools.cli import main

FALL = "1f00ba7e" + 24 * "0"
WAVE = "2a00ba7e" + 24 * "0"


def keep(folder: Path, incident: str, action: str, start: str, camera: str = "room-3") -> IncidentRecord:
    evidence = {"conditions": [{"text": "lean > 60deg", "left": 71.5, "right": 60.0, "unit": "deg"}], "true_s": 2.0}
    data: dict[str, Any] = {
        "incident": incident,
        "phase": "start",
        "rule": {"id": action},
        "action": action,
        "severity": "alarm",
        "camera": camera,
        "people": [{"track_id": 3}],
        "start_time": start,
        "duration_s": 0.0,
        "evidence": evidence,
    }
    end = {"data": {"duration_s": 8.5, "reason": "condition"}}
    path = folder / camera / start[:10] / f"{start[11:19].replace(':', '-')}_{action}_{incident[:8]}.json"
    files = {"snapshot": FileState("ready", bytes=50_000), "clip": FileState("missing", "its process was killed")}
    record = IncidentRecord(path, {"data": data}, end, files)  # type: ignore[arg-type]
    record.write()
    return record


@pytest.fixture
def footage(tmp_path: Path) -> Path:
    folder = tmp_path / "footage"
    keep(folder, FALL, "fall", "2026-11-22T21:03:11.000Z")
    keep(folder, WAVE, "waving", "2026-11-23T08:00:00.000Z", camera="hall")
    return folder


def run(*args: str) -> str:
    result = CliRunner().invoke(main, ["incidents", *args])
    assert result.exit_code == 0, result.output
    return result.output


def test_the_list_says_when_where_and_what(footage: Path) -> None:
    fall, wave = run("--in", str(footage)).splitlines()
    at = datetime(2026, 11, 22, 21, 3, 11, tzinfo=UTC).astimezone().isoformat(" ", "seconds")
    assert fall == f"1f00ba7e  {at}  room-3  fall  8.5 s  snapshot 50 kB, no clip"
    assert "hall  waving" in wave


@pytest.mark.parametrize(
    "filter_",
    [
        ("--camera", "hall"),
        ("--rule", "waving"),
        ("--since", "2026-11-23T00:00Z"),
        ("--since", "2026-11-23T08:00+01:00"),
        ("--limit", "1"),
    ],
)
def test_the_list_can_be_narrowed(footage: Path, filter_: tuple[str, str]) -> None:
    assert [line[:8] for line in run("--in", str(footage), *filter_).splitlines()] == ["2a00ba7e"]


def test_a_foreign_record_costs_no_list(footage: Path) -> None:
    foreign = {"first": {"data": {"incident": "1", "camera": "hall"}}, "last": {}, "snapshot": {}, "clip": {}}
    (footage / "hall" / "2026-11-23" / "09_notes_1.json").write_text(json.dumps(foreign))
    assert len(run("--in", str(footage)).splitlines()) == 2


def test_one_is_told_with_its_reason_in_words(footage: Path) -> None:
    told = run("show", "1f00", "--in", str(footage))
    assert "fall on room-3, alarm" in told
    assert "because     How far the body leans: 72°, and more than 60° is needed" in told
    assert "clip        missing its process was killed" in told
    assert str(footage / "room-3" / "2026-11-22" / "21-03-11_fall_1f00ba7e.jpg") in told


def test_a_mark_keeps_it(footage: Path) -> None:
    assert "never removed" in run("keep", "1f00", "--in", str(footage))
    assert run("--in", str(footage)).splitlines()[0].endswith(", kept")
    assert "never removed" not in run("release", "1f00", "--in", str(footage))


def test_programs_get_json(footage: Path) -> None:
    first, _ = json.loads(run("--json", "--in", str(footage)))
    assert (first["incident"], first["snapshot"]["state"]) == (FALL, "ready")
    assert Path(first["snapshot"]["file"]).name == "21-03-11_fall_1f00ba7e.jpg"


def test_the_graph_file_says_where_they_are(footage: Path) -> None:
    graph = footage.parent / "lobby.yaml"
    graph.write_text("stages:\n  footage: {use: sink_footage, from: actions}\n")
    assert len(run("--in", str(graph)).splitlines()) == 2


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (["--in", "nowhere"], "no such folder or graph file"),
        (["show", "ffff"], "no incident that is kept begins with ffff"),
        (["show"], "which incident?"),
        (["--since", "yesterday"], "expected 2h, 3d"),
    ],
)
def test_mistakes_say_the_way_out(footage: Path, args: list[str], why: str) -> None:
    place = [] if "--in" in args else ["--in", str(footage)]
    result = CliRunner().invoke(main, ["incidents", *args, *place])
    assert result.exit_code != 0
    assert why in result.output
