"""The messages of one edge and camera: which came before, which must give way, and from where a sender resends."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.pipeline.items import Key
from camgraph.pipeline.messages import End, Event, Message, Tombstone
from camgraph.pipeline.plan import EdgePlan
from camgraph.pipeline.testing import stamp
from camgraph.pipeline.transport.partition import Partition, Received
from camgraph.pipeline.transport.protocol import Watermark
from camgraph.pipeline.transport.wire import Header, types_for

TYPES = types_for([Message, End, Tombstone])
Policy = Literal["block", "drop_oldest", "drop_newest"]
WINDOW = 6


def partition_of(policy: Policy = "block", depth: int = 8, port: str = "", kind: str = "message") -> Partition:
    return Partition(EdgePlan("src", "model", port, kind, policy, depth), "cam", TYPES, WINDOW)


def put(partition: Partition, seq: int, kind: str = Message.TYPE) -> Received:
    received = Received(partition, Key(0, seq, 0), Header(kind, stamp(seq), {}, None, []), None, [(b"src", seq)])
    partition.put(received)
    return received


def test_a_new_partition_knows_and_has_finished_nothing() -> None:
    partition = partition_of()
    assert not partition.knows(Key(0, 0, 0))
    assert partition.finished is None


def test_messages_before_the_last_are_known_even_if_absent() -> None:
    partition = partition_of()
    put(partition, 3)
    assert [partition.knows(Key(0, seq, 0)) for seq in (2, 3, 4)] == [True, True, False]
    assert not partition.knows(Key(1, 0, 0)), "the camera began anew"


@given(order=st.permutations(range(6)), done=st.integers(0, 6))
def test_a_sender_resumes_behind_the_last_gapless_ack(order: list[int], done: int) -> None:
    partition = partition_of()
    for seq in range(6):
        put(partition, seq)
    for seq in order[:done]:
        del partition.unfinished[Key(0, seq, 0)]
    first_open = min(order[done:], default=6)
    expected = stamp(first_open - 1) if first_open else None
    assert partition.finished == expected


def test_a_message_before_the_first_was_done_by_a_predecessor() -> None:
    partition = partition_of()
    assert not partition.was_done(Key(0, 4, 0)), "nothing has come yet"
    put(partition, 5)
    assert [partition.was_done(Key(0, seq, 0)) for seq in (4, 5, 6)] == [True, False, False]


def test_a_message_up_to_its_senders_watermark_was_done() -> None:
    partition = partition_of()
    put(partition, 1)
    partition.watermark.rise(Watermark(partition.edge.name, "cam", Key(0, 7, 0), None, final=False))
    assert [partition.was_done(Key(0, seq, 0)) for seq in (6, 7, 8)] == [True, True, False]


@pytest.mark.parametrize(("policy", "victim"), [("drop_oldest", 1), ("drop_newest", 3)])
def test_one_message_is_dropped_beyond_the_depth(policy: Policy, victim: int) -> None:
    partition = partition_of(policy, depth=2)
    first, *_ = [put(partition, seq) for seq in (1, 2)]
    assert partition.remove_overflow() is None
    put(partition, 3)
    gone = partition.remove_overflow()
    assert gone is not None
    assert gone.key.seq == victim
    assert [one.key.seq for one in partition.unread] == [seq for seq in (1, 2, 3) if seq != victim]
    assert first.key in partition.unfinished, "its sender still waits for the acknowledgement"


def test_a_blocking_edge_loses_nothing() -> None:
    partition = partition_of("block", depth=1)
    for seq in range(5):
        put(partition, seq)
        assert partition.remove_overflow() is None
    assert len(partition.unread) == 5


@pytest.mark.parametrize("mark", [End.TYPE, Tombstone.TYPE])
def test_marks_take_no_place_and_never_give_way(mark: str) -> None:
    partition = partition_of("drop_oldest", depth=1)
    put(partition, 1, mark)
    put(partition, 2)
    assert partition.remove_overflow() is None
    put(partition, 3)
    gone = partition.remove_overflow()
    assert gone is not None
    assert gone.key.seq == 2
    assert [one.key.seq for one in partition.unread] == [1, 3]


@pytest.mark.parametrize(
    ("partition", "withholds"),
    [
        (partition_of(depth=WINDOW + 1), True),
        (partition_of(depth=WINDOW), False),
        (partition_of(depth=8, port="left"), False),
        (partition_of(depth=8, kind=Event.TYPE), False),
        (partition_of("drop_oldest", depth=8), False),
    ],
    ids=["deep", "shallow", "a port", "events", "dropping"],
)
def test_signals_are_withheld_only_where_nobody_waits_for_them(partition: Partition, withholds: bool) -> None:
    assert partition.withholds == withholds


def test_messages_hold_a_credit_until_returned_and_marks_none() -> None:
    partition = partition_of()
    first, second, mark = put(partition, 1), put(partition, 2), put(partition, 3, Tombstone.TYPE)
    assert partition.uncredited == 2
    partition.credit(first)
    partition.credit(mark)
    assert partition.uncredited == 1
    assert (first.credited, second.credited) == (True, False)
