from __future__ import annotations

import csv
import io
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from camgraph_test_stages.incident_views import incident
from hypothesis import given
from hypothesis import strategies as st

from camgraph.pipeline.errors import UserError
from camgraph.pipeline.messages import Event
from camgraph.pipeline.testing import HandContext, feed, opened, reports_of
from camgraph.stages.sinks.delivery.incident_rows import COLUMNS, as_line, safe_cell
from camgraph.stages.sinks.sink_csv import SinkCsv, SinkCsvSettings


def ended(number: int, **data: Any) -> Event:
    facts = {
        "start_time": "2026-11-23T12:00:00.000Z",
        "end_time": "2026-11-23T12:00:07.500Z",
        "duration_s": 7.5,
        **data,
    }
    return incident(f"{number:04x}", "end", at_s=8, **facts).event


def write(folder: Path, what: list[Event], incarnation: int = 1, **more: Any) -> SinkCsv:
    settings = SinkCsvSettings(path="table.csv", **more)
    state = folder / "state"
    state.mkdir(exist_ok=True)
    sink = SinkCsv(settings, HandContext(folder, state, incarnation=incarnation))
    try:
        sink.open()
        sink.process(what)
    finally:
        sink.close()
    return sink


def rows(folder: Path, delimiter: str = ",") -> list[dict[str, str]]:
    text = (folder / "table.csv").read_bytes().decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter))


def test_each_incident_is_one_row_and_the_header_stands_once(tmp_path) -> None:
    first = [
        incident("a", "start", at_s=0).event,
        incident("a", "update", at_s=1).event,
        ended(10, camera="Tür 3", action="fall", rule="fall", severity="alarm", zones=["bed", "door"], people=[{}, {}]),
        incident("b", "single", at_s=9, rule="wave").event,
        Event(incident("c", "end").event.stamp, "x", "", "single", b'{"type": "camgraph.camera.lost", "id": "x"}'),
    ]
    sink = write(tmp_path, first, time_zone="Europe/Berlin")
    write(tmp_path, [ended(11)], time_zone="Europe/Berlin")
    found = rows(tmp_path)
    assert [row["action"] for row in found] == ["fall", "wave", "fall"]
    assert list(found[0]) == list(COLUMNS)
    assert found[0] | {"why": "", "reason": "", "snapshot": "", "clip": ""} == {
        "start": "2026-11-23 13:00:00",
        "end": "2026-11-23 13:00:07",
        "duration_s": "7.5",
        "camera": "Tür 3",
        "action": "fall",
        "rule": "fall",
        "severity": "alarm",
        "people": "2",
        "zones": "bed, door",
        "why": "",
        "reason": "",
        "snapshot": "",
        "clip": "",
        "incident": "000a",
        "id": "000a-end-8",
    }
    assert found[1]["start"] == found[1]["end"] == "2026-11-23 13:00:09"
    counts = reports_of(sink).counts
    assert (counts["written", "cam"], counts["written", "Tür 3"], counts["filtered", "cam"]) == (1, 1, 3)


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@SUM(A1)", '=HYPERLINK("http://x")', "=cmd|' /C calc'!A0"])
def test_no_cell_is_a_formula(tmp_path, cell) -> None:
    write(tmp_path, [ended(1, camera=cell, snapshot=cell, zones=[cell])])
    [row] = rows(tmp_path)
    assert row["camera"] == row["snapshot"] == row["zones"] == f"'{cell}"


def test_no_cell_steers_a_terminal(tmp_path) -> None:
    hostile = "\x1b]0;owned\x07\u202eworst"
    write(tmp_path, [ended(1, camera=hostile, snapshot=hostile, zones=[hostile], reason=hostile, action=hostile)])
    assert (tmp_path / "table.csv").read_text("utf-8-sig").replace("\n", "").isprintable()


