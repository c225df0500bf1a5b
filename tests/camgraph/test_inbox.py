"""The program's end of a socket: what is handed out, acknowledged and resent. The test is the sink at the other end."""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from camgraph_test_stages.waiting import until

from camgraph import inbox as inbox_module
from camgraph.inbox import Board, Inbox, Selection
from camgraph.stages.sinks.handover.parcel import CREDIT, MODES, SIZES, Mode, Parcel

WINDOW = 3


class Sink:
    """One connection of a sink, which notes the newest credits and acks."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(path))
        self.mode = MODES[self._socket.recv(1)]
        self._socket.setblocking(False)
        self._rest = b""
        self._last = (-1, -1)

    def send(self, *names: str) -> None:
        for name in names:
            for part in Parcel({"name": name}).parts():
                self._socket.sendall(part)

    def signals(self) -> tuple[int, int]:
        """Return the newest (granted, done)."""
        with suppress(BlockingIOError):
            self._rest += self._socket.recv(1 << 16)
        whole = len(self._rest) // CREDIT.size * CREDIT.size
        if whole:
            self._last = CREDIT.unpack_from(self._rest, whole - CREDIT.size)
            self._rest = self._rest[whole:]
        return self._last

    def has(self, granted: int, done: int) -> None:
        """Wait for these signals."""
        until(lambda: self.signals() == (granted, done), why=lambda: self._last)

    def close(self) -> None:
        self._socket.close()


class Program:
    """An inbox of names, and the program that reads it."""

    def __init__(self, path: Path, mode: Mode = "every", kind: str = "events", board: Board | None = None) -> None:
        self.board = board or Board()
        self.path = path
        self.inbox: Inbox[str] = Inbox(
            kind, self.board, window=WINDOW, read=lambda parcel: str(parcel.values["name"]), identity=lambda name: name
        )
        self.inbox.listen(path, mode)

    def wait_for(self, count: int) -> None:
        until(lambda: self.locked(lambda: len(self.inbox._waiting)) == count)

    def locked(self, call: Callable[[], object]) -> object:
        with self.board.lock:
            return call()

    def take(self) -> str:
        with self.board.lock:
            return self.inbox.take()

    def confirm(self) -> None:
        self.locked(self.inbox.confirm)

    @property
    def arrival(self) -> int | None:
        with self.board.lock:
            return self.inbox.arrival


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    program = Program(tmp_path / "api.e")
    yield program
    program.inbox.close()


@pytest.fixture
def sink(program: Program) -> Iterator[Sink]:
    sink = Sink(program.path)
    yield sink
    sink.close()


def test_a_sink_may_send_what_fits_and_one_more_for_each_taken(program: Program, sink: Sink) -> None:
    assert sink.mode == "every"
    sink.has(WINDOW, 0)
    sink.send("a", "b", "c")
    program.wait_for(3)
    assert program.locked(lambda: program.inbox.is_full)
    assert program.take() == "a"
    sink.has(WINDOW + 1, 0)


def test_an_item_is_acknowledged_when_the_program_confirms_it(program: Program, sink: Sink) -> None:
    sink.send("a", "b")
    program.wait_for(2)
    program.take()
    sink.has(WINDOW + 1, 0)
    program.confirm()
    sink.has(WINDOW + 1, 1)


@pytest.mark.parametrize("half", [b"\x07", SIZES.pack(7, 0) + b"abc"])
def test_half_a_parcel_keeps_no_other_sink_waiting(
    program: Program, monkeypatch: pytest.MonkeyPatch, half: bytes
) -> None:
    monkeypatch.setattr(inbox_module, "_PARCEL_S", 0.3)
    stuck = Sink(program.path)
    stuck._socket.sendall(half)
    other = Sink(program.path)
    other.send("a")
    program.wait_for(1)
    stuck.close()
    other.close()


@pytest.mark.parametrize("nonsense", [SIZES.pack(3, 0) + b"abc", SIZES.pack(1, 1 << 60), SIZES.pack(1 << 31, 0)])
def test_what_is_no_parcel_ends_its_connection_alone(program: Program, nonsense: bytes) -> None:
    wrong = Sink(program.path)
    wrong._socket.sendall(nonsense)
    other = Sink(program.path)
    other.send("a")
    program.wait_for(1)
    wrong.close()
    other.close()


def test_items_of_a_restarted_sink_are_handed_out_once(program: Program, sink: Sink) -> None:
    sink.send("a", "b")
    program.wait_for(2)
    assert program.take() == "a"
    program.confirm()
    sink.close()
    again = Sink(program.path)
    again.send("a", "b")
    program.wait_for(3)
    assert program.take() == "b", "it waited when its first sink died"
    program.confirm()
    assert program.arrival is None
    again.has(WINDOW + 2, 2)
    again.close()


def test_an_item_in_hand_is_acked_to_the_sink_that_resent_it(program: Program, sink: Sink) -> None:
    sink.send("a")
    program.wait_for(1)
    program.take()
    sink.close()
    again = Sink(program.path)
    again.send("a")
    program.wait_for(1)
    assert program.arrival is None
    assert again.signals()[1] == 0, "the program still has it"
    program.confirm()
    until(lambda: again.signals()[1] == 1)
    again.close()


def test_an_item_of_a_dead_sink_is_not_acked_to_its_successor(program: Program, sink: Sink) -> None:
    sink.send("a")
    program.wait_for(1)
    program.take()
    sink.close()
    again = Sink(program.path)
    again.has(WINDOW, 0)
    program.confirm()
    assert again.signals()[1] == 0, "it would drop its own first item"
    again.close()


def test_the_ids_of_the_oldest_items_are_forgotten(
    program: Program, sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox_module, "_KNOWN", 2)
    sink.send("a", "b", "c")
    program.wait_for(3)
    for _ in range(3):
        program.take()
        program.confirm()
    assert list(program.inbox._known) == ["b", "c"]


def test_a_program_that_wants_no_more_acknowledges_all_unread(program: Program, sink: Sink) -> None:
    sink.send("a", "b")
    program.wait_for(2)
    program.locked(program.inbox.discard)
    until(lambda: sink.signals()[1] == 2)
    sink.send("c")
    until(lambda: sink.signals()[1] == 3)
    assert (program.inbox.discarded, program.arrival) == (3, None)


def test_a_live_sink_gets_one_credit_when_the_program_asks(tmp_path: Path) -> None:
    program = Program(tmp_path / "api.t", "newest", "tracks")
    sink = Sink(program.path)
    assert sink.mode == "newest"
    sink.has(0, 0)
    program.locked(program.inbox.ask)
    program.locked(program.inbox.ask)
    sink.has(1, 0)
    sink.send("a")
    program.wait_for(1)
    program.locked(program.inbox.ask)
    assert program.take() == "a"
    program.locked(program.inbox.ask)
    sink.has(2, 0)
    assert not program.inbox.is_full, "such a sink never waits"
    sink.close()
    program.inbox.close()


def test_waiting_items_can_be_taken_after_the_end(program: Program, sink: Sink) -> None:
    sink.send("a")
    program.wait_for(1)
    program.locked(program.inbox.close)
    program.board.end()
    assert program.take() == "a"
    assert program.board.over


def test_a_sink_that_connects_to_a_closing_inbox_is_sent_away(program: Program) -> None:
    with socket.socket(socket.AF_UNIX) as sink:
        with program.board.lock:
            sink.connect(str(program.path))
            until(in_meet, why="accepted, and not yet registered")
            program.inbox.close()
        sink.settimeout(60)
        assert sink.recv(1) == b"", "no mode and no credits, but the end"


def in_meet() -> bool:
    return any(frame.f_code is Inbox._meet.__code__ for frame in sys._current_frames().values())


def test_a_callback_is_called_at_the_next_change_only(program: Program, sink: Sink) -> None:
    calls: list[int] = []
    program.locked(lambda: program.board.call_once(lambda: calls.append(1)))
    sink.send("a", "b")
    program.wait_for(2)
    assert calls == [1]


def test_items_of_several_kinds_come_in_order_of_arrival(tmp_path: Path) -> None:
    board = Board()
    programs = {kind: Program(tmp_path / kind, kind=kind, board=board) for kind in ("events", "tracks")}
    sinks = {kind: Sink(program.path) for kind, program in programs.items()}
    for number, kind in enumerate(["tracks", "events", "tracks"]):
        sinks[kind].send(f"{kind} {number}")
        until(lambda: sum(len(program.inbox._waiting) for program in programs.values()) == number + 1)  # noqa: B023
    inboxes = [program.inbox for program in programs.values()]
    selection = Selection(inboxes, inboxes)  # type: ignore[arg-type]
    taken = []
    with board.lock:
        while (ready := selection.ready()) is not None:
            taken.append(ready.take())
    assert taken == ["tracks 0", "events 1", "tracks 2"]
    for one in (*sinks.values(), *inboxes):
        one.close()


def test_a_full_inbox_that_nobody_reads_is_warned_of_once(
    program: Program, sink: Sink, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    other: Inbox[object] = Inbox("tracks", program.board, window=1, read=lambda parcel: parcel, identity=id)
    selection = Selection([other], [other, program.inbox])  # type: ignore[list-item]
    sink.send("a", "b", "c")
    program.wait_for(WINDOW)
    with caplog.at_level(logging.WARNING, "camgraph"):
        selection.warn_of_unread()
        assert caplog.records == [], "its reader may come yet"
        monkeypatch.setattr(inbox_module, "_UNREAD_S", -1.0)
        selection.warn_of_unread()
        selection.warn_of_unread()
    [record] = caplog.records
    assert "nobody reads events()" in record.getMessage()
