"""Damages files that a run keeps, and goes on with them.

    python -m camgraph.tools.lab.proofs.fuzz_stores --report docs/proof.md

Each case takes a file of a stopped or killed run (the outbox, the history of events, or the index of incidents), cuts
it off, empties it, swaps or overwrites pages, flips bits, also in the log of SQLite beside it, or sets one value of one
table to another one (nothing, a text, a number that is broken, huge or negative), against the types of the table. Then
the program that owns the file opens it and works with it, as the next run does; commands look at an outbox and change
it. The cases below are faults, and so is an answer that takes more than ten seconds of processor time:

- an exception that is neither a way to say "try again" nor one to say "the next process mends it", or one without end,
  also if it ends a thread;
- an outbox that hands out an event that nobody has committed, or loses one and says neither so nor that it may have
  (SQLite itself drops the end of a damaged log, as after a power cut: the events there may go);
- a history that keeps no new events, or gives out anything but events; an index that differs from its records.

A case is known by the seed and its number.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import sqlite3
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import click
import structlog

from camgraph.pipeline.errors import EnvironmentProblem, NeedsNewProcess, Unavailable, UserError
from camgraph.pipeline.items import Item, Key
from camgraph.pipeline.messages import Event
from camgraph.pipeline.outbox.outbox import Outbox, OutboxSettings
from camgraph.pipeline.outbox.outbox_view import FILE, OutboxView
from camgraph.pipeline.single_stage import HandContext, stamp
from camgraph.stages.sinks.footage import incident_index
from camgraph.stages.sinks.footage.incident_index import (
    NAME,
    IncidentFilter,
    IncidentSummary,
    IndexKeeper,
    incidents_in,
)
from camgraph.stages.sinks.footage.incident_record import FileState, IncidentRecord
from camgraph.tools.lab.figure import Figure, figure_command
from camgraph.tools.lab.proofs.fuzz_check import Tried, fuzz, report, try_each
from camgraph.tools.service.history.event_history import EventFilter, EventHistory

LIMIT_S = 10.0
"""Processor time within which a store must have recovered."""
STARTS = 4
"""So many processes one after the other may find damage."""
_CASE_S = 0.15
_PAGE = 4096
_HISTORY = "history.sqlite"
_SINKS = ("all", "half")
"""Two sinks: one has had no event, the other half of them."""
_ASKED = 5
"""A sink asks for events all the time; after so many answers without any, none comes."""
_EVENTS = 400
_IN_FILE = 300
"""So many of them are in the file of the run that was killed, the others in its write-ahead log."""
_DAY_S = 86_400.0


# ---- damage


def damage(path: Path, chance: random.Random) -> None:
    """Change the file as disks, power cuts, copies and people do."""
    data = bytearray(path.read_bytes())
    pages = max(1, len(data) // _PAGE)
    at = chance.randrange(pages) * _PAGE
    match chance.randrange(12):
        case 0:
            data = data[: chance.randrange(len(data))]
        case 1:
            data = data[:at]
        case 2:
            data[at : at + _PAGE * chance.randint(1, 4)] = bytes(_PAGE)
        case 3:
            data[at : at + _PAGE] = chance.randbytes(_PAGE)
        case 4:
            other = chance.randrange(pages) * _PAGE
            data[at : at + _PAGE], data[other : other + _PAGE] = data[other : other + _PAGE], data[at : at + _PAGE]
        case 5:
            other = chance.randrange(pages) * _PAGE
            data[at : at + _PAGE] = data[other : other + _PAGE]
        case 6:
            _flip(data, chance, 0, 100)
        case 7:
            _flip(data, chance, at, at + 12)  # the head of a page: its kind, how many cells it has, and where
        case 8:
            del data[at : at + chance.randint(1, 3 * _PAGE)]
        case _:
            for _ in range(chance.randint(1, 4)):
                _flip(data, chance, 0, len(data))
    path.write_bytes(data)


_VALUES = (None, "text", b"\xff", 1.5, 1 << 62, -1)
_TYPES = re.compile(r"\bSTRICT\b|\bNOT NULL\b|(?<= )(INTEGER|TEXT|REAL|BLOB)\b(?! PRIMARY)|CHECK \(.*?\)")


def retype(path: Path, chance: random.Random) -> None:
    """Set one value of a table to another one, as a flipped bit in the head of its row does, which knows no types."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        tables = dict(db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name"))
        columns = {name: db.execute(f"PRAGMA table_info({name})").fetchall() for name in tables}
        # Each column is as likely as another one: most are in the table of the events.
        table, column = chance.choice([(name, row[1]) for name, rows in columns.items() for row in rows])
        sql = tables[table]
        count = db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608 - a name of our own tables
        keys = [row[1] for row in columns[table] if row[5]] or ["rowid"]
        at = db.execute(
            f"SELECT {', '.join(keys)} FROM {table} LIMIT 1 OFFSET ?",  # noqa: S608 - as above
            (chance.choice((0, count - 1, chance.randrange(max(1, count)))),),
        ).fetchone()
        _declare(db, table, re.sub(r",\s*WITHOUT", " WITHOUT", _TYPES.sub("", sql).rstrip(" ,")))
        with suppress(sqlite3.Error):  # a key may take no such value
            which = " AND ".join(f"{key} = ?" for key in keys)
            values = (chance.choice(_VALUES), *(at or ()))
            db.execute(f"UPDATE {table} SET {column} = ? WHERE {which}", values)  # noqa: S608 - as above
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        _declare(db, table, sql)


