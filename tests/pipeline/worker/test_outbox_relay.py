"""The sinks get the end only when the disk has noted that they have all events, however late that is."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import zmq
from camgraph_test_stages.parts import process_parts
from camgraph_test_stages.waiting import until
from structlog.testing import capture_logs

from camgraph.pipeline.dead_letters import DeadLetters
from camgraph.pipeline.items import Item, Key
from camgraph.pipeline.messages import LONGEST_BODY, End, Event
from camgraph.pipeline.monitoring.reports import Committed, read_report
from camgraph.pipeline.outbox.event_validity import LONGEST_ID
from camgraph.pipeline.outbox.outbox import Outbox
from camgraph.pipeline.plan import EVERY_CAMERA, EdgePlan, ProcessPlan, StagePlan
from camgraph.pipeline.shm.slots import SlotRing
from camgraph.pipeline.testing import HandContext, stamp
from camgraph.pipeline.transport.channel import Channel
from camgraph.pipeline.transport.receiver import Receiver
from camgraph.pipeline.transport.sender import Sender
from camgraph.pipeline.transport.wire import MAX_BODY
from camgraph.pipeline.worker.outbox_relay import OutboxRelay

EDGE = EdgePlan("outbox", "log", "", "event", "block", 8)
ROUTES = {EDGE.name: {EVERY_CAMERA: "log.0"}}


def process(name: str, cameras: tuple[str, ...]) -> ProcessPlan:
    senders = {EDGE.name: ("outbox.0",)} if name == "log" else {}
    return ProcessPlan(f"{name}.0", (StagePlan(name, name, {}),), cameras, 8, (EDGE,), ROUTES, senders=senders)


def make_outbox(folder: Path, ordered: Sequence[str]) -> Outbox:
    values = {"path": str(folder / "outbox.sqlite"), "sinks": {"log": []}, "ordered": ordered}
    outbox = Outbox(Outbox.settings_type.model_validate(values), HandContext(folder, folder))
    outbox.open()
    return outbox


class Joined:
    """The process of the outbox, and that of a sink which is done with an event at once; a test turns both."""

    def __init__(self, folder: Path, ordered: Sequence[str] = ()) -> None:
        self.taken: list[Item] = []
        self.outbox = make_outbox(folder, ordered)
        self.poller = zmq.Poller()
        self.ring = SlotRing(f"camgraph-{os.getuid()}-test{os.getpid()}-outbox.1", 8)
        plan = process("outbox", ("cam",))
        self.sender = Sender(plan, self.ring, self.poller, process_parts())
        ours, self._theirs = socket.socketpair()
        self.channel = Channel(ours)
        self.relay = OutboxRelay(self.outbox, plan, self.sender, self.channel, process_parts())
        sink = process("log", (EVERY_CAMERA,))
        self.receiver = Receiver(f"ipc://{folder}/in", sink, {EDGE.name: [Event]}, process_parts())
        self.sender.connect({"log.0": self.receiver.endpoint})
        until(lambda: self.turn() or self.sender.attached)

    def turn(self) -> None:
        self.sender.receive(dict(self.poller.poll(2)))
        self.relay.turn()
        self.sender.flush()
        self.receiver.receive()
        for item in self.receiver.mailboxes.take(8, lambda _: 8):
            self.taken.append(item)
            self.receiver.ack(item)
        self.receiver.flush()

    @property
    def has_ended(self) -> bool:
        return any(isinstance(item.payload, End) for item in self.taken)

    def close(self) -> None:
        self.sender.close()
        self.receiver.close()
        self.ring.close()
        self.outbox.close()
        self.channel.close()
        self._theirs.close()

    def reports(self) -> list[tuple[str, bool]]:
        """The events that the supervisor has heard of: the id, and whether it was committed before."""
        self.channel.flush()
        supervisor = Channel(self._theirs)
        reports = [read_report(message) for message in supervisor.receive()]
        return [(report.id, report.again) for report in reports if isinstance(report, Committed)]


@pytest.fixture
def joined(tmp_path: Path) -> Iterator[Joined]:
    joined = Joined(tmp_path)
    yield joined
    joined.close()


def event(seq: int) -> Item:
    made = Event(stamp(seq), f"e{seq}", f"i{seq}", "single", b"{}")
    return Item("cam", Key(0, seq, 0), made, "rules")


def test_end_waits_for_last_acknowledgement_on_disk(joined: Joined, tmp_path: Path) -> None:
    joined.outbox.accept([event(0)])
    joined.outbox.end("cam", "stopped")
    other = sqlite3.connect(tmp_path / "outbox.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    until(lambda: joined.turn() or (joined.taken and not joined.sender.in_flight))
    for _ in range(3):
        joined.turn()
    assert not joined.has_ended
    assert "locked" in joined.relay.waits_for
    other.execute("ROLLBACK")
    other.close()
    until(lambda: joined.turn() or joined.has_ended)
    assert [item.payload.reason for item in joined.taken if isinstance(item.payload, End)] == ["stopped"]
    assert joined.outbox.over("log")
    assert joined.relay.waits_for == ""


def test_what_many_acknowledge_at_once_costs_few_transactions(joined: Joined) -> None:
    joined.outbox.accept([event(seq) for seq in range(200)])
    statements: list[str] = []
    joined.outbox.db.set_trace_callback(statements.append)
    turns = 0
    while not joined.outbox.over("log"):
        joined.turn()
        turns += 1
        assert turns < 2000
    joined.outbox.db.set_trace_callback(None)
    assert statements.count("COMMIT") <= turns
    assert statements.count("COMMIT") < 200 / 2
    joined.outbox.end("cam")
    until(lambda: joined.turn() or joined.has_ended)


def test_repeated_event_is_reported_as_new_first(joined: Joined) -> None:
    """The supervisor counts new events, and of those committed before only the ones that it has not heard of."""
    given = {"sender": "capture", "camera": "cam", "id": "x", "incident": "i", "phase": "single", "incarnation": 0}
    for _ in range(2):
        joined.relay.emit({**given, "time_ns": 0, "body": b"{}"})
    joined.turn()
    assert joined.reports() == [("x", False), ("x", True)]


@pytest.mark.parametrize("size", [LONGEST_BODY + 1, MAX_BODY - 120, MAX_BODY, 8 << 20, 30 << 20])
@pytest.mark.parametrize("ordered", [[], ["log"]])
@pytest.mark.slow
def test_too_large_event_of_an_earlier_version_is_a_dead_letter(tmp_path: Path, size: int, ordered: list[str]) -> None:
    joined = Joined(tmp_path, ordered=ordered)
    try:
        joined.outbox.accept([event(seq) for seq in range(3)])
        body = b'{"text":"%s"}' % (b"x" * (size - 11))
        joined.outbox.db.execute("UPDATE events SET body = ?, checksum = 0 WHERE id LIKE '% e1'", (body,))
        joined.outbox.end("cam")
        until(lambda: joined.turn() or joined.has_ended)
        ids = [item.payload.id for item in joined.taken if isinstance(item.payload, Event)]
        assert ids == ["e0", "e2"]
        [letter] = DeadLetters(tmp_path, "log")
        assert letter.id == "e1"
        assert letter.why.startswith(f"its body has {size:,} bytes; at most 4,000,000 can be sent")
        if size < 16 << 20:
            assert letter.event.body == body
        else:
            assert json.loads(letter.event.body) == {"bytes": size, "beginning": body[: 64 << 10].decode()}
    finally:
        joined.close()


def test_any_event_that_is_committed_can_be_sent(joined: Joined) -> None:
    name = "\N{GRINNING FACE}" * LONGEST_ID
    body = b'{"text":"%s"}' % (b"x" * (LONGEST_BODY - 11))
    made = Event(stamp(1), name, name, "single", body)
    joined.outbox.accept([Item("cam", Key(0, 1, 0), made, "rules")])
    until(lambda: joined.turn() or joined.taken)
    [taken] = joined.taken
    assert isinstance(taken.payload, Event)
    assert taken.payload.body == body


def test_event_refused_by_full_disk_is_logged_once(joined: Joined) -> None:
    given = {"sender": "capture", "camera": "cam", "id": "x", "incident": "i", "phase": "single", "incarnation": 0}
    with capture_logs() as logs:
        for _ in range(2):
            joined.outbox.db.execute("PRAGMA query_only = 1")
            for _ in range(3):
                joined.relay.emit({**given, "time_ns": 0, "body": b"{}"})
            joined.outbox.db.execute("PRAGMA query_only = 0")
            joined.relay.emit({**given, "time_ns": 0, "body": b"{}"})
            given["id"] = "y"
    assert [line["event"] for line in logs] == ["event_not_kept"] * 2


def test_a_file_that_cannot_be_read_for_a_while_is_waited_for(joined: Joined, tmp_path: Path) -> None:
    joined.outbox.accept([event(0)])
    joined.outbox.db.set_progress_handler(lambda: 1, 1)  # each statement is interrupted
    with capture_logs() as logs:
        for _ in range(3):
            joined.turn()
    assert "cannot be read" in joined.relay.waits_for
    assert [line["event"] for line in logs] == ["events_not_read"]
    joined.outbox.db.set_progress_handler(None, 0)
    until(lambda: joined.turn() or joined.taken)
    assert joined.relay.waits_for == ""
