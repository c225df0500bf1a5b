"""One camera's mailbox: merges and joins of its edges, messages to refuse, and reports of its senders.

Whose turn it is among cameras, and drops of live cameras, are in `test_mailboxes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from camgraph.pipeline.errors import WireError
from camgraph.pipeline.items import Item, Key
from camgraph.pipeline.messages import End, Event, Message, Tombstone
from camgraph.pipeline.monitoring.metrics import Counters
from camgraph.pipeline.plan import EdgePlan
from camgraph.pipeline.testing import stamp
from camgraph.pipeline.transport.mailbox import Gone, Mailbox
from camgraph.pipeline.transport.partition import Partition, Received
from camgraph.pipeline.transport.protocol import Watermark
from camgraph.pipeline.transport.wire import Header, types_for

TYPES = types_for([Message, End, Tombstone])
FIELDS: dict[str, dict[str, Any]] = {
    Message.TYPE: {},
    Tombstone.TYPE: {"reason": ""},
    End.TYPE: {"reason": "end", "error": "", "status": 0, "error_id": ""},
}
BROKEN_ROWS = [["scores", "<f4", [4], b"too short"]]


def edge(sender: str, port: str = "") -> EdgePlan:
    return EdgePlan(sender, "model", port, Message.TYPE, "block", 8)


ONE = edge("src")
UPPER, LOWER = edge("upper"), edge("lower")
LEFT, RIGHT = edge("left", "left"), edge("right", "right")


class Box:
    """A mailbox with the partitions of its edges, and the messages that it refused."""

    def __init__(self, *edges: EdgePlan) -> None:
        self.counters = Counters()
        self.refused: list[tuple[list[int], str]] = []
        gone = Gone(self.counters, lambda _: None, self._refuse)
        self.mailbox = Mailbox("cam", edges, gone, successor=False)
        self.partitions = {one.sender: Partition(one, "cam", TYPES, 6) for one in edges}
        self.mailbox.partitions += self.partitions.values()

    def _refuse(self, row: Sequence[Received], error: WireError) -> None:
        self.refused.append(([received.key.seq for received in row], str(error)))

    def put(
        self, of: EdgePlan, *seqs: int, kind: str = Message.TYPE, rows: Sequence[Any] = (), deaths: int = 0
    ) -> None:
        partition = self.partitions[of.sender]
        for seq in seqs:
            header = Header(kind, stamp(seq), FIELDS[kind], None, list(rows))
            origins = [(of.sender.encode(), seq)]
            self.mailbox.put(Received(partition, Key(0, seq, 0), header, None, origins, deaths=deaths))

    def passes(self, of: EdgePlan, seq: int, *, final: bool = True) -> None:
        reported = Watermark(of.name, "cam", Key(0, seq, 0), None, final)
        self.partitions[of.sender].watermark.rise(reported)
        self.mailbox.match()

    def popped(self) -> list[Item]:
        items: list[Item] = []
        while (item := self.mailbox.pop()) is not None:
            items.append(item)
        return items

    def seqs(self) -> list[tuple[str, int]]:
        return [(item.sender, item.key.seq) for item in self.popped()]


def test_a_merge_waits_until_nothing_earlier_can_come() -> None:
    box = Box(UPPER, LOWER)
    box.put(UPPER, 1, 2)
    assert box.seqs() == []
    box.put(LOWER, 2)
    assert box.seqs() == [("upper", 1), ("upper", 2)], "`lower` may still bring another message of frame 2 only"
    box.passes(UPPER, 9)
    assert box.seqs() == [("lower", 2)]


def test_messages_of_a_frame_differ_in_key_behind_a_merge() -> None:
    box = Box(UPPER, LOWER)
    box.put(UPPER, 1)
    box.put(LOWER, 1)
    box.passes(UPPER, 9)
    box.passes(LOWER, 9)
    keys = [item.key for item in box.popped()]
    assert keys == sorted(set(keys))
    assert len(keys) == 2


def test_a_camera_ends_when_all_its_edges_have_ended() -> None:
    box = Box(UPPER, LOWER)
    box.put(UPPER, 5, kind=End.TYPE)
    assert box.popped() == []
    assert box.mailbox.empty, "an end of one edge is nothing to take"
    box.put(LOWER, 5, kind=End.TYPE)
    [end] = box.popped()
    assert isinstance(end.payload, End)
    assert len(end.received) == 2, "both ends are acknowledged"


def test_events_are_merged_as_they_come_and_still_end_together() -> None:
    rules, cameras = (EdgePlan(name, "outbox", "", Event.TYPE, "block", 8) for name in ("rules", "cameras"))
    box = Box(rules, cameras)
    box.put(rules, 7)
    assert box.seqs() == [("rules", 7)], "nobody waits for the other edge"
    box.put(rules, 8, kind=End.TYPE)
    assert box.popped() == []
    box.put(cameras, 5)
    box.put(cameras, 8, kind=End.TYPE)
    assert [type(item.payload) for item in box.popped()] == [Message, End]


def test_an_unreadable_message_is_refused_and_the_next_one_taken() -> None:
    box = Box(ONE)
    box.put(ONE, 1, rows=BROKEN_ROWS)
    box.put(ONE, 2)
    assert box.seqs() == [("src", 2)]
    [(seqs, why)] = box.refused
    assert seqs == [1]
    assert why.startswith("array scores: 9 bytes")


def test_a_row_with_an_unreadable_part_is_refused_as_a_whole() -> None:
    box = Box(LEFT, RIGHT)
    box.put(LEFT, 1)
    box.put(RIGHT, 1, rows=BROKEN_ROWS)
    assert box.popped() == []
    assert [seqs for seqs, _ in box.refused] == [[1, 1]]


def test_a_row_has_died_as_often_as_its_worst_part() -> None:
    box = Box(LEFT, RIGHT)
    box.put(LEFT, 1, deaths=1)
    box.put(RIGHT, 1, deaths=3)
    assert box.mailbox.alone
    [row] = box.popped()
    assert (row.deaths, row.possible_poison) == (3, True)
    assert isinstance(row.payload, dict)
    assert set(row.payload) == {"left", "right"}


def test_a_tombstone_at_a_port_makes_the_row_one_without_loss() -> None:
    box = Box(LEFT, RIGHT)
    box.put(LEFT, 1)
    box.put(RIGHT, 1, kind=Tombstone.TYPE)
    [row] = box.popped()
    assert isinstance(row.payload, Tombstone)
    assert (row.payload.reason, len(row.received)) == ("", 2)
    assert box.counters.snapshot() == []


@pytest.mark.parametrize("edges", [(ONE,), (LEFT, RIGHT)], ids=["merged", "joined"])
def test_waiting_counts_every_message_until_it_is_taken(edges: tuple[EdgePlan, ...]) -> None:
    box = Box(*edges)
    for one in edges:
        box.put(one, 1, 2)
    box.put(edges[0], 3)
    put = 2 * len(edges) + 1
    assert box.mailbox.waiting == put
    box.mailbox.pop()
    assert box.mailbox.waiting == put - len(edges)


def test_an_empty_mailbox_has_nothing_to_take() -> None:
    box = Box(ONE)
    assert (box.mailbox.empty, len(box.mailbox), box.mailbox.alone, box.mailbox.pop()) == (True, 0, False, None)


def test_reports_count_once_all_senders_have_reported() -> None:
    box = Box(UPPER, LOWER)
    box.passes(UPPER, 7, final=False)
    assert box.mailbox.provisional() is None
    box.passes(LOWER, 4, final=False)
    provisional = box.mailbox.provisional()
    assert provisional is not None
    assert provisional.seq == 4
    assert box.mailbox.final() is None, "a provisional report says nothing of messages that may still come"


def test_nothing_has_passed_while_a_message_waits() -> None:
    box = Box(ONE)
    box.put(ONE, 1)
    box.passes(ONE, 3)
    assert box.mailbox.final() is None
    box.mailbox.pop()
    assert box.mailbox.final() == Key(0, 3, 0)
