"""What every store on disk promises, whatever becomes of its file: the store goes on, and says what it has lost."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import structlog
from camgraph_test_stages import small_disks
from camgraph_test_stages.outboxes import crash, fill, make_event, open_outbox, pull_ids

from camgraph.pipeline.dead_letters import DeadLetters
from camgraph.pipeline.errors import EnvironmentProblem, NeedsNewProcess, Unavailable
from camgraph.pipeline.graph import parse_graph, plan_of
from camgraph.pipeline.monitoring.controls import SWITCHES_FILE, Switches
from camgraph.pipeline.stage import Stage
from camgraph.pipeline.testing import event, opened, stamp
from camgraph.stages.messages import Frame, Tracks
from camgraph.stages.rules.counting import Counting
from camgraph.stages.rules.python_functions import watch_calls
from camgraph.stages.sinks.footage import incident_index
from camgraph.stages.sinks.footage.incident_index import IncidentFilter, incidents_in, summary_of
from camgraph.stages.sinks.footage.incident_record import FileState, IncidentRecord, records_in
from camgraph.stages.sinks.sink_heatmap import SinkHeatmap
from camgraph.stages.sinks.sink_tracks import SinkTracks
from camgraph.stages.sinks.sink_video import SinkVideo
from camgraph.stages.testing import tracks
from camgraph.tools.service.history.event_history import EventHistory

AGAIN = (EnvironmentProblem, Unavailable)
"""How a store says that it cannot work now."""


@dataclass(frozen=True)
class StoreCase:
    """A store in a folder, for which each call is a process of its own."""

    add: Callable[[Path, int], None]
    """Open it, add one thing of this number, and close it. Raises one of `AGAIN` if that cannot be done now."""
    held: Callable[[Path], set[int]] | None
    """The numbers of what it holds; None for a state that only its owner can read."""
    file: str
    """Its file in the folder, as a pattern."""
    is_database: bool = False
    newer: tuple[str, str] = ("", "")
    """The id and a part of the refusal to touch a file of a newer version; empty if such a file is made anew."""
    most_aside: int = 100
    """How many damaged files stay: the first, which has the most in it, and the last ones."""

    def path(self, folder: Path) -> Path:
        [found] = folder.glob(self.file)
        return found


# ---- databases


def add_to_outbox(folder: Path, number: int) -> None:
    """By as many starts as it takes: damage that shows later ends the process."""
    for incarnation in range(4 * number + 1, 4 * number + 5):
        outbox = open_outbox(folder, incarnation=incarnation)
        try:
            outbox.maintain(0.0)
            outbox.accept([make_event(number)])
            pull_ids(outbox)
            outbox.close()
        except NeedsNewProcess:
            crash(outbox)
        except BaseException:
            outbox.close()
            raise
        else:
            return
    raise AssertionError("broken at each start")


def held_by_outbox(folder: Path) -> set[int]:
    outbox = open_outbox(folder, run=2)
    try:
        return {int(name.rpartition("e")[2]) for name in pull_ids(outbox)}
    finally:
        outbox.close()


def history_in(folder: Path) -> EventHistory:
    return EventHistory(folder / "history.sqlite", structlog.get_logger(), keep_s=1e6, keep_bytes=1e8)


def add_to_history(folder: Path, number: int) -> None:
    with closing(history_in(folder)) as history:
        history.add([event(number)])


def held_by_history(folder: Path) -> set[int]:
    with closing(history_in(folder)) as history:
        return {int(one.event["id"][1:]) for one in history.after(0, 1000)}


def add_to_index(folder: Path, number: int) -> None:
    """An incident has its record, which the index only repeats."""
    start = f"2026-11-{number % 28 + 1:02d}T12:00:00.000Z"
    data: dict[str, Any] = {
        "incident": f"{number:032x}", "phase": "start", "rule": {"id": "fall"}, "action": "fall", "camera": "front",
        "start_time": start,
    }  # fmt: skip
    path = folder / "front" / start[:10] / f"12-00-00_fall_{number:08x}.json"
    try:
        IncidentRecord(path, {"data": data}, {}, {"clip": FileState("missing")}).write()  # type: ignore[arg-type]
    except OSError as error:
        raise Unavailable(str(error)) from None
    incidents_in(folder, IncidentFilter())


def held_by_index(folder: Path) -> set[int]:
    incident_index.checked.clear()  # as a process that begins anew
    found = incidents_in(folder, IncidentFilter())
    assert {one.name for one in found} == {one.name for record in records_in(folder) if (one := summary_of(record))}
    return {int(one.name.removesuffix(".json").rpartition("_")[2], 16) for one in found}


# ---- files


def add_letter(folder: Path, number: int) -> None:
    DeadLetters(folder, "crm").add(event(number), "refused")


def held_letters(folder: Path) -> set[int]:
    return {int(letter.id[1:]) for letter in DeadLetters(folder, "crm")}


NAMED = ", ".join(f"s{number}: {{default: false, keep: true}}" for number in range(12))
SWITCHED = f"""
version: 1
cameras: {{a: {{frames: 1}}}}
stages:
  src: {{use: count_source}}
  people: {{use: stands, from: src}}
  actions: {{use: rules, from: people, with: {{switches: {{{NAMED}}}, rules: [{{id: a, when: score > 0}}]}}}}
  others: {{use: sink_jsonl, from: actions, with: {{path: "-"}}}}
