"""A committed event is handed out until every sink that wants it has it, whatever dies in between."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from camgraph_test_stages.outboxes import fill
from hypothesis import given
from hypothesis import strategies as st

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.pipeline.items import Item, Key
from camgraph.pipeline.messages import MOST_REPEATED, EndReason, Event, Tombstone
from camgraph.pipeline.outbox.event_file import remove_delivered
from camgraph.pipeline.outbox.outbox import Outbox
from camgraph.pipeline.stage import Stage
from camgraph.pipeline.testing import HandContext, reports_of, stamp


def event(seq: int, camera: str = "cam", *, sender: str = "rules", name: str = "") -> Item:
    made = Event(stamp(seq, camera), name or f"{camera}-{seq}", "incident", "start", b'{"seq":%d}' % seq)
    return Item(camera, Key(0, seq, 0), made, sender)


def stone(seq: int, camera: str) -> Item:
    return Item(camera, Key(0, seq, 0), Tombstone(stamp(seq, camera)), "rules")


OPENED: list[sqlite3.Connection] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    """Those that end as after a kill, or by a failed test, leave no connection to the garbage collector."""
    yield
    while OPENED:
        OPENED.pop().close()


def make(
    folder: Path,
    *,
    run: int = 1,
    incarnation: int = 1,
    cameras: tuple[str, ...] = ("cam",),
    wall_ns: Callable[[], int] = time.time_ns,
    **more: Any,
) -> Outbox:
    values = {"path": str(folder / "outbox.sqlite"), "sinks": {"log": [], "alarm": ["rules"]}, **more}
    state = folder / f"run{run}"
    state.mkdir(exist_ok=True)
    context = HandContext(folder, state, incarnation=incarnation, cameras=cameras)
    outbox = Outbox(Outbox.settings_type.model_validate(values), context, wall_ns=wall_ns)
    assert isinstance(outbox, Stage)
    outbox.open()
    OPENED.append(outbox.db)
    return outbox


def test_the_time_of_commit_survives_the_process(tmp_path: Path) -> None:
    times = iter([1_700_000_000_000_000_000, 1_700_000_000_000_000_001])
    first = make(tmp_path, wall_ns=lambda: next(times))
    first.accept([event(1)])
    first.accept([event(1), event(2)])
    first.db.close()
    again = make(tmp_path, incarnation=2)
    found = {event.id: event for _, event in again.pull("log", 9)}
    assert [found[name].committed_ns - 1_700_000_000_000_000_000 for name in ("cam-1", "cam-2")] == [0, 1]
    assert found["cam-1"].body == b'{"seq":1}'
    again.close()


def deliver(outbox: Outbox, sink: str, rows: list[tuple[int, Event]]) -> None:
    outbox.acknowledge(sink, [row for row, _ in rows])
    outbox.note_delivered()


def names(rows: list[tuple[int, Event]]) -> list[str]:
    return [event.id for _, event in rows]


def test_each_sink_gets_what_it_wants_once(tmp_path: Path) -> None:
    outbox = make(tmp_path)
    outbox.accept([event(1), event(2, sender="other")])
    assert names(outbox.pull("log", 10)) == ["cam-1", "cam-2"]
    assert names(outbox.pull("log", 10)) == []
    assert names(outbox.pull("alarm", 10)) == ["cam-1"]
    outbox.close()


def test_a_repeated_id_is_ignored(tmp_path: Path) -> None:
    outbox = make(tmp_path)
    outbox.accept([event(1), event(1)])
    outbox.accept([event(1)])
    assert names(outbox.pull("log", 10)) == ["cam-1"]
    outbox.close()


def test_what_was_not_acknowledged_comes_again_after_a_restart(tmp_path: Path) -> None:
    outbox = make(tmp_path)
    outbox.accept([event(n) for n in range(4)])
    rows = outbox.pull("log", 3)
    deliver(outbox, "log", [rows[0], rows[2]])
    outbox.db.close()  # as after a kill: nothing is tidied up
    again = make(tmp_path, incarnation=2)
    again.accept([event(0), event(3)])
    assert names(again.pull("log", 10)) == ["cam-1", "cam-3"]
    again.close()


def test_next_run_delivers_leftovers_despite_same_ids(tmp_path: Path) -> None:
    first = make(tmp_path)
    first.accept([event(1)])
    first.acknowledge("alarm", [row for row, _ in first.pull("alarm", 9)])
    first.end("cam")
    first.close()
    second = make(tmp_path, run=2)
    second.accept([event(1)])
    assert names(second.pull("log", 10)) == ["before 1 cam-1", "cam-1"]
    assert names(second.pull("alarm", 10)) == ["cam-1"]
    second.close()


def test_the_file_goes_when_all_is_delivered(tmp_path: Path) -> None:
    outbox = make(tmp_path, sinks={"log": []})
    outbox.accept([event(1)])
    outbox.acknowledge("log", [row for row, _ in outbox.pull("log", 9)])
    outbox.end("cam")
    outbox.close()
    assert list(tmp_path.glob("outbox*")) == []


def test_an_outbox_that_closes_within_a_run_keeps_its_file(tmp_path: Path) -> None:
    """It begins anew for new settings: nothing waits, but an incident is open, and its stage may die later."""
    outbox = make(tmp_path)
    outbox.accept([event(1)])
    for sink in ("log", "alarm"):
        deliver(outbox, sink, outbox.pull(sink, 9))
    outbox.close()
    again = make(tmp_path, incarnation=2)
    again.end_lost("rules", ["cam"], 1)
    assert [ended.phase for _, ended in again.pull("log", 9)] == ["end"]
    again.close()


def test_a_restart_knows_which_cameras_have_ended(tmp_path: Path) -> None:
    outbox = make(tmp_path, cameras=("a", "b"))
    outbox.end("a")
    outbox.db.close()
    again = make(tmp_path, incarnation=2, cameras=("a", "b"))
    assert not again.all_ended
    again.end("b")
    assert again.all_ended
    assert again.last_word.reason == "stopped"  # nobody knows any more why `a` has ended
    again.close()


def test_a_camera_that_comes_again_has_not_ended(tmp_path: Path) -> None:
    """The end of the camera that was removed is not that of the new one, also after a restart: the run would end."""
    outbox = make(tmp_path, cameras=("a", "b"))
    outbox.end("a")
    for cameras in (("b",), ("a", "b")):
        outbox.context.cameras = cameras
        outbox.cameras_changed()
    outbox.end("b")
    assert not outbox.all_ended
    outbox.db.close()
    again = make(tmp_path, incarnation=2, cameras=("a", "b"))
    assert not again.all_ended
    again.close()


@pytest.mark.parametrize(
    ("reasons", "told"),
    [
        (["end", "end"], "end"),
        (["end", "stopped"], "stopped"),
        (["stopped", "error"], "stopped"),
        (["error", "end"], "error"),
    ],
)
def test_last_word_tells_whether_each_camera_came_to_its_own_end(
    tmp_path: Path, reasons: list[EndReason], told: EndReason
) -> None:
    outbox = make(tmp_path, cameras=("a", "b"))
    for camera, reason in zip("ab", reasons, strict=True):
        outbox.end(camera, reason)
    assert outbox.last_word.reason == told
    outbox.close()


def test_what_a_dead_stage_left_open_is_ended_once(tmp_path: Path) -> None:
    outbox = make(tmp_path, sinks={"log": []})
    outbox.accept([event(1, name="x1"), event(2, name="x2")])
    for item, phase in ((outbox_item("b", 3, "start"), "start"), (outbox_item("b", 4, "end"), "end")):
        assert item.payload.phase == phase  # type: ignore[union-attr]
        outbox.accept([item])
    outbox.end_lost("rules", ["cam", "other"], 1)
    outbox.end_lost("rules", ["cam"], 1)
    rows = [found for _, found in outbox.pull("log", 20)]
    lost = [found for found in rows if b"lost" in found.body]
    assert [(found.incident, found.phase) for found in lost] == [("incident", "end")]
    assert json.loads(lost[0].body)["data"] == {"phase": "end", "reason": "lost"}
    outbox.close()


def outbox_item(incident: str, seq: int, phase: Any, incarnation: int = 0) -> Item:
    made = Event(stamp(seq), f"{incident}-{seq}", incident, phase, b"{}")
    return Item("cam", Key(0, seq, 0), made, "rules", incarnation=incarnation)


def pulled(outbox: Outbox) -> list[tuple[str, str]]:
    return [(found.incident, found.phase) for _, found in outbox.pull("log", 99)]


def test_what_comes_late_of_a_dead_process_leaves_nothing_open(tmp_path: Path) -> None:
    outbox = make(tmp_path, sinks={"log": []})
    outbox.accept([outbox_item("a", 1, "start", 1)])
    outbox.end_lost("rules", ["cam"], 1)
    assert pulled(outbox) == [("a", "start"), ("a", "end")]
    outbox.accept([outbox_item("a", 2, "update", 1), outbox_item("b", 2, "start", 1), outbox_item("c", 2, "single", 1)])
    assert pulled(outbox) == [("b", "start"), ("c", "single"), ("b", "end")]
    outbox.accept([outbox_item("a", 3, "end", 1), outbox_item("b", 3, "end", 1)])
    assert pulled(outbox) == []
    outbox.db.close()


def test_late_death_spares_incidents_of_successor(tmp_path: Path) -> None:
    outbox = make(tmp_path, sinks={"log": []})
    outbox.accept([outbox_item("a", 1, "start", 1), outbox_item("b", 2, "start", 2)])
    for _ in range(2):
        outbox.end_lost("rules", ["cam"], 1)
    assert pulled(outbox) == [("a", "start"), ("b", "start"), ("a", "end")]
    outbox.accept([outbox_item("b", 3, "update", 2), outbox_item("b", 4, "end", 2)])
    assert pulled(outbox) == [("b", "update"), ("b", "end")]
    outbox.end_lost("rules", ["cam"], 2)
    assert pulled(outbox) == []
    outbox.db.close()


def test_a_stage_in_the_process_of_the_outbox_died_with_it(tmp_path: Path) -> None:
    first = make(tmp_path, sinks={"log": []})
    first.accept([outbox_item("a", 1, "start")])
    first.db.close()
    second = make(tmp_path, incarnation=2, sinks={"log": []})
    second.accept([outbox_item("b", 2, "start")])
    second.end_lost("rules", ["cam"], 1)
    assert pulled(second) == [("a", "start"), ("b", "start"), ("a", "end")]
    second.db.close()


def test_events_that_an_older_version_has_left_are_delivered(tmp_path: Path) -> None:
    first = make(tmp_path, sinks={"log": []})
    first.accept([outbox_item("a", 1, "start")])
    for column in ("incarnation", "committed_ns", "waits_from_s"):
        first.db.execute(f"ALTER TABLE events DROP COLUMN {column}")
    for table in ("incidents", "readers", "run"):
        first.db.execute(f"DROP TABLE {table}")
    for pragma in ("application_id", "user_version"):
        first.db.execute(f"PRAGMA {pragma} = 0")
    first.db.execute("UPDATE events SET id = 'a-1'")
    first.db.execute("CREATE INDEX of_incident ON events (incident)")
    first.db.close()
    second = make(tmp_path, run=2, sinks={"log": []}, wall_ns=lambda: 7)
    second.accept([outbox_item("b", 2, "single")])
    found = [(event.incident, event.phase, event.committed_ns) for _, event in second.pull("log", 99)]
    assert found == [("a", "start", 0), ("b", "single", 7)]
    assert not second.db.execute("SELECT 1 FROM sqlite_master WHERE name = 'of_incident'").fetchone()
    second.db.close()


@given(st.data())
def test_incidents_of_dead_processes_end_once(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Each incarnation's events come in order; the news of its death comes anywhere, and may come again."""
    outbox = make(tmp_path_factory.mktemp("o"), sinks={"log": []})
    seq = 0
    lives: list[Any] = []
    for life in (1, 2):
        for n in range(data.draw(st.integers(0, 3), label=f"incidents of {life}")):
            seq += 1
            lives.append(outbox_item(f"{life}-{n}", seq, "start", life))
            if data.draw(st.booleans()):
                seq += 1
                lives.append(outbox_item(f"{life}-{n}", seq, "end", life))
    for _ in range(data.draw(st.integers(1, 3))):
        lives.insert(data.draw(st.integers(0, len(lives))), "died")
    for one in lives:
        if one == "died":
            outbox.end_lost("rules", ["cam"], 1)
        else:
            outbox.accept([one])
    found = pulled(outbox)
    outbox.db.close()
    begun = {incident for incident, phase in found if phase == "start"}
    assert begun == {one.payload.incident for one in lives if one != "died"}
    ended = {one.payload.incident for one in lives if one != "died" and one.payload.phase == "end"}
    for incident in begun:
        wanted = 1 if incident.startswith("1-") or incident in ended else 0
        assert found.count((incident, "end")) == wanted


