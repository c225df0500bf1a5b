"""Signals that nobody waits for travel with those that somebody waits for, or with the first turn after 0.1 s."""

from __future__ import annotations

from dataclasses import replace

import pytest

from camgraph.pipeline.items import Item, Key
from camgraph.pipeline.messages import Message
from camgraph.pipeline.plan import EdgePlan
from camgraph.pipeline.testing import stamp
from camgraph.pipeline.transport.partition import Partition, Received
from camgraph.pipeline.transport.pending_acks import PendingAcks
from camgraph.pipeline.transport.protocol import Signals
from camgraph.pipeline.transport.wire import Header

WINDOW = 3
EDGE = EdgePlan("src", "model", "", "number", "block", WINDOW + 1)
SENDER = b"src.0#1#1"


class Talk:
    """One sender, and a clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.answers = PendingAcks(lambda: self.now)
        self.answers.open(SENDER)

    def sent(self) -> list[Signals]:
        return [signals for _, signals in self.answers.take()]


def items(
    edge: EdgePlan = EDGE, camera: str = "a", *, of: str = "number", first: int = 1, count: int = WINDOW
) -> list[Item]:
    partition = Partition(edge, camera, {}, WINDOW)
    rows = [received(partition, n, of) for n in range(first, first + count)]
    for row in rows:
        partition.put(row)
    return [Item(camera, row.key, Message(row.header.stamp), received=(row,)) for row in rows]


def received(partition: Partition, n: int, of: str) -> Received:
    return Received(partition, Key(0, n, 0), Header(of, stamp(n, partition.camera), {}, None, []), None, [(SENDER, n)])


def test_credits_travel_with_acks_that_do_not_imply_them() -> None:
    talk = Talk()
    a, b = items(), items(camera="b", first=7)
    for item in (*a, *b):
        talk.answers.credit(item)
        assert talk.sent() == []
    for item in a:
        talk.answers.ack(item)
    assert talk.sent() == [([7, 8, 9], [1, 2, 3], [])]


def test_credit_is_sent_at_once_to_sender_that_has_no_other() -> None:
    talk = Talk()
    several_of_a_frame = items(count=WINDOW + 1)
    talk.answers.credit(several_of_a_frame[0])
    assert talk.sent() == [([1], [], [])]
    talk.answers.credit(several_of_a_frame[1])
    assert talk.sent() == [], "it has the first one"


def test_third_done_message_of_a_camera_is_sent_at_once() -> None:
    talk = Talk()
    a, b = items(), items(camera="b", first=7)
    for item in (a[0], b[0], a[1], b[1]):
        talk.answers.ack(item)
        assert talk.sent() == []
    talk.answers.ack(a[2])
    assert talk.sent() == [([], [1, 7, 2, 8, 3], [])]
    talk.answers.ack(b[2])
    assert talk.sent() == [], "counted anew"


def test_an_ack_behind_its_credit_is_sent_alone() -> None:
    talk = Talk()
    [one] = items(replace(EDGE, policy="drop_oldest"), count=1)
    talk.answers.credit(one)
    assert talk.sent() == [([1], [], [])]
    talk.answers.ack(one)
    assert talk.sent() == [([], [1], [])]


def test_nothing_is_withheld_for_longer_than_a_tenth_of_a_second() -> None:
    talk = Talk()
    talk.answers.ack(items()[0])
    talk.now = 0.09
    assert talk.sent() == []
    talk.now = 0.11
    assert talk.sent() == [([], [1], [])]


@pytest.mark.parametrize(
    ("edge", "of"),
    [
        (replace(EDGE, policy="drop_oldest"), "number"),
        (replace(EDGE, port="left"), "number"),
        (replace(EDGE, type="event"), "number"),
        (replace(EDGE, depth=WINDOW), "number"),
        (EDGE, "end"),
    ],
)
def test_nothing_is_withheld_where_somebody_waits(edge: EdgePlan, of: str) -> None:
    talk = Talk()
    talk.answers.ack(items(edge, of=of)[0])
    assert talk.sent() == [([], [1], [])]


def test_what_is_tried_is_said_at_once() -> None:
    talk = Talk()
    one = items()[0]
    talk.answers.trying(one)
    assert talk.sent() == [([], [], [1])]
    talk.answers.survived(one)
    assert talk.sent() == [([], [], [0])]


def test_nothing_is_said_on_a_connection_that_is_over() -> None:
    talk = Talk()
    talk.answers.close(SENDER)
    for item in items():
        talk.answers.ack(item)
    assert talk.sent() == []
