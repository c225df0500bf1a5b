from __future__ import annotations

from typing import Any

import pytest

from camgraph.tools.lab.benchmarks.delivery_age import Ages, Arrival, ages_of, measure, table

MINUTE = "2026-11-23T12:00:"
BEGIN_MS = 1_795_435_200_000


def arrival(sink: str, at_ms: float, type_: str, time: str, **data: Any) -> Arrival:
    event = {"type": f"camgraph.{type_}", "time": f"{MINUTE}{time}Z", "data": {"incident": "a", **data}}
    return Arrival(sink, int((BEGIN_MS + at_ms) * 1e6), event)


def incident(reason: str = "condition") -> list[Arrival]:
    return [
        arrival("sink_jsonl", 1040, "incident.start", "01.000"),
        arrival("sink_webhook", 1050, "incident.start", "01.000"),
        arrival("sink_webhook", 1200, "footage.ready", "01.100", kind="snapshot"),
        arrival("sink_webhook", 3100, "incident.end", "03.050", end_time=f"{MINUTE}03.000Z", reason=reason),
        arrival("sink_webhook", 3700, "footage.ready", "03.600", kind="clip"),
        arrival("sink_webhook", 3800, "footage.ready", "03.600", kind="best"),
    ]


def test_ages_count_from_the_frame_and_from_the_end_of_the_clip() -> None:
    ages = ages_of(incident(), BEGIN_MS)
    found = {**ages.events, **ages.files}
    assert {name: list(map(round, of)) for name, of in found.items()} == {
        "sink_jsonl": [40],
        "sink_webhook": [50],
        "snapshot": [200],
        "clip": [200],
    }


def test_neither_the_warm_up_nor_the_end_of_the_run_is_measured() -> None:
    assert ages_of(incident(), BEGIN_MS + 1500) == Ages({}, {"snapshot": [], "clip": []})
    assert ages_of(incident("stopped"), BEGIN_MS).files["clip"] == []


def test_the_table() -> None:
    rows = table(Ages({"sink_webhook": [50.0, 70.0]}, {}), Ages({}, {"snapshot": [200.0], "clip": []}))
    assert rows[2] == "| the event at a web server (`sink_webhook`) | 70 ms, 70 ms (2) | - |"
    assert rows[5] == "| `ready` of its picture at the web server | | 200 ms, 200 ms (1) |"


@pytest.mark.parametrize("pictures", [False, True])
def test_ages_of_a_live_camera(pictures: bool) -> None:
    ages = measure(pictures=pictures, cameras=1, seconds=8.0, size=(192, 128), fps=10)
    assert ages.events["sink_webhook"]
    assert ages.events["sink_jsonl"]
    assert all(age > 0 for found in (*ages.events.values(), *ages.files.values()) for age in found)
    assert bool(ages.files["snapshot"]) is pictures