def test_the_file_stays_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("camgraph.pipeline.outbox.old_events._KEPT", 10)
    outbox = make(tmp_path, sinks={"log": []})
    for n in range(100):
        outbox.accept([event(n)])
        deliver(outbox, "log", [row for row in outbox.pull("log", 9) if row[1].id != "cam-50"])
    assert outbox.db.execute("SELECT count(*) FROM events").fetchone()[0] <= 13
    outbox.db.close()
    again = make(tmp_path, incarnation=2, sinks={"log": []})
    assert names(again.pull("log", 9)) == ["cam-50"]
    again.close()


def test_acknowledgement_is_retried_until_disk_takes_it(tmp_path: Path) -> None:
    outbox = make(tmp_path, sinks={"log": []})
    outbox.accept([event(1), event(2)])
    outbox.db.execute("PRAGMA query_only = 1")
    outbox.acknowledge("log", [row for row, _ in outbox.pull("log", 9)])
    outbox.try_to_note(100.0)
    assert names(outbox.pull("log", 9)) == []
    with pytest.raises(EnvironmentProblem, match="file and its folder writable"):
        outbox.accept([event(3)])
    with pytest.raises(EnvironmentProblem, match="file and its folder writable"):
        outbox.note_delivered()
    outbox.db.execute("PRAGMA query_only = 0")
    outbox.try_to_note(100.9)
    assert (outbox.left("log"), outbox.over("log")) == (2, False), "it is tried once a second"
    outbox.try_to_note(101.0)
    assert (outbox.left("log"), outbox.over("log")) == (0, True)
    outbox.close()


