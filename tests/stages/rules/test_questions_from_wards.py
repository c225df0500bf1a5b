"""The example of the page that waits at the door but not at breakfast, and its words on `for` and `dwell`."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.stages.rules.test_rules import data_of, tracks

from camgraph.pipeline.testing import feed, opened
from camgraph.stages.events import IncidentData
from camgraph.stages.messages import Tracks
from camgraph.stages.rules.rules import Rules

PAGE = Path(__file__).parents[3] / "docs" / "rules.md"
[EXAMPLE] = re.findall(r"```yaml\n(# door_rules\.yaml\n.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
AT_THE_DOOR = (200.0, 150.0)


def stands(begin: str, seconds: int, seq: int = 0) -> list[Tracks]:
    """Two frames a second of somebody at the door, from this time of a day in Berlin on."""
    begin_ns = int(datetime.fromisoformat(f"2026-03-02T{begin}+01:00").timestamp()) * 10**9
    found = []
    for i in range(2 * seconds):
        item = tracks(seq + i, [(7, *AT_THE_DOOR)])
        times = {"time_ns": begin_ns + i * 500_000_000, "wall_ns": begin_ns + i * 500_000_000, "clock": "ntp"}
        found.append(replace(item, stamp=item.stamp._replace(**times)))
    return found


def incidents(folder: Path, text: str, items: list[Tracks]) -> list[IncidentData]:
    (folder / "rules.yaml").write_text(text)
    settings: dict[str, Any] = {"file": "rules.yaml"}
    with opened(Rules, settings, folder=folder) as stage:
        return data_of(feed(stage, items))


@pytest.mark.parametrize(
    ("begin", "seconds", "expected"),
    [
        ("07:30:00", 20, [("start", "07:30:10", None)]),
        ("08:30:00", 60, []),
        ("07:59:45", 30, [("start", "07:59:55", None), ("end", "07:59:59", "schedule")]),
        ("08:58:00", 140, [("start", "09:00:10", None)]),
    ],
)
def test_waits_at_the_door_but_not_at_breakfast(
    tmp_path: Path, begin: str, seconds: int, expected: list[tuple[str, str, str | None]]
) -> None:
    """An hour less in UTC. A start is reported when `for` has passed; the `end_time` is the last moment of truth."""
    items = stands(begin, seconds)
    found = incidents(tmp_path, EXAMPLE, items)
    frames = {item.stamp.seq: item.stamp.wall_ns for item in items}
    shown = [
        (data.phase, f"{datetime.fromtimestamp(frames[data.frame.seq] // 10**9 + 3600, UTC):%H:%M:%S}", data.reason)
        for data in found
    ]
    assert shown == expected


def test_dwell_goes_on_while_the_rule_rests(tmp_path: Path) -> None:
    text = re.sub(r"when: .*\n    for: 10s", "when: dwell(door) > 10s", EXAMPLE)
    [start] = incidents(tmp_path, text, stands("08:50:00", 620))
    assert (start.phase, start.start_time) == ("start", "2026-03-02T08:00:00.000Z")


@pytest.mark.parametrize(("when", "more", "starts"), [("in door", "10s", 0), ("dwell(door) > 10s", "0s", 1)])
def test_a_step_out_of_the_zone(tmp_path: Path, when: str, more: str, starts: int) -> None:
    """For one second, after eight."""
    items = stands("07:30:00", 17)
    out = [replace(item, boxes=item.boxes + 150 * (16 <= i < 18)) for i, item in enumerate(items)]
    text = re.sub(r"when: .*\n    for: 10s", f"when: {when}\n    for: {more}", EXAMPLE)
    assert len(incidents(tmp_path, text, out)) == starts
