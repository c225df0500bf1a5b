"""How long lists of incidents take: `python -m camgraph.tools.lab.benchmarks.incident_lists --report docs/footage.md`.

Makes a folder with the records of many incidents, of 20 cameras in 30 days, as `sink_footage` writes them, and asks
for some of them: with the index that it keeps, without one, and with one that cannot be written.
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import click

from camgraph.stages import events
from camgraph.stages.rules.footage_names import names_of
from camgraph.stages.sinks.footage.incident_index import NAME, IncidentFilter, incidents_in
from camgraph.stages.sinks.footage.incident_record import FileState, IncidentRecord
from camgraph.tools.lab.figure import Figure, figure_command

_CAMERAS, _DAYS, _REPEATS = 20, 30, 5
_RULES = ("fall", "waving", "running", "lying", "gathering")
_NEWEST = datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC)


def make(folder: Path, count: int) -> None:
    """The records of `count` incidents, spread evenly."""
    step = timedelta(days=_DAYS) / count
    for number in range(count):
        record(folder, number, _NEWEST - step * number).write()


def record(folder: Path, number: int, at: datetime) -> IncidentRecord:
    """One incident with its picture and its clip, of 2 people."""
    camera, rule = f"room-{number % _CAMERAS}", _RULES[number // _CAMERAS % len(_RULES)]
    names = names_of("", camera, rule, f"{number:032x}"[::-1], round(at.timestamp() * 1e9))
    first = _event(camera, rule, f"{number:032x}"[::-1], at)
    files = {
        "snapshot": FileState("ready", bytes=90_000, sha256=64 * "a", width=1280, height=720),
        "clip": FileState("ready", bytes=5_000_000, sha256=64 * "b", seconds=18.5, width=1280, height=720),
        "best": FileState("missing", "the first picture is the best"),
    }
    return IncidentRecord(folder / names.record, first, first, files)  # type: ignore[arg-type]


def _event(camera: str, rule: str, incident: str, at: datetime) -> dict[str, Any]:
    wall_ns = round(at.timestamp() * 1e9)
    person = {"track_id": 1, "bbox": [100, 100, 300, 600], "score": 0.9, "keypoints": [200.0, 200.0, 0.9] * 17}
    data = {
        "incident": incident,
        "phase": "start",
        "rule": {"id": rule, "hash": "0"},
        "action": rule,
        "camera": camera,
        "people": [person, person],
        "keypoints_format": "coco-17",
        "zones": [],
        "start_time": events.utc(wall_ns),
        "duration_s": 8.5,
        "frame": {"width": 1280, "height": 720, "epoch": 0, "seq": 1, "pts": 1, "time_base": (1, 90_000)},
    }
    whole = events.IncidentData.model_validate(data).model_dump(mode="json")
    return {"specversion": "1.0", "type": "camgraph.incident.start", "time": events.utc(wall_ns), "data": whole}


_ASKED: dict[str, IncidentFilter] = {
    "`--camera room-3 --limit 50`": IncidentFilter(camera="room-3", newest=50),
    "`--since 12h`": IncidentFilter(since=_NEWEST - timedelta(hours=12)),
    "`--rule fall --limit 50`": IncidentFilter(rule="fall", newest=50),
    "`--camera room-3 --since 7d --rule fall --limit 50`": IncidentFilter(
        "room-3", _NEWEST - timedelta(days=7), "fall", newest=50
    ),
    "`--camera room-3`": IncidentFilter(camera="room-3"),
    "`show 1f00ba7e`": IncidentFilter(incident=f"{99:032x}"[::-1]),
    "all of them": IncidentFilter(),
}


def seconds(work: Callable[[], object], repeats: int = _REPEATS) -> float:
    """The median of some calls."""
    found = []
    for _ in range(repeats):
        begun = time.perf_counter()
        work()
        found.append(time.perf_counter() - begun)
    return median(found)


def row(folder: Path, name: str, wanted: IncidentFilter) -> str:
    """One line of the table: kept, locked by another process, and lost."""
    kept_s = seconds(lambda: incidents_in(folder, wanted))
    with closing(sqlite3.connect(folder / NAME, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        without_s = seconds(lambda: incidents_in(folder, wanted), 1)
    return f"| {name} | {len(incidents_in(folder, wanted))} | {kept_s:.2f} s | {without_s:.1f} s |"


@figure_command("benchmarks.incident_lists")
@click.option("--incidents", default=100_000, show_default=True, type=click.IntRange(100), help="So many.")
def main(figure: Figure, incidents: int) -> None:
    """Measure lists of incidents."""
    with tempfile.TemporaryDirectory(prefix="cglists") as text:
        folder = Path(text) / "footage"
        make(folder, incidents)
        made_s = seconds(lambda: incidents_in(folder, IncidentFilter()), 1)
        time.sleep(2.5)  # until the index takes the folders for settled
        incidents_in(folder, IncidentFilter())
        size = (folder / NAME).stat().st_size
        rows = [row(folder, *one) for one in _ASKED.items()]
    head = "| asked for | found | with the index | from the records |"
    parts = [figure.head(), "", head, "|---|---|---|---|", *rows, ""]
    parts += ["The last column: another process locks the index; 0.3 s of it is waiting for the lock."]
    parts += [f"Making the index of {incidents} incidents anew took {made_s:.0f} s. It has {size / 1e6:.0f} MB.", ""]
    figure.publish("\n".join(parts))


if __name__ == "__main__":
    main()