@pytest.mark.parametrize("ordered", [[], ["log"]])
def test_a_sink_gets_no_more_while_none_is_noted(tmp_path: Path, ordered: list[str]) -> None:
    outbox = make(tmp_path, sinks={"log": []}, ordered=ordered)
    outbox.accept([event(n) for n in range(2 * MOST_REPEATED)])
    outbox.end("cam")
    handed: list[int] = []
    while rows := [row for row, _ in outbox.pull("log", 100)]:
        outbox.acknowledge("log", rows)
        handed += rows
    assert len(handed) == MOST_REPEATED
    outbox.note_delivered()
    handed += (rest := [row for row, _ in outbox.pull("log", 2 * MOST_REPEATED)])
    assert len(rest) == MOST_REPEATED
    assert handed == [*range(1, 2 * MOST_REPEATED + 1)]
    outbox.close()


def test_acknowledgements_that_come_together_are_one_transaction(tmp_path: Path) -> None:
    outbox = make(tmp_path, sinks={"log": []})
    outbox.accept([event(n) for n in range(50)])
    statements: list[str] = []
    outbox.db.set_trace_callback(statements.append)
    for row, _ in outbox.pull("log", 50):
        outbox.acknowledge("log", [row])
    outbox.try_to_note(0.0)
    outbox.try_to_note(0.1)
    outbox.db.set_trace_callback(None)
    assert [line for line in statements if line.startswith(("BEGIN", "COMMIT"))] == ["BEGIN IMMEDIATE", "COMMIT"]
    assert outbox.over("log")
    outbox.close()