def _declare(db: sqlite3.Connection, table: str, sql: str) -> None:
    """Give a table another declaration; SQLite's own tables have no types."""
    if not table.startswith("sqlite_"):
        db.execute("PRAGMA writable_schema = ON")
        db.execute("UPDATE sqlite_master SET sql = ? WHERE type = 'table' AND name = ?", (sql, table))
        db.execute("PRAGMA writable_schema = RESET")


def _flip(data: bytearray, chance: random.Random, begin: int, end: int) -> None:
    if data:
        data[chance.randrange(begin, min(end, len(data)))] ^= 1 << chance.randrange(8)


# ---- the outbox


def _item(number: int, size: int, *, run: str) -> Item:
    body = b'{"id":"%s%d","camera":"cam","text":"%s"}' % (run.encode(), number, b"x" * size)
    phase: Any = "start" if number % 7 == 0 else "single"
    event = Event(stamp(number, "cam"), f"{run}{number}", f"{run}i{number}", phase, body)
    return Item("cam", Key(0, number, 0), event, "rules", incarnation=1)


def _open_outbox(folder: Path, run: int, incarnation: int, log: Any) -> Outbox:
    state = folder / f"run{run}"
    state.mkdir(exist_ok=True)
    values = {"path": folder / FILE, "sinks": {sink: [] for sink in _SINKS}, "live": True, "ordered": ["half"]}
    settings = OutboxSettings.model_validate({**values, "path": str(folder / FILE), "sync": "normal"})
    context = HandContext(folder, state, incarnation=incarnation, log=log)
    outbox = Outbox(settings, context)
    try:
        outbox.open()
    except BaseException:
        _abandon(outbox)
        raise
    return outbox


def _abandon(outbox: Outbox) -> None:
    """As when its process dies."""
    outbox._close_file()


def make_outbox(folder: Path) -> None:
    """The outbox of a run that was stopped, and beside it that of one that was killed."""
    for name, killed in (("stopped", False), ("killed", True)):
        place = folder / name
        place.mkdir(parents=True)
        outbox = _open_outbox(place, 1, 1, structlog.get_logger())
        chance = random.Random(name)  # noqa: S311 - no secret
        sizes = [9000 if n % 50 == 0 else chance.randrange(20, 600) for n in range(_EVENTS)]
        outbox.accept([_item(n, size, run="e") for n, size in enumerate(sizes[:_IN_FILE])])
        outbox.end("cam")
        outbox.acknowledge("half", [row for row, _ in outbox.pull("half", 200)])
        outbox.note_delivered()
        outbox.maintain(time.monotonic())
        if not killed:
            outbox.accept([_item(n, size, run="e") for n, size in enumerate(sizes) if n >= _IN_FILE])
            outbox.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        else:
            outbox.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            outbox.accept([_item(n, size, run="e") for n, size in enumerate(sizes) if n >= _IN_FILE])
        shutil.copytree(place, folder / f"{name}-kept")
        _abandon(outbox)
        shutil.rmtree(place)
        (folder / f"{name}-kept").rename(place)


class _Log:
    """Keeps what is said of damage."""

    def __init__(self) -> None:
        self.set_aside: list[dict[str, Any]] = []

    def error(self, event: str, **values: Any) -> None:
        if event == "outbox_set_aside":
            self.set_aside.append(values)

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args, **values: None


