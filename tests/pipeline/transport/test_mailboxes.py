"""Messages that a process has not taken yet: joins, replacement by newer ones, and whose turn it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pytest

from camgraph.pipeline.items import Item, Key
from camgraph.pipeline.messages import End, Message, Tombstone
from camgraph.pipeline.monitoring.metrics import Counters
from camgraph.pipeline.plan import EdgePlan
from camgraph.pipeline.testing import stamp
from camgraph.pipeline.transport.mailbox import Gone
from camgraph.pipeline.transport.mailboxes import Mailboxes
from camgraph.pipeline.transport.partition import Received
from camgraph.pipeline.transport.protocol import Watermark
from camgraph.pipeline.transport.wire import Header


@dataclass(frozen=True, eq=False)
class Note(Message):
    TYPE: ClassVar[str] = "note"


LEFT = EdgePlan("left", "both", "left", "note", "block", 8)
RIGHT = EdgePlan("right", "both", "right", "note", "block", 8)
UPPER = EdgePlan("upper", "model", "", "note", "block", 8)
LOWER = EdgePlan("lower", "model", "", "note", "block", 8)
LIVE_LEFT = EdgePlan("left", "both", "left", "note", "drop_oldest", 5)
LIVE_RIGHT = EdgePlan("right", "both", "right", "note", "drop_oldest", 1)
FILE = EdgePlan("src", "model", "", "note", "block", 4)
LIVE = EdgePlan("src", "model", "", "note", "drop_oldest", 1)

END = 1 << 60


class Reader:
    """The mailboxes of a process, and what became of the messages put into them. `now`: its clock, in seconds."""

    def __init__(self, *edges: EdgePlan, successor: bool = False, priorities: dict[str, int] | None = None) -> None:
        self.counters = Counters()
        self.gone: list[tuple[str, int]] = []
        self.now = 0.0
        self.mailboxes = Mailboxes(
            edges,
            {edge.name: [Note] for edge in edges},
            Gone(self.counters, self._finish, lambda *_: None),
            window=6,
            priorities=priorities,
            successor=successor,
            clock=lambda: self.now,
        )

    def _finish(self, received: Received) -> None:
        self.gone.append((received.partition.edge.sender, received.key.seq))

    def put(self, edge: EdgePlan, seqs: Sequence[int], camera: str = "a", kind: str = "note") -> None:
        partition = self.mailboxes.partition(edge.name, camera)
        for seq in seqs:
            fields = {"reason": "end", "error": "", "status": 0, "error_id": ""} if kind == "end" else {"reason": ""}
            header = Header(kind, stamp(seq, camera), {} if kind == "note" else fields, None, [])
            origin = [(f"{edge.sender}.0#1#1".encode(), seq)]
            self.mailboxes.put(Received(partition, Key(0, seq, 0), header, None, origin))

    def passes(self, edge: EdgePlan, seq: int, again: int | None = None, *, final: bool = True) -> None:
        """The sender on this edge says up to where all is done."""
        key = None if again is None else Key(0, again, 0)
        self.mailboxes.raise_watermark(Watermark(edge.name, "a", Key(0, seq, 0), key, final))

    def batch(self, most: int, room: int = 100) -> list[tuple[str, int]]:
        return [(item.camera, item.key.seq) for item in self.mailboxes.take(most, lambda _: room)]

    def rows(self) -> list[tuple[int, str]]:
        """Frame, and what is there of it: `both`, or `nothing` with the reason that a tombstone gives."""
        items: list[Item] = []
        while taken := self.mailboxes.take(1, lambda _: 100):
            items += taken
        return [(one.key.seq, _in_words(one)) for one in items]


def _in_words(item: Item) -> str:
    return f"nothing {item.payload.reason}" if isinstance(item.payload, Tombstone) else "both"


def test_a_row_of_which_a_part_is_missing_is_a_loss() -> None:
    joined = Reader(LEFT, RIGHT)
    joined.put(LEFT, [1, 2, 3])
    joined.put(RIGHT, [2, 3])
    assert joined.rows() == [(1, "nothing unpaired"), (2, "both"), (3, "both")]
    assert joined.counters.get("dropped.unpaired", "a") == 1


@pytest.mark.parametrize(("late", "early"), [(LEFT, RIGHT), (RIGHT, LEFT)])
def test_successor_skips_frames_acked_to_one_sender(late: EdgePlan, early: EdgePlan) -> None:
    joined = Reader(LEFT, RIGHT, successor=True)
    joined.put(late, [1, 2, 3])
    joined.put(early, [2, 3])
    assert joined.rows() == [(1, "nothing "), (2, "both"), (3, "both")]
    assert joined.counters.get("dropped.unpaired", "a") == 0


@pytest.mark.parametrize("final", [True, False])
@pytest.mark.parametrize(("late", "early"), [(LEFT, RIGHT), (RIGHT, LEFT)])
def test_gaps_up_to_reported_key_were_done(late: EdgePlan, early: EdgePlan, final: bool) -> None:
    joined = Reader(LEFT, RIGHT, successor=True)
    joined.passes(early, 3, again=3, final=final)
    joined.put(early, [1, 3, 5])
    joined.put(late, [1, 2, 3, 4, 5])
    assert joined.rows() == [(1, "both"), (2, "nothing "), (3, "both"), (4, "nothing unpaired"), (5, "both")]
    assert (joined.counters.get("repeated", "a"), joined.counters.get("dropped.unpaired", "a")) == (1, 1)


def test_waits_for_sender_until_its_watermark_is_final() -> None:
    joined = Reader(LEFT, RIGHT, successor=True)
    joined.put(LEFT, [1, 2])
    joined.passes(RIGHT, 2, final=False)
    assert joined.rows() == []
    joined.passes(RIGHT, 2)
    assert joined.rows() == [(1, "nothing "), (2, "nothing ")]


def test_gap_above_watermark_is_a_loss() -> None:
    joined = Reader(LEFT, RIGHT, successor=True)
    joined.put(LEFT, [1, 2, 3])
    joined.put(RIGHT, [1, 3])
    assert joined.rows() == [(1, "both"), (2, "nothing unpaired"), (3, "both")]
    assert joined.counters.get("dropped.unpaired", "a") == 1


@pytest.mark.parametrize(("late", "early"), [(LEFT, RIGHT), (RIGHT, LEFT)])
def test_successor_does_not_wait_below_the_watermark(late: EdgePlan, early: EdgePlan) -> None:
    joined = Reader(LEFT, RIGHT, successor=True)
    joined.put(late, [1, 2, 3])
    assert joined.rows() == []
    joined.passes(early, 2)
    assert joined.rows() == [(1, "nothing "), (2, "nothing ")]
    joined.put(early, [3])
    assert joined.rows() == [(3, "both")]
    assert joined.counters.get("dropped.unpaired", "a") == 0


def test_a_successor_waits_for_what_is_said_to_come_again() -> None:
    joined = Reader(LEFT, RIGHT, successor=True)
    joined.put(LEFT, [1, 2, 3])
    joined.passes(RIGHT, 3, again=2)
    assert joined.rows() == []
    joined.put(RIGHT, [2])
    assert joined.rows() == [(1, "nothing "), (2, "both"), (3, "nothing ")]


def test_end_below_watermark_of_other_edge_is_taken() -> None:
    joined = Reader(LEFT, RIGHT, successor=True)
    joined.put(LEFT, [END], kind="end")
    joined.passes(RIGHT, END)
    [item] = joined.mailboxes.take(1, lambda _: 1)
    assert isinstance(item.payload, End)


@pytest.mark.parametrize(("late", "early"), [(UPPER, LOWER), (LOWER, UPPER)])
def test_a_merge_does_not_wait_for_what_was_done(late: EdgePlan, early: EdgePlan) -> None:
    merged = Reader(UPPER, LOWER, successor=True)
    merged.put(late, [1, 2])
    assert merged.batch(9) == []
    merged.passes(early, 2)
    assert merged.batch(9) == [("a", 1), ("a", 2)]
    merged.passes(late, END)
    merged.put(early, [END], kind="end")
    [item] = merged.mailboxes.take(1, lambda _: 1)
    assert isinstance(item.payload, End)


def test_watermark_is_final_once_resent_items_are_taken() -> None:
    joined = Reader(LEFT, RIGHT, successor=True)
    joined.passes(LEFT, 5)
    joined.passes(RIGHT, 4, again=3)
    assert joined.mailboxes.take_final(lambda _: False) == []
    joined.put(RIGHT, [3])
    assert joined.rows() == [(3, "nothing ")]
    assert joined.mailboxes.take_final(lambda camera: camera == "a") == [], "it is at work"
    assert joined.mailboxes.take_final(lambda _: False) == [("a", Key(0, 4, 0))]
    assert joined.mailboxes.take_final(lambda _: False) == []


def test_watermark_is_the_lowest_of_all_senders() -> None:
    joined = Reader(LEFT, RIGHT, successor=True)
    joined.passes(LEFT, 5)
    assert joined.mailboxes.take_provisional() == []
    joined.put(LEFT, [6])
    joined.passes(RIGHT, 4, final=False)
    assert joined.mailboxes.take_provisional() == [("a", Key(0, 4, 0))]
    assert joined.mailboxes.take_provisional() == []
    joined.passes(RIGHT, 7, again=7)
    assert joined.mailboxes.take_provisional() == [("a", Key(0, 5, 0))]
    assert joined.mailboxes.take_final(lambda _: False) == []


# ---- live: what waits gives way to what is newer


def test_a_newer_frame_takes_the_place_of_one_that_waits() -> None:
    live = Reader(LIVE)
    live.put(LIVE, [1, 2, 3])
    assert live.gone == [("src", 1), ("src", 2)]
    assert live.batch(4) == [("a", 3)]
    assert live.counters.get("dropped.queue_full", "a") == 2


def test_a_newer_row_takes_the_place_of_one_that_waits() -> None:
    live = Reader(LIVE_LEFT, LIVE_RIGHT)
    live.put(LIVE_LEFT, [1, 2, 3, 4, 5])
    live.put(LIVE_RIGHT, [1])
    assert live.mailboxes.has(1, lambda _: 1)
    live.put(LIVE_RIGHT, [3, 4])
    assert sorted(live.gone) == [("left", 1), ("left", 3), ("right", 1), ("right", 3)]
    assert live.rows() == [(2, "nothing unpaired"), (4, "both")]
    assert live.counters.get("skipped.queue_full", "a") == 2
    live.put(LIVE_RIGHT, [5])
    assert live.rows() == [(5, "both")]


def test_rows_of_files_all_wait_and_keep_their_order() -> None:
    joined = Reader(LEFT, RIGHT)
    for seq in range(6):
        joined.put(LEFT, [seq])
        joined.put(RIGHT, [seq])
    assert joined.gone == []
    assert joined.rows() == [(seq, "both") for seq in range(6)]


def test_tombstone_precedes_a_replaced_frame() -> None:
    live = Reader(LIVE)
    live.put(LIVE, [1], kind="tombstone")
    live.put(LIVE, [2, 3])
    assert (live.batch(4), live.batch(4)) == ([("a", 1)], [("a", 3)])


# ---- whose turn it is


def test_marks_go_first_and_alone_and_leave_the_batch_whole() -> None:
    files = Reader(FILE)
    files.put(FILE, [1], "a")
    files.put(FILE, [1], "b", kind="tombstone")
    files.put(FILE, [2], "b")
    files.put(FILE, [9], "c", kind="end")
    assert [files.batch(4) for _ in range(4)] == [[("b", 1)], [("c", 9)], [("a", 1), ("b", 2)], []]


def test_what_comes_behind_a_mark_waits_for_the_next_batch() -> None:
    files = Reader(FILE)
    files.put(FILE, [1], "a")
    files.put(FILE, [2], "a", kind="tombstone")
    files.put(FILE, [3], "a")
    files.put(FILE, [1, 2], "b")
    taken = [files.batch(8) for _ in range(3)]
    assert [sorted(batch) for batch in taken] == [[("a", 1), ("b", 1), ("b", 2)], [("a", 2)], [("a", 3)]]


def test_batch_spreads_over_cameras_within_room() -> None:
    files = Reader(FILE)
    for camera in "abc":
        files.put(FILE, [1, 2, 3, 4], camera)
    assert sorted(files.batch(3)) == [("a", 1), ("b", 1), ("c", 1)]
    assert sorted(files.batch(4)[:3]) == [("a", 2), ("b", 2), ("c", 2)]
    assert len(files.batch(12, room=1)) == 3


def test_priorities_share_places_of_full_batches() -> None:
    live = Reader(LIVE, priorities={"a": 3})
    got: Counter[str] = Counter()
    for seq in range(80):
        for camera in "abcd":
            live.put(LIVE, [seq], camera)
        batch = live.batch(2)
        assert len(batch) == 2
        got.update(camera for camera, _ in batch)
    # Six shares for two places: a gets into all batches (but for one, before it is ahead), the others share the rest.
    assert got["a"] >= 79
    assert all(26 <= got[camera] <= 27 for camera in "bcd")


def test_where_all_get_in_priorities_make_no_difference() -> None:
    live = Reader(LIVE, priorities={"a": 100})
    for seq in range(3):
        for camera in "abc":
            live.put(LIVE, [seq], camera)
        assert sorted(live.batch(8)) == [("a", seq), ("b", seq), ("c", seq)]


# ---- how long a batch waits


def test_replacing_a_frame_does_not_restart_the_wait() -> None:
    live = Reader(LIVE)
    for live.now, seq in ((10.0, 1), (10.2, 2), (10.3, 3)):
        live.put(LIVE, [seq])
    assert live.mailboxes.since(4, lambda _: 1) == 10.0
    live.batch(4)
    assert live.mailboxes.since(4, lambda _: 1) is None
    live.now = 11.0
    live.put(LIVE, [4])
    assert live.mailboxes.since(4, lambda _: 1) == 11.0


def test_what_did_not_get_into_a_batch_has_waited_since_it_came() -> None:
    live = Reader(LIVE)
    for live.now, camera in ((1.0, "a"), (2.0, "b"), (3.0, "c")):
        live.put(LIVE, [1], camera)
    assert live.mailboxes.since(3, lambda _: 1) is None, "a whole batch does not wait"
    assert live.batch(2) == [("a", 1), ("b", 1)]
    assert live.mailboxes.since(2, lambda _: 1) == 3.0


def test_nobody_waits_for_what_cannot_be_taken() -> None:
    joined = Reader(LEFT, RIGHT)
    joined.put(LEFT, [1, 2, 3, 4])
    assert not joined.mailboxes.has(1, lambda _: 1)
    joined.now = 5.0
    joined.put(RIGHT, [1])
    assert joined.mailboxes.since(4, lambda _: 1) == 5.0
    assert joined.mailboxes.since(4, lambda _: 0) is None
    joined.put(RIGHT, [2], kind="tombstone")
    assert joined.mailboxes.since(4, lambda _: 1) == 5.0
    joined.batch(1)
    assert joined.mailboxes.since(4, lambda _: 1) is None, "a mark has nobody to wait for"
