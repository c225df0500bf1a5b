"""`camgraph incidents`: lists what is kept, and says why an incident fired, in words."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from camgraph.stages.sinks.footage.incident_labels import Labels
from camgraph.stages.sinks.footage.incident_record import FileState, IncidentRecord
from camgraph.tools.cli import main

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
        ("--unseen", "--limit=1"),
        ("--limit", "1"),
    ],
)
def test_the_list_can_be_narrowed(footage: Path, filter_: tuple[str, str]) -> None:
    assert [line[:8] for line in run("--in", str(footage), *filter_).splitlines()] == ["2a00ba7e"]


@pytest.mark.parametrize("until", ["2026-11-22", "2026-11-22T22:30+01:00", "2026-11-23T08:00Z"])
def test_the_list_ends_at_a_time(footage: Path, until: str) -> None:
    assert [line[:8] for line in run("--in", str(footage), "--until", until).splitlines()] == ["1f00ba7e"]


def make_graph(folder: Path, rules: str, path: str = "footage") -> Path:
    graph = folder / "lobby.yaml"
    graph.write_text(
        f"version: 1\nstages:\n  actions: {{use: rules, from: tracks, with: {rules}}}\n"
        f"  footage: {{use: sink_footage, from: actions, with: {{path: {path}}}}}\n"
    )
    return graph


@pytest.mark.parametrize("rules", ["{file: rules.yaml}", "{time_zone: Asia/Tokyo, rules: [{use: fall}]}"])
def test_times_are_those_of_the_rules(footage: Path, rules: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However the place is named; and times of options are read by the same clock."""
    (footage.parent / "rules.yaml").write_text("time_zone: Asia/Tokyo\nrules: [{use: fall}]\n")
    graph = make_graph(footage.parent, rules)
    monkeypatch.chdir(footage.parent)
    for place in ([], ["--in", str(graph)], ["--in", str(footage)], ["--in", "footage"]):
        assert "2026-11-23 06:03:11+09:00" in run(*place).splitlines()[0]
        assert "began       2026-11-23 06:03:11+09:00" in run("show", "1f", *place)
        assert len(run("--since", "2026-11-23T06:03", *place).splitlines()) == 2
        assert len(run("--since", "2026-11-23T06:04", *place).splitlines()) == 1


def test_the_graph_of_this_folder_says_where_they_are(footage: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    footage.rename(footage.with_name("kept"))
    make_graph(footage.parent, "{rules: [{use: fall}]}", path="kept")
    monkeypatch.chdir(footage.parent)
    assert len(run().splitlines()) == 2
    (footage.parent / "yard.yaml").write_text("version: 1\nstages: {footage: {use: sink_footage, from: actions}}\n")
    result = CliRunner().invoke(main, ["incidents"])
    assert (result.exit_code, "which graph? lobby.yaml, yard.yaml" in result.output) == (2, True)


def test_marks_are_told_and_the_unseen_are_listed(footage: Path) -> None:
    place = ["--in", str(footage)]
    assert len(run("--unseen", *place).splitlines()) == 2
    assert "marked      seen, " in run("seen", "1f00", *place)
    assert run("--unseen", *place).startswith("2a00ba7e")
    assert run(*place).splitlines()[0].endswith(", seen")
    Labels(footage).add(WAVE, "false_alarm", "a coat", "night shift")
    Labels(footage).add(WAVE, "acknowledged", "", "")
    assert run("--unseen", *place).strip() == f"no incidents in {footage} fit"
    assert run(*place).splitlines()[1].endswith(", false alarm")
    assert "by night shift: a coat" in run("show", "2a", *place)
    assert [one["label"] for one in json.loads(run("--json", *place))[1]["labels"]] == ["false_alarm", "acknowledged"]


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


@pytest.mark.parametrize(
    ("duration_s", "reason", "listed", "told"),
    [
        (64.502, "condition", "1 min 5 s", "lasted      1 min 5 s (ended: "),
        (1.176, "stopped", "1.2 s", "lasted      1.2 s (ended: camgraph was stopped)"),
        (1.0, "lost", "1 s", "lasted      its end was not seen: the program that watched it died"),
    ],
)
def test_how_long_it_lasted(tmp_path: Path, duration_s: float, reason: str, listed: str, told: str) -> None:
    record = keep(tmp_path, FALL, "fall", "2026-11-22T21:03:11.000Z")
    record.last = {"data": {"duration_s": duration_s, "reason": reason}}
    record.write()
    assert f"  fall  {listed}  " in run("--in", str(tmp_path))
    assert told in run("show", "1f", "--in", str(tmp_path))


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