@cache
def _waiting(folder: Path) -> dict[str, set[bytes]]:
    """The bodies of the events that wait for each sink of an undamaged outbox."""
    work = folder.with_name(f"{folder.name}-read-{os.getpid()}")
    shutil.copytree(folder, work)
    outbox = _open_outbox(work, 1, 2, _Log())
    found = {sink: {event.body for _, event in outbox.pull(sink, 1024)} for sink in _SINKS}
    _abandon(outbox)
    shutil.rmtree(work)
    return found


def try_outbox(template: Path, work: Path, chance: random.Random, *, of_log: bool) -> str:
    """The next run goes on with a damaged outbox, perhaps after a person has looked at it.

    `of_log`: its write-ahead log is what was damaged.
    """
    truth, log = _waiting(template), _Log()
    looked = chance.random() < 0.3
    if looked:
        _look(work)
    got: dict[str, set[bytes]] = defaultdict(set)
    for incarnation in range(1, STARTS + 1):
        try:
            outbox = _open_outbox(work, 2, incarnation, log)
        except NeedsNewProcess:
            continue
        try:
            _use(outbox, incarnation, got)
            break
        except NeedsNewProcess:
            _abandon(outbox)
        except BaseException:
            _abandon(outbox)
            raise
    else:
        raise AssertionError(f"the outbox is broken at each of {STARTS} starts")
    return _judge(truth, got, log.set_aside, of_log=of_log)


def _use(outbox: Outbox, incarnation: int, got: dict[str, set[bytes]]) -> None:
    outbox.maintain(time.monotonic())
    outbox.accept([_item(number, 300, run=f"new{incarnation}-") for number in range(20)])
    outbox.end_lost("rules", ["cam"], 1)
    outbox.end("cam")
    fresh: dict[str, int] = {}
    for sink in _SINKS:
        new, asked = 0, 0
        while asked < _ASKED and not outbox.over(sink):
            rows = outbox.pull(sink, 100)
            asked = 0 if rows else asked + 1
            new += sum(event.own_id.startswith(f"new{incarnation}-") for _, event in rows)
            got[sink] |= {event.body for _, event in rows}
            outbox.acknowledge(sink, [row for row, _ in rows])
            outbox.note_delivered()
        fresh[sink] = new
        if not outbox.over(sink):
            raise AssertionError(f"{outbox.left(sink)} events wait for {sink} and are not handed out")
    if fresh != dict.fromkeys(_SINKS, 20):
        raise AssertionError(f"of 20 new events, {fresh} were delivered")
    outbox.close()


def _judge(
    truth: dict[str, set[bytes]], got: dict[str, set[bytes]], set_aside: Sequence[dict[str, Any]], *, of_log: bool
) -> str:
    for sink in _SINKS:
        strange = {body for body in got[sink] - truth["all"] if b'"new' not in body and b'"lost"' not in body}
        if strange:
            raise AssertionError(f"{len(strange)} events that nobody has committed, such as {min(strange)!r:.60}")
    gone = set[bytes]().union(*(truth[sink] - got[sink] for sink in _SINKS))
    missing = sum(not of_log or int(json.loads(body)["id"][1:]) < _IN_FILE for body in gone)
    if not set_aside:
        if missing:
            raise AssertionError(f"{missing} events are gone, and nothing was said")
        return "nothing was lost" if not gone else "the end of the log was lost"
    told = sum(line["not_readable"] for line in set_aside)
    unsure = any(line["more_may_be_lost"] for line in set_aside)
    if missing > told and not unsure:
        raise AssertionError(f"{missing} events are gone, and {told} were said to be")
    if not missing:
        return "all events were saved"
    return "the lost events were counted" if missing <= told else "it was said that more may be lost"


def _look(work: Path) -> None:
    """All that `camgraph outbox` does."""
    view = OutboxView(work)
    calls: list[Callable[[], object]] = [
        view.states,
        lambda: [json.loads(event.body) for event in view.waiting("all", lambda _: True, 50)],
        lambda: [json.loads(event.body) for event in view.events("e1")],
    ]
    for call in calls:
        with suppress(EnvironmentProblem, UserError):
            call()


# ---- the history


