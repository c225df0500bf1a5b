"""When a recording began: names of many recorders, metadata, zones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.stages.video.dates import beginning, date_in_metadata, date_in_name, zone_of

AT = datetime(2026, 11, 22, 10, 44, 39, tzinfo=UTC)


@pytest.mark.parametrize(
    "name",
    [
        "2026-11-22_10-44-39.mp4",
        "2026-11-22T10-44-39.mkv",
        "2026-11-22T10:44:39Z.mkv",
        "2026-11-22 10.44.39.mov",
        "2026-11-22-10-44-39.ts",
        "2026.11.22_10.44.39.avi",
        "20261122T104439.mp4",
        "20261122T104439Z.mp4",
        "20261122_104439.mp4",
        "20261122-104439.mp4",
        "20261122104439.mp4",
        "VID_20261122_104439.mp4",
        "ch01_20261122104439.mp4",
        "RecM02_20261122_104439_104530_6D28808_2A.mp4",
        "WhatsApp Video 2026-11-22 at 10.44.39.mp4",
        "Screen Recording 2026-11-22 at 10.44.39.mov",
        "front 2026-11-22 10h44m39.mp4",
        "2026-11-22_10-44-39.720p.mp4",
        "2026-11-22T11-44-39+0100.mp4",
        "2026-11-22T05:44:39-05:00.mp4",
    ],
)
def test_names_of_recorders(name: str) -> None:
    assert date_in_name(name, UTC) == AT


def test_a_name_may_be_exact_to_the_millisecond() -> None:
    assert date_in_name("PXL_20261122_104439123.mp4", UTC) == AT + timedelta(milliseconds=123)


@pytest.mark.parametrize(
    "name",
    [
        "gate.mp4",
        "2026-11-22.mp4",
        "20261122.mp4",
        "20261322104439.mp4",
        "2026-11-22_10-44-69.mp4",
        "2026-11-22_25-44-39.mp4",
        "120261122104439.mp4",
        "202611221044391.mp4",
        "1795344279.mp4",
        "2026-1122_104439.mp4",
        "18991231235959.mp4",
    ],
)
def test_names_that_say_nothing_certain(name: str) -> None:
    assert date_in_name(name, UTC) is None


def test_a_number_that_is_no_date_hides_none() -> None:
    assert date_in_name("99999999999999_20261122104439.mp4", UTC) == AT


@given(st.text(st.characters(codec="ascii"), max_size=40))
def test_any_name_is_read(name: str) -> None:
    found = date_in_name(name, UTC)
    assert found is None or found.tzinfo is UTC


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"creation_time": "2026-11-22T10:44:39.000000Z"}, AT),
        ({"creation_time": "2026-11-22 10:44:39"}, AT),
        ({"com.apple.quicktime.creationdate": "2026-11-22T11:44:39+0100", "creation_time": "2026-11-23T00:00:00Z"}, AT),
        ({"creation_time": "1904-01-01T00:00:00.000000Z"}, None),
        ({"creation_time": "1970-01-01T00:00:00.000000Z"}, None),
        ({"creation_time": "2000-01-01T00:03:00.000000Z"}, None),
        ({"creation_time": "2026"}, None),
        ({"creation_time": "9999-99-99"}, None),
        ({"creation_time": "0001-01-01T00:00:00+23:59"}, None),
        ({"date": "2026-11-22"}, None),
        ({}, None),
    ],
)
def test_metadata(metadata: dict[str, str], expected: datetime | None) -> None:
    assert date_in_metadata(metadata, UTC) == expected


def test_a_zone_is_a_name_or_an_offset() -> None:
    assert zone_of("+05:30") == timezone(timedelta(hours=5, minutes=30))
    assert date_in_name("2026-11-22_10-44-39", zone_of("-01:00")) == AT + timedelta(hours=1)
    berlin = zone_of("Europe/Berlin")
    assert date_in_name("2026-11-22_11-44-39", berlin) == AT
    assert date_in_name("2026-07-22_12-44-39", berlin) == datetime(2026, 7, 22, 10, 44, 39, tzinfo=UTC)
    for wrong in ("Europe", "Mars/Olympus", "../etc/passwd", "", "+1", "+99:00"):
        with pytest.raises(ValueError, match="there is no time zone"):
            zone_of(wrong)


def test_what_the_graph_says_comes_first_and_the_name_last() -> None:
    later = AT + timedelta(days=1)
    assert beginning(AT, later, later).clock == "start_at"
    assert beginning(None, AT, later) == (1795344279 * 10**9, "metadata")
    assert beginning(None, None, AT).text == "2026-11-22T10:44:39Z"
    assert beginning(None, None, None) == (0, "file")