def test_what_is_acknowledged_is_noted_at_the_close(tmp_path: Path) -> None:
    outbox = make(tmp_path, sinks={"log": []})
    outbox.accept([event(1)])
    outbox.db.execute("PRAGMA query_only = 1")
    outbox.acknowledge("log", [row for row, _ in outbox.pull("log", 9)])
    outbox.try_to_note(1.0)
    outbox.db.execute("PRAGMA query_only = 0")
    outbox.end("cam")
    outbox.close()
    assert list(tmp_path.glob("outbox*")) == []


def test_what_is_not_committed_is_not_counted(tmp_path: Path) -> None:
    outbox = make(tmp_path, sinks={"log": []})
    outbox.accept([outbox_item("a", 1, "start", 1), outbox_item("a", 2, "end", 1)])
    outbox.end_lost("rules", ["cam"], 1)
    before = dict(reports_of(outbox).counts)
    outbox.db.execute("PRAGMA query_only = 1")
    broken = outbox_item("two words", 4, "single", 1)
    for _ in range(2):
        with pytest.raises(EnvironmentProblem):
            outbox.accept([outbox_item("b", 3, "single", 1), outbox_item("a", 3, "update", 1), broken])
    assert reports_of(outbox).counts == before
    outbox.db.execute("PRAGMA query_only = 0")
    outbox.accept([outbox_item("b", 3, "single", 1), outbox_item("a", 3, "update", 1), broken])
    counts = reports_of(outbox).counts
    added = {name: n - before.get((name, "cam"), 0) for (name, _), n in counts.items()}
    assert added == {"events": 1, "late": 1, "dropped.invalid_event": 1}
    outbox.close()