def _history_event(number: int, phase: Any) -> Event:
    incident = f"{number:04x}"
    data: dict[str, Any] = {
        "incident": incident,
        "camera": "hall",
        "action": "fall",
        "rule": {"id": "fall"},
        "phase": phase,
    }
    data |= {"start_time": "2026-11-23T12:00:00.000Z", "severity": "warning", "text": "x" * (number * 37 % 900)}
    body: dict[str, Any] = {
        "specversion": "1.0",
        "id": f"{incident}-{phase}",
        "type": f"camgraph.incident.{phase}",
        "subject": "hall",
    }
    body |= {"source": "camgraph/test", "time": "2026-11-23T12:00:00.000Z", "data": data}
    return Event(stamp(number, "hall"), str(body["id"]), incident, phase, json.dumps(body).encode())


def _history(folder: Path) -> EventHistory:
    return EventHistory(folder / _HISTORY, _Log(), keep_s=30 * _DAY_S, keep_bytes=1e8)


def make_history(folder: Path) -> None:
    """The history of a run that was stopped, and of one that was killed."""
    for name, killed in (("stopped", False), ("killed", True)):
        work = folder / f"{name}-work"
        work.mkdir(parents=True)
        history = _history(work)
        history.open()
        for begin in range(0, 300, 50):
            history.add([_history_event(n, phase) for n in range(begin, begin + 50) for phase in ("start", "end")][:-3])
        if killed:
            shutil.copytree(work, folder / name)
        history.close()
        if not killed:
            shutil.copytree(work, folder / name)
        shutil.rmtree(work)


@contextmanager
def _threads_that_stay() -> Iterator[None]:
    """Raises AssertionError for an exception that has ended a thread meanwhile."""
    ended: list[str] = []
    before = threading.excepthook
    threading.excepthook = lambda args: ended.append(f"{args.exc_type.__name__}: {args.exc_value}")
    try:
        yield
    finally:
        threading.excepthook = before
    if ended:
        raise AssertionError(f"a thread has ended with {ended[0]}")


def try_history(work: Path) -> str:
    """The service goes on with a damaged history."""
    with _threads_that_stay():
        return _try_history(work)


def _try_history(work: Path) -> str:
    history = _history(work)
    with suppress(Unavailable):
        history.open()
    try:
        added = [_history_event(1000 + n, phase) for n in range(10) for phase in ("start", "end")]
        _again(lambda: history.add(added), Unavailable)
        _again(lambda: _ask(history), EnvironmentProblem)
        wanted = {event.own_id for event in added}
        kept = _again(lambda: {one.event.get("id") for one in history.page(EventFilter(), 1000)}, EnvironmentProblem)
        if not wanted <= kept:
            _again(lambda: history.add(added), Unavailable)
            kept = _again(
                lambda: {one.event.get("id") for one in history.page(EventFilter(), 1000)}, EnvironmentProblem
            )
        if not wanted <= kept:
            raise AssertionError(f"{len(wanted - kept)} of {len(wanted)} new events are not kept")
    finally:
        history.close()
    return "begun anew" if list(work.glob(f"{_HISTORY}.damaged*")) else "read on"


def _ask(history: EventHistory) -> None:
    for wanted in (EventFilter(), EventFilter(camera="hall"), EventFilter(rule="fall")):
        for one in history.page(wanted, 100):
            one.event.get("id")
    for incident in history.incidents(EventFilter(), 100):
        incident.first.event.get("id")
    history.incidents(EventFilter(), 100, going_on=True)
    for kept in history.after(0, 1000):
        kept.event.get("id")
    history.has_incidents(["0001", "0002"])
    history.newest()


def _again(call: Callable[[], Any], expected: type[Exception], within_s: float = 20.0) -> Any:
    """Call until it works: after some tries the owner of the file must have mended it."""
    until_s = time.monotonic() + within_s
    while True:
        try:
            return call()
        except expected:
            if time.monotonic() > until_s:
                raise
        time.sleep(0.01)


# ---- the index of incidents


def make_index(folder: Path) -> None:
    """The footage of a camera, and its index."""
    for number in range(60):
        start = f"2026-11-{number % 20 + 1:02d}T12:00:{number:02d}.000Z"
        data: dict[str, Any] = {
            "incident": f"{number:032x}",
            "phase": "start",
            "rule": {"id": "fall"},
            "action": "fall",
            "camera": "front",
            "start_time": start,
        }
        path = folder / "front" / start[:10] / f"12-00-{number:02d}_fall_{number:08x}.json"
        files = {
            "snapshot": FileState("ready", bytes=number),
            "clip": FileState("pending"),
            "best": FileState("missing"),
        }
        IncidentRecord(path, {"data": data}, {}, files).write()  # type: ignore[arg-type]
    _settle(folder)
    incidents_in(folder, IncidentFilter())


