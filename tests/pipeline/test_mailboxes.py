"""What a process has not taken yet: joins after the death of the process that was here before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pytest

from pipeline.items import Key
from pipeline.lane import Received
from pipeline.mailboxes import Mailboxes
from pipeline.messages import Message, Tombstone
from pipeline.metrics import Counters
from pipeline.plan import EdgePlan
from pipeline.testing import stamp
from pipeline.wire import Header


@dataclass(frozen=True, eq=False)
class Note(Message):
    TYPE: ClassVar[str] = "note"


LEFT = EdgePlan("left", "both", "left", "note", "block", 8)
RIGHT = EdgePlan("right", "both", "right", "note", "block", 8)


class Joined:
    """The mailboxes of a join of two edges, and what became of what was put into them."""

    def __init__(self, *, successor: bool) -> None:
        self.counters = Counters()
        accepted = {LEFT.name: [Note], RIGHT.name: [Note]}
        self.mailboxes = Mailboxes(
            [LEFT, RIGHT], accepted, self.counters, lambda _: None, lambda *_: None, successor=successor
        )

    def put(self, edge: EdgePlan, seqs: Sequence[int]) -> None:
        lane = self.mailboxes.lane(edge.name, "a")
        for seq in seqs:
            header = Header("note", stamp(seq, "a"), {}, None, [])
            self.mailboxes.put(Received(lane, Key(0, seq, 0), header, None, [(f"{edge.sender}.0#1#1".encode(), seq)]))

    def take(self) -> list[tuple[int, str]]:
        """Frame, and what is there of it: `both`, or `nothing` with the reason that a tombstone gives."""
        items = []
        while item := self.mailboxes.take(1, lambda _: 100):
            (one,) = item
            items.append(
                (one.key.seq, f"nothing {one.payload.reason}" if isinstance(one.payload, Tombstone) else "both")
            )
        return items


def test_a_row_of_which_a_part_is_missing_is_a_loss() -> None:
    joined = Joined(successor=False)
    joined.put(LEFT, [1, 2, 3])
    joined.put(RIGHT, [2, 3])
    assert joined.take() == [(1, "nothing unpaired"), (2, "both"), (3, "both")]
    assert joined.counters.get("dropped.unpaired", "a") == 1


@pytest.mark.parametrize(("late", "early"), [(LEFT, RIGHT), (RIGHT, LEFT)])
def test_a_successor_knows_what_only_one_of_its_senders_had_heard_to_be_done(late: EdgePlan, early: EdgePlan) -> None:
    joined = Joined(successor=True)
    joined.put(late, [1, 2, 3])
    joined.put(early, [2, 3])
    assert joined.take() == [(1, "nothing "), (2, "both"), (3, "both")]
    assert joined.counters.get("dropped.unpaired", "a") == 0


def test_what_is_missing_behind_that_is_a_loss_for_a_successor_too() -> None:
    joined = Joined(successor=True)
    joined.put(LEFT, [1, 2, 3])
    joined.put(RIGHT, [1, 3])
    assert joined.take() == [(1, "both"), (2, "nothing unpaired"), (3, "both")]
    assert joined.counters.get("dropped.unpaired", "a") == 1