"""


def add_switch(folder: Path, number: int) -> None:
    plan = plan_of(parse_graph(SWITCHED, "graph.yaml", base_folder=folder, name="switched"))
    switches = Switches(folder)
    switches.restore(plan, structlog.get_logger())
    switches.turn(plan, f"s{number}", on=True)
    switches.keep(plan)


def held_switches(folder: Path) -> set[int]:
    plan = plan_of(parse_graph(SWITCHED, "graph.yaml", base_folder=folder, name="switched"))
    switches = Switches(folder)
    switches.restore(plan, structlog.get_logger())
    return {int(name[1:]) for name, on in switches.now(plan).items() if on}


def somebody(number: int) -> Tracks:
    return tracks({1: (8, 8, 40, 56)}, number, frame_size=(96, 64))


def adding(sink: type[Stage[Any]], settings: dict[str, Any], item: Callable[[int], Any]) -> Callable[[Path, int], None]:
    """The process `number` of a sink gets some frames more."""

    def add(folder: Path, number: int) -> None:
        with opened(sink, settings, folder=folder, incarnation=number + 1) as stage:
            for seq in range(20):
                list(stage.process([item(20 * number + seq)]))

    return add


def left(file: str, content: str, begin: Callable[[Path], object]) -> Callable[[Path, int], None]:
    """A file that the process before has left, and how the next one begins with it."""

    def add(folder: Path, number: int) -> None:
        if number == 0:
            (folder / file).write_text(content)
        begin(folder)

    return add


def film(number: int) -> dict[str, Any]:
    return {"frames": Frame.of_bgr(stamp(number), np.zeros((64, 96, 3), np.uint8)), "tracks": somebody(number)}


COUNTS = '{"cam": {"emitted": [0, 1], "counters": {"door": {"hash": "0"}}}}'
HEAT = {"columns": 4, "rows": 3, "every": "1s"}
STORES = {
    "outbox": StoreCase(add_to_outbox, held_by_outbox, "outbox.sqlite", True, ("outbox-newer", "of a newer version")),
    "history": StoreCase(
        add_to_history, held_by_history, "history.sqlite", True, ("history-newer", "its format is 99"), most_aside=5
    ),
    "incident index": StoreCase(add_to_index, held_by_index, incident_index.NAME, True, most_aside=2),
    "dead letters": StoreCase(add_letter, held_letters, "**/*.jsonl"),
    "switches": StoreCase(add_switch, held_switches, SWITCHES_FILE),
    "counts of rules": StoreCase(
        left("counters.0.json", COUNTS, lambda folder: Counting(folder / "counters.0.json").open()),
        None,
        "counters.0.json",
    ),
    "deaths in conditions": StoreCase(
        left("conditions.0.json", '{"limps": 1}', lambda folder: watch_calls(folder, 0)), None, "conditions.0.json"
    ),
    "sink_heatmap": StoreCase(adding(SinkHeatmap, HEAT, somebody), None, "heatmaps.0.json"),
    "sink_tracks": StoreCase(adding(SinkTracks, {"format": "jsonl"}, somebody), None, "tracks.0.json"),
    "sink_video": StoreCase(adding(SinkVideo, {}, film), None, "videos.0.json"),
}
"""The states of the other sinks are tried by `SinkContract`."""
DATABASES = {name: case for name, case in STORES.items() if case.is_database}
REFUSING = {name: case for name, case in DATABASES.items() if all(case.newer)}
"""The index is none of them: without it, the records are read."""
KEEPING = {name: case for name, case in STORES.items() if case.held}


def cases(some: dict[str, StoreCase]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", some.values(), ids=some.keys())


# ---- kills

ADDING = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from test_store_contract import STORES
for number in range(900):
    STORES[sys.argv[2]].add(Path(sys.argv[3]), number)
    print("added", number, flush=True)
"""