def _settle(folder: Path) -> None:
    earlier = time.time() - 60
    for path in (*folder.glob("*/*/*.json"), *folder.glob("*/*")):
        os.utime(path, (earlier, earlier))


def try_index(folder: Path, truth: Sequence[IncidentSummary]) -> str:
    """People list incidents by a damaged index; its keeper goes on with it. `truth`: as the records have them."""
    found = incidents_in(folder, IncidentFilter())
    if found != truth:
        raise AssertionError(f"{len(found)} incidents are listed, {len(set(found) & set(truth))} of them right")
    keeper = IndexKeeper(folder, _Log())
    keeper.open()
    keeper.close()
    if incidents_in(folder, IncidentFilter(camera="front")) != truth:
        raise AssertionError("incidents are listed otherwise after the keeper has been at work")
    return "the incidents were listed"


# ---- cases


_OUTBOX, _HISTORY_STORE, _INDEX = "outbox", "history", "index"
_MOSTLY = (_OUTBOX, _OUTBOX, _OUTBOX, _HISTORY_STORE, _INDEX)
_OF_TYPES = 0.4
"""The share of cases in which one value alone is another one."""
_OF_LOG = 0.2
"""The share of cases in which the write-ahead log is damaged, if there is one."""


def make_stores(root: Path) -> None:
    """The undamaged files of all stores."""
    make_outbox(root / _OUTBOX)
    make_history(root / _HISTORY_STORE)
    make_index(root / _INDEX)


def answer_to(root: Path, seed: int, number: int) -> str:
    """Damage a copy of one of the stores, and go on with it. Raises an error for a fault."""
    chance = random.Random(f"{seed}:{number}")  # noqa: S311 - no secret
    store = chance.choice(_MOSTLY)
    if store == _INDEX:
        return f"{store}: {_try_in_place(root / store, chance)}"
    template = root / store / chance.choice(("stopped", "killed"))
    with tempfile.TemporaryDirectory(prefix="case-", dir=root) as name:
        work = Path(name) / "store"
        shutil.copytree(template, work)
        main = FILE if store == _OUTBOX else _HISTORY
        log = work / f"{main}-wal"
        of_log = log.exists() and log.stat().st_size > 0 and chance.random() < _OF_LOG
        if chance.random() < _OF_TYPES and not of_log:
            retype(work / main, chance)
        else:
            damage(log if of_log else work / main, chance)
        try:
            if store == _HISTORY_STORE:
                return f"{store}: {try_history(work)}"
            return f"{store}: {try_outbox(template, work, chance, of_log=of_log)}"
        except EnvironmentProblem as problem:
            if "of a newer version" not in str(problem):
                raise
            return f"{store}: taken for one of a newer version, and left alone"


def _try_in_place(folder: Path, chance: random.Random) -> str:
    """In a copy the records would be other files to the index, and all of them would be read again."""
    path = folder / NAME
    truth, whole = incidents_in(folder, IncidentFilter()), path.read_bytes()
    path.unlink()
    path.write_bytes(whole)
    damage(path, chance)
    incident_index.checked.clear()  # as in another process
    try:
        return try_index(folder, truth)
    finally:
        for left in folder.glob(f"{NAME}*"):
            left.unlink()
        path.write_bytes(whole)


def _share(seed: int, numbers: Sequence[int]) -> Tried:
    """In a process of its own."""
    with tempfile.TemporaryDirectory(prefix="camgraph-fuzz-") as name:
        make_stores(Path(name))
        return try_each(numbers, lambda number: answer_to(Path(name), seed, number), limit_s=LIMIT_S)


@figure_command("proofs.fuzz_stores")
@click.option("--cases", default=5_000, show_default=True, help="How many damaged files.")
@click.option("--seed", default=1, show_default=True, help="Other cases for another one.")
@click.option("--processes", default=1, show_default=True, help="Among how many it is spread.")
def main(figure: Figure, cases: int, seed: int, processes: int) -> None:
    """Damage outboxes, histories and indexes, and go on with them; status 1 if one keeps its owner down or lies."""
    figure.takes(_CASE_S * cases / processes, f"{cases} cases")
    tried = fuzz(seed, cases, processes, click.echo, _share)
    head = [figure.head(), figure.others(), ""]
    figure.publish("\n".join([*head, *report(tried, f"{cases} damaged files")]), tried.faults)


if __name__ == "__main__":
    main()