@given(st.text(max_size=50), st.sampled_from([",", ";", "\t"]))
def test_any_text_is_one_cell_of_one_line_and_no_formula(text, delimiter) -> None:
    cell = safe_cell(text)
    line = as_line([cell, "end"], delimiter)
    assert line.count("\n") == 1
    assert next(csv.reader([line], delimiter=delimiter)) == [cell, "end"]
    assert cell[:1] not in ("=", "+", "-", "@", "\t", "\r")


@pytest.mark.parametrize(("name", "delimiter"), [("semicolon", ";"), ("tab", "\t")])
def test_other_delimiters(tmp_path, name, delimiter) -> None:
    write(tmp_path, [ended(1, camera="a;b,c")], delimiter=name)
    assert [row["camera"] for row in rows(tmp_path, delimiter)] == ["a;b,c"]


def test_after_a_death_only_rows_of_this_run_are_not_repeated(tmp_path) -> None:
    write(tmp_path, [ended(1)])
    (tmp_path / "state" / "table.json").unlink()  # another run over the same video
    write(tmp_path, [ended(1), ended(2)])
    with (tmp_path / "table.csv").open("ab") as file:
        file.write(b"2026-11-23 12:00:00,torn")
    write(tmp_path, [ended(1), ended(2), ended(3)], incarnation=2)
    assert [row["incident"] for row in rows(tmp_path)] == ["0001", "0001", "0002", "0003"]


def test_requeued_rows_are_written_again_after_a_death(tmp_path) -> None:
    write(tmp_path, [ended(1), ended(2)])
    again = replace(ended(1), id=f"again 7 {ended(1).id}")
    sink = write(tmp_path, [ended(2), again], incarnation=2)
    assert [row["incident"] for row in rows(tmp_path)] == ["0001", "0002", "0001"]
    assert reports_of(sink).counts == {("repeated", "cam"): 1, ("written", "cam"): 1}


def test_no_row_of_a_file_that_is_moved_away_is_known(tmp_path) -> None:
    write(tmp_path, [ended(1)])
    with opened(SinkCsv, {"path": "table.csv"}, folder=tmp_path) as sink:
        feed(sink, [ended(2)])
    with opened(SinkCsv, {"path": "table.csv"}, folder=tmp_path, incarnation=2) as sink:
        (tmp_path / "table.csv").rename(tmp_path / "old.csv")
        feed(sink, [ended(2)])
    assert [row["incident"] for row in rows(tmp_path)] == ["0002"]


def test_row_begins_anew_behind_text_of_others(tmp_path) -> None:
    table = tmp_path / "table.csv"
    with opened(SinkCsv, {"path": "table.csv"}, folder=tmp_path) as sink:
        feed(sink, [ended(1)])
        with table.open("ab") as other:
            other.write(b"a note")
        feed(sink, [ended(2)])
        feed(sink, [ended(3)])
    lines = table.read_bytes().splitlines()
    assert (len(lines), lines[2]) == (5, b"a note")
    assert [row["incident"] for row in rows(tmp_path) if row["incident"]] == ["0001", "0002", "0003"]


@pytest.mark.parametrize("size", [0, 10, -7])
def test_table_that_was_cut_gets_its_header_and_whole_rows(tmp_path, size: int) -> None:
    table = tmp_path / "table.csv"
    with opened(SinkCsv, {"path": "table.csv"}, folder=tmp_path) as sink:
        feed(sink, [ended(1)])
        os.truncate(table, size if size >= 0 else table.stat().st_size + size)
        feed(sink, [ended(2)])
    assert [row["incident"] for row in rows(tmp_path)] == ["0002"]


def test_another_table_is_left_alone(tmp_path) -> None:
    (tmp_path / "table.csv").write_text("name,age\nAda,36\n")
    with pytest.raises(UserError, match="has other columns"):
        write(tmp_path, [ended(1)])
    assert (tmp_path / "table.csv").read_text() == "name,age\nAda,36\n"