def test_an_incident_that_is_open_is_ended_however_old_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("camgraph.pipeline.outbox.old_events._KEPT", 10)
    outbox = make(tmp_path, sinks={"log": []})
    for incident, phase in (("open", "start"), ("over", "start"), ("open", "update"), ("over", "end")):
        seq = outbox.db.execute("SELECT count(*) FROM events").fetchone()[0]
        outbox.accept([outbox_item(incident, seq, phase, 1)])
    for n in range(4, 100):
        outbox.accept([outbox_item(f"s{n}", n, "single", 1)])
        deliver(outbox, "log", outbox.pull("log", 9))
    assert outbox.db.execute("SELECT count(*) FROM events").fetchone()[0] <= 13
    outbox.end_lost("rules", ["cam"], 1)
    assert pulled(outbox) == [("open", "end")]
    outbox.close()


def test_an_end_is_kept_while_the_start_before_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("camgraph.pipeline.outbox.old_events._KEPT", 10)
    outbox = make(tmp_path, sinks={"log": []})
    outbox.accept([outbox_item("a", 1, "start", 1)])
    start = outbox.pull("log", 9)
    outbox.accept([outbox_item("a", 2, "end", 1)])
    for n in range(3, 100):
        outbox.accept([outbox_item(f"s{n}", n, "single", 1)])
        deliver(outbox, "log", outbox.pull("log", 9))
    outbox.end_lost("rules", ["cam"], 1)
    assert pulled(outbox) == []
    deliver(outbox, "log", start)
    outbox.close()