@pytest.mark.parametrize("store", DATABASES)
def test_what_was_added_survives_a_kill(store: str, tmp_path: Path) -> None:
    case, told = DATABASES[store], 0
    command = [sys.executable, "-c", ADDING, str(Path(__file__).parent), store, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            told += line.startswith("added")
            if told == 30:
                process.kill()  # those that are in the pipe follow
    assert process.returncode == -signal.SIGKILL
    assert case.held
    assert set(range(told)) <= case.held(tmp_path) <= set(range(told + 1))
    case.add(tmp_path, 1000)
    assert 1000 in case.held(tmp_path)
    assert not list(tmp_path.glob("*damaged*"))


# ---- damage


def garbage(path: Path) -> None:
    path.write_bytes(b"garbage" * 5000)


def cut_off(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def zeroed_head(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(bytes(100))


def overwritten(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"\xa5" * 5000)


def of_another_program(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE theirs (a)")
        db.commit()


def without_tables(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for (table,) in db.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB '[a-r]*'"
        ).fetchall():
            db.execute(f"DROP TABLE {table}")


def of_version_99(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA user_version = 99")


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "lost": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "one byte": lambda path: path.write_bytes(b"\0"),
    "garbage": garbage,
    "a list": lambda path: path.write_bytes(b"[1]"),
    "newer": lambda path: path.write_bytes(b'{"version": 99}'),
    "cut off": cut_off,
    "no head": zeroed_head,
    "overwritten": overwritten,
    "foreign": of_another_program,
}


@cases(STORES)
def test_a_damaged_store_goes_on(case: StoreCase, tmp_path: Path) -> None:
    for name, damage in DAMAGES.items():
        (tmp_path / name).mkdir()
        try:
            goes_on(case, damage, tmp_path / name)
        except BaseException as error:
            error.add_note(f"the damage: {name}")
            raise


def goes_on(case: StoreCase, damage: Callable[[Path], Any], folder: Path) -> None:
    for number in (0, 1):
        case.add(folder, number)
    damage(case.path(folder))
    for number in (2, 3):
        case.add(folder, number)
    if case.held:
        assert {2, 3} <= case.held(folder) <= {0, 1, 2, 3}


@cases(DATABASES)
@pytest.mark.parametrize("damage", [garbage, of_another_program, without_tables])
def test_what_is_not_understood_is_kept_beside(case: StoreCase, damage: Callable[[Path], Any], tmp_path: Path) -> None:
    case.add(tmp_path, 0)
    damage(case.path(tmp_path))
    before = case.path(tmp_path).read_bytes()
    case.add(tmp_path, 1)
    assert [path.read_bytes() for path in tmp_path.glob(f"{case.file}*damaged*")] == [before]


@cases(DATABASES)
def test_of_damaged_files_the_first_and_the_last_stay(case: StoreCase, tmp_path: Path) -> None:
    case.add(tmp_path, 0)
    written = [b"no database %d" % number * 1000 for number in range(7)]
    for number, content in enumerate(written):
        case.path(tmp_path).write_bytes(content)
        case.add(tmp_path, number)
    kept = sorted(tmp_path.glob(f"{case.file}.damaged-*"))
    gone = range(1, len(written) + 1 - case.most_aside)
    assert [path.read_bytes() for path in kept] == [one for n, one in enumerate(written) if n not in gone]


@cases({name: case for name, case in DATABASES.items() if name not in REFUSING})
def test_a_newer_database_is_made_anew(case: StoreCase, tmp_path: Path) -> None:
    goes_on(case, of_version_99, tmp_path)
    assert len(list(tmp_path.glob(f"{case.file}.damaged-*"))) == 1


@cases(REFUSING)
def test_a_newer_database_is_left_alone(case: StoreCase, tmp_path: Path) -> None:
    case.add(tmp_path, 0)
    path = case.path(tmp_path)
    with closing(sqlite3.connect(path)) as db:
        [version] = db.execute("PRAGMA user_version").fetchone()
    of_version_99(path)
    error_id, told = case.newer
    with pytest.raises(EnvironmentProblem, match=rf"{told}.*run that version, or move the file") as refused:
        case.add(tmp_path, 1)
    assert refused.value.error_id == error_id
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {version}")
    case.add(tmp_path, 2)
    assert case.held
    assert case.held(tmp_path) == {0, 2}


@cases(DATABASES)
def test_a_folder_in_its_place_is_told_or_replaced(case: StoreCase, tmp_path: Path) -> None:
    case.add(tmp_path, 0)
    path = case.path(tmp_path)
    path.rename(tmp_path / "aside")
    path.mkdir()
    said = tried(case, tmp_path, 1)
    assert not said or "unable to open" in said
    if path.is_dir():
        path.rmdir()
        (tmp_path / "aside").rename(path)
    case.add(tmp_path, 2)
    assert case.held
    assert case.held(tmp_path) == ({0, 2} if said else {0, 1, 2})


def tried(case: StoreCase, folder: Path, number: int) -> str:
    """Why it cannot be added now; "" if it was."""
    try:
        case.add(folder, number)
    except AGAIN as error:
        return str(error) or type(error).__name__
    return ""


# ---- a disk that does not take anything


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with small_disks.small_disk(tmp_path, 6) as disk:
        yield disk


@cases(KEEPING)
def test_a_full_disk_costs_nothing_that_was_kept(case: StoreCase, small_disk: Path) -> None:
    assert case.held
    for number in (0, 1):
        case.add(small_disk, number)
    fill(small_disk)
    taken = {number for number in (2, 3, 4) if not tried(case, small_disk, number)}
    (small_disk / "ballast").unlink()
    case.add(small_disk, 5)
    assert case.held(small_disk) == {0, 1, 5} | taken


@cases(KEEPING)
def test_a_disk_without_the_right_to_write_costs_nothing(case: StoreCase, small_disk: Path) -> None:
    assert case.held
    for number in (0, 1):
        case.add(small_disk, number)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    try:
        assert tried(case, small_disk, 2), "it says that it has kept what it cannot keep"
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    case.add(small_disk, 3)
    assert case.held(small_disk) == {0, 1, 3}


@cases(REFUSING)
def test_a_full_disk_has_a_way_out(case: StoreCase, small_disk: Path) -> None:
    case.add(small_disk, 0)
    fill(small_disk)
    said = [told for number in range(1, 40) if (told := tried(case, small_disk, number))]
    assert said, "it has room where there is none"
    assert all(re.search("free some disk space|disk (works and )?has room", told) for told in said), said


@cases(REFUSING)
def test_a_disk_without_the_right_to_write_has_a_way_out(case: StoreCase, small_disk: Path) -> None:
    case.add(small_disk, 0)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    try:
        assert re.search("file and its folder writable|its folder is writable", tried(case, small_disk, 1))
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)


# ---- two owners


@cases(DATABASES)
def test_a_lock_of_another_program_costs_nothing(case: StoreCase, tmp_path: Path) -> None:
    assert case.held
    case.add(tmp_path, 0)
    with closing(sqlite3.connect(case.path(tmp_path), isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        said = tried(case, tmp_path, 1)
    assert "let no other program lock the file" in said or (case not in REFUSING.values() and not said)
    case.add(tmp_path, 2)
    assert case.held(tmp_path) == ({0, 2} if said else {0, 1, 2})
    assert not list(tmp_path.glob("*damaged*"))