@pytest.mark.parametrize("phases", [("start", "end"), ("start",)])
def test_earlier_run_does_not_affect_incidents(tmp_path: Path, phases: tuple[str, ...]) -> None:
    first = make(tmp_path, sinks={"log": []})
    first.accept([outbox_item("a", n, phase, 1) for n, phase in enumerate(phases)])
    first.close()
    second = make(tmp_path, run=2, sinks={"log": []})
    assert pulled(second) == [("a", phase) for phase in phases]
    second.end_lost("rules", ["cam"], 1)
    assert pulled(second) == []
    second.accept([outbox_item("a", 1, "start", 2)])
    second.end_lost("rules", ["cam"], 2)
    assert pulled(second) == [("a", "start"), ("a", "end")]
    second.close()


@pytest.mark.parametrize("live", [True, False])
def test_the_next_run_of_live_cameras_ends_what_was_open(tmp_path: Path, *, live: bool) -> None:
    """As after a power cut: nobody has closed the first one."""
    more = {"sinks": {"log": []}, "producers": ["rules"], "live": live}
    first = make(tmp_path, **more)
    for seq, (incident, phase) in enumerate([("a", "start"), ("b", "start"), ("a", "update"), ("b", "end")]):
        first.accept([outbox_item(incident, seq, phase, 3)])
    camera_lost = replace(outbox_item("lost", 9, "start", 3), sender="capture")
    first.accept([camera_lost])
    deliver(first, "log", first.pull("log", 9))
    first.db.close()
    second = make(tmp_path, run=2, **more)
    rows = second.pull("log", 9)
    assert [(one.incident, one.phase) for _, one in rows] == ([("a", "end")] if live else [])
    assert all(one.id.startswith("before ") for _, one in rows)
    second.accept([outbox_item("a", 1, "start", 1)])
    deliver(second, "log", rows)
    assert [(one.incident, one.phase) for _, one in second.pull("log", 9)] == [("a", "start")]
    second.close()


def test_a_folder_with_incidents_to_end_is_no_left_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "outbox.sqlite"
    outbox = make(tmp_path, sinks={"log": []}, producers=["rules"], live=True)
    outbox.accept([outbox_item("a", 1, "start", 1)])
    deliver(outbox, "log", outbox.pull("log", 9))
    outbox.db.close()
    assert not remove_delivered(path)
    monkeypatch.setattr("camgraph.pipeline.outbox.event_file._AWAITED_S", 0.0)
    assert remove_delivered(path)
    assert not path.exists()


def test_nothing_is_looked_up_where_nothing_has_changed(tmp_path: Path) -> None:
    outbox = make(tmp_path, sinks={"log": []}, ordered=["log"], producers=["rules"])
    outbox.accept([event(n) for n in range(3)])
    assert names(outbox.pull("log", 9)) == ["cam-0", "cam-1"]
    statements: list[str] = []
    outbox.db.set_trace_callback(statements.append)
    assert names(outbox.pull("log", 9)) == []
    assert statements == []
    outbox.db.set_trace_callback(None)
    outbox.accept([stone(3, "cam")])
    assert names(outbox.pull("log", 9)) == ["cam-2"]
    outbox.close()


@pytest.mark.parametrize("ordered", [[], ["log"]])
def test_no_query_of_each_turn_goes_through_all_that_is_pending(tmp_path: Path, ordered: list[str]) -> None:
    outbox = make(tmp_path, sinks={"log": []}, ordered=ordered)
    statements: list[str] = []
    outbox.db.set_trace_callback(statements.append)
    outbox.accept([event(1), event(2)])
    outbox.end("cam")
    deliver(outbox, "log", outbox.pull("log", 9))
    assert outbox.over("log")
    outbox.db.set_trace_callback(None)
    looked = [line for line in statements if line.lstrip().startswith(("SELECT", "DELETE", "INSERT"))]
    for line in looked:
        plan = [row[3] for row in outbox.db.execute("EXPLAIN QUERY PLAN " + line)]
        assert not [step for step in plan if (step.startswith("SCAN") and step != "SCAN r") or "TEMP B-TREE" in step], (
            line
        )
    assert len(looked) >= 5
    outbox.close()


def test_an_unwritable_place_is_said(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match="writable"):
        make(tmp_path, path="/proc/none/outbox.sqlite")


def test_earlier_run_does_not_count_after_a_death(tmp_path: Path) -> None:
    first = make(tmp_path)
    first.accept([event(1)])
    first.end("cam")
    first.close()
    second = make(tmp_path, run=2, incarnation=2)
    assert not second.all_ended
    second.accept([event(1)])
    assert second.left("log") == 2
    second.close()


def test_a_slow_producer_holds_the_order_of_time_back(tmp_path: Path) -> None:
    outbox = make(tmp_path, sinks={"log": []}, ordered=["log"], producers=["quick", "slow"])
    outbox.accept([event(n, sender="quick", name=f"q{n}") for n in range(5)])
    assert names(outbox.pull("log", 9)) == []
    outbox.accept([event(n, sender="slow", name=f"s{n}") for n in range(3)])
    assert names(outbox.pull("log", 9)) == ["q0", "s0", "q1", "s1"]
    outbox.db.close()


def test_huge_part_numbers_keep_their_order(tmp_path: Path) -> None:
    """Each stage that an event comes through makes them larger."""
    outbox = make(tmp_path, sinks={"log": []}, ordered=["log"], producers=["rules"])
    parts = [0, 1, 1 << 62, 1 << 70, (1 << 70) + 1, 1 << 90]
    for part in parts:
        made = Event(stamp(1), str(part), "incident", "single", b"{}")
        outbox.accept([Item("cam", Key(0, 1, part), made, "rules")])
    outbox.end("cam")
    assert names(outbox.pull("log", 9)) == [str(part) for part in parts]
    outbox.db.close()


@given(st.data())
def test_ordered_sink_gets_one_sequence(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    cameras = ("a", "b", "c")
    judged = {c: data.draw(st.lists(st.booleans(), max_size=8), label=c) for c in cameras}
    todo = {c: [event(n, c) if is_event else stone(n, c) for n, is_event in enumerate(judged[c])] for c in cameras}
    expected = sorted(
        ((item.stamp.time_ns, c, item) for c in cameras for item in todo[c] if isinstance(item.payload, Event)),
        key=lambda row: row[:2],
    )
    outbox = make(tmp_path_factory.mktemp("o"), cameras=cameras, sinks={"log": []}, ordered=["log"])
    got: list[str] = []
    while any(todo.values()):
        camera = data.draw(st.sampled_from([c for c in cameras if todo[c]]))
        outbox.accept([todo[camera].pop(0)])
        if not todo[camera]:
            outbox.end(camera)
        got += names(outbox.pull("log", data.draw(st.integers(1, 3))))
    for camera in cameras:
        outbox.end(camera)
    got += names(outbox.pull("log", 100))
    outbox.db.close()
    assert got == [item.payload.id for _, _, item in expected if isinstance(item.payload, Event)]


def test_what_cannot_be_opened_says_why_and_closes_in_silence(tmp_path: Path) -> None:
    (tmp_path / "outbox.sqlite").mkdir()
    values = {"path": str(tmp_path / "outbox.sqlite"), "sinks": {"log": []}}
    outbox = Outbox(Outbox.settings_type.model_validate(values), HandContext(tmp_path, tmp_path))
    with pytest.raises(EnvironmentProblem, match="cannot be opened: unable to open database file"):
        outbox.open()
    outbox.close()
    assert not outbox.is_open


def test_only_empty_folder_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "watch-1"
    values = {"path": str(folder / "outbox.sqlite"), "sinks": {"log": []}}
    outbox = make(tmp_path, run=1, **values)
    outbox.accept([event(1)])
    outbox.end("cam")
    outbox.close()
    assert [path.name for path in folder.iterdir()] == ["outbox.sqlite"]
    outbox = make(tmp_path, run=2, **values)
    deliver(outbox, "log", outbox.pull("log", 9))
    outbox.end("cam")
    outbox.close()
    assert not folder.exists()


# ---- a disk that is full


def large(seq: int) -> Item:
    """An event of 2 kB that is over with itself."""
    body = json.dumps({"seq": seq, "text": f"{seq}" * (2000 // len(str(seq)))}).encode()
    return Item("cam", Key(0, seq, 0), Event(stamp(seq), f"e{seq}", f"i{seq}", "single", body), "rules")


def accept_until_full(outbox: Outbox, start: int) -> list[int]:
    """The numbers of the events that are taken before one is not."""
    for n in range(start, start + 9000):
        try:
            outbox.accept([large(n)])
        except EnvironmentProblem:
            return list(range(start, n))
    raise AssertionError("the disk is never full")


def deliver_all(outbox: Outbox) -> list[str]:
    rows = outbox.pull("log", 10_000)
    deliver(outbox, "log", rows)
    return names(rows)


def test_what_was_delivered_makes_room_for_what_comes(small_disk: Path) -> None:
    outbox = make(small_disk, sinks={"log": []})
    for start in range(0, 8000, 20):
        outbox.accept([large(n) for n in range(start, start + 20)])
        assert deliver_all(outbox) == [f"e{n}" for n in range(start, start + 20)]
    outbox.accept([large(7999)])
    assert deliver_all(outbox) == [], "the last ones are still known"
    outbox.end("cam")
    outbox.close()
    assert list(small_disk.glob("outbox*")) == []


def test_full_disk_takes_acknowledgements_then_events(small_disk: Path) -> None:
    outbox = make(small_disk, sinks={"log": []})
    taken, delivered, n = [], [], 0
    for _ in range(3):
        numbers = accept_until_full(outbox, n)
        taken += [f"e{number}" for number in numbers]
        n += len(numbers)
        for _ in range(3):
            with pytest.raises(EnvironmentProblem):
                outbox.accept([large(n)])
        assert len(taken) - len(delivered) > 500, "the whole disk is there for events again"
        delivered += deliver_all(outbox)
    assert delivered == taken
    outbox.end("cam")
    outbox.close()


@pytest.mark.parametrize("killed", [False, True])
def test_a_disk_that_others_fill_for_a_while_costs_nothing(small_disk: Path, killed: bool) -> None:
    outbox = make(small_disk, sinks={"log": []})
    for n in range(900):
        outbox.accept([large(n)])
    rows = outbox.pull("log", 897)
    outbox.acknowledge("log", [row for row, _ in rows])
    ballast = fill(small_disk)
    outbox.try_to_note(1.0)
    accept_until_full(outbox, 900)
    fill(small_disk)
    if killed:
        outbox.db.close()
        ballast.unlink()
        outbox = make(small_disk, incarnation=2, sinks={"log": []})
    ballast.unlink(missing_ok=True)
    for n in range(9000, 14_000):
        outbox.accept([large(n)])
        deliver_all(outbox)
    assert outbox.over("log")
    outbox.end("cam")
    outbox.close()


def test_a_killed_outbox_is_opened_again_on_a_full_disk(small_disk: Path) -> None:
    outbox = make(small_disk, sinks={"log": []})
    for n in range(500):
        outbox.accept([large(n)])
    fill(small_disk)
    outbox.db.close()
    again = make(small_disk, incarnation=2, sinks={"log": []})
    assert len(deliver_all(again)) == 500
    accept_until_full(again, 500)
    again.close()
