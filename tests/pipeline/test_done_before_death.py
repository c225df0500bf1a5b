"""Frames that were done before a death are not resent: the new process must not count them as lost.

Real senders, receivers and input loops; a test turns them one by one, in the most difficult order.

src --> mid --right--> both
  `--------------left-> both
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
import zmq
from camgraph_test_stages.parts import process_parts
from camgraph_test_stages.waiting import until

from camgraph.pipeline.execution.process_parts import ProcessParts
from camgraph.pipeline.execution.runner import StageRunner
from camgraph.pipeline.execution.stage_chain import StageChain
from camgraph.pipeline.items import MOST_PARTS, Item, Key
from camgraph.pipeline.messages import Message, Tombstone
from camgraph.pipeline.monitoring.metrics import Counters
from camgraph.pipeline.plan import EdgePlan, ProcessPlan, StagePlan
from camgraph.pipeline.shm.slots import SlotRing
from camgraph.pipeline.single_stage import HandContext
from camgraph.pipeline.stage import Settings, Stage
from camgraph.pipeline.testing import stamp
from camgraph.pipeline.transport.receiver import Receiver
from camgraph.pipeline.transport.sender import Sender
from camgraph.pipeline.worker.emitter import Emitter
from camgraph.pipeline.worker.input_loop import InputLoop


@dataclass(frozen=True, eq=False)
class Note(Message):
    TYPE: ClassVar[str] = "note"


class PassOn(Stage[Settings]):
    """Makes of each note the same note, once the gate is open."""

    gate: ClassVar[threading.Event] = threading.Event()
    gate.set()

    inputs = Note
    outputs = (Note,)

    def process(self, items: Sequence[Any]) -> Iterable[Message]:
        for item in items:
            assert self.gate.wait(20)
            yield Note(item["one"].stamp if isinstance(item, Mapping) else item.stamp)


def pass_on(stage: StagePlan, folder: Path, parts: ProcessParts) -> StageRunner:
    context = HandContext(folder, folder, stage=stage.name)
    return StageRunner(stage, PassOn(Settings(), context), parts)


DOWN = EdgePlan("src", "mid", "", "note", "block", 8)
LEFT = EdgePlan("src", "both", "left", "note", "block", 8)
RIGHT = EdgePlan("mid", "both", "right", "note", "block", 8, tombstones=True)


def sender_of(
    process: str, poller: zmq.Poller, readers: Mapping[EdgePlan, str], incarnation: int = 1
) -> tuple[Sender, SlotRing]:
    ring = SlotRing(f"camgraph-{os.getuid()}-test{os.getpid()}-{process}", 8)
    routes = {edge.name: {"a": reader} for edge, reader in readers.items()}
    stages = tuple(StagePlan(name, name, {}) for name in {edge.sender for edge in readers})
    plan = ProcessPlan(process, stages, ("a",), 8, tuple(readers), routes)
    return Sender(plan, ring, poller, process_parts(incarnation=incarnation)), ring


class Upstream:
    """The source: it lives through everything."""

    def __init__(self) -> None:
        self.poller = zmq.Poller()
        self.sender, self.ring = sender_of("src.a", self.poller, {DOWN: "mid.0", LEFT: "both.0"})

    def submit(self, *seqs: int) -> None:
        for seq in seqs:
            self.sender.submit([DOWN, LEFT], "a", Key(0, seq, 0), Note(stamp(seq, "a")), None)

    def turn(self) -> None:
        self.sender.receive(dict(self.poller.poll(2)))
        self.sender.flush()


class Mid:
    """The process between; one for each of its lives. It takes two frames at a time and no more until they are done."""

    def __init__(self, folder: Path, endpoint: str, *, successor: bool, threads: int = 1, incarnation: int = 1) -> None:
        parts = process_parts(incarnation=2 if successor else 1)
        stage = StagePlan("mid", "pass_on", {}, threads=threads)
        plan = ProcessPlan("mid.0", (stage,), ("a",), 2, (DOWN, RIGHT), {}, senders={DOWN.name: ("src.a",)})
        runner = pass_on(stage, folder, parts)
        self.poller = zmq.Poller()
        self.receiver = Receiver(endpoint, plan, {DOWN.name: [Note]}, parts)
        self.sender, self.ring = sender_of("mid.0", self.poller, {RIGHT: "both.0"}, incarnation)
        self.input_loop = InputLoop(
            StageChain(plan, {"mid": runner}, parts.log),
            self.receiver,
            self.sender,
            Emitter(self.sender, parts),
            parts,
            on_end=lambda _: None,
        )

    def turn(self) -> None:
        self.sender.receive(dict(self.poller.poll(2)))
        self.hear()

    def hear(self) -> None:
        self.receiver.receive()
        self.input_loop.turn()
        self.sender.flush()
        self.receiver.flush()

    def close(self) -> None:
        assert self.input_loop.close(20)
        self.receiver.close()
        self.sender.close()
        self.ring.close()


class Both:
    """The join; one for each of its lives."""

    def __init__(self, endpoint: str, *, successor: bool) -> None:
        edges = (LEFT, RIGHT)
        senders = {LEFT.name: ("src.a",), RIGHT.name: ("mid.0",)}
        plan = ProcessPlan("both.0", (StagePlan("both", "pair", {}),), ("a",), 8, edges, {}, senders=senders)
        self.counters = Counters()
        accepted = {edge.name: [Note] for edge in edges}
        parts = process_parts(self.counters, incarnation=2 if successor else 1)
        self.receiver = Receiver(endpoint, plan, accepted, parts)
        self.rows: dict[int, Item] = {}

    def hear(self) -> None:
        self.receiver.receive()
        self.receiver.flush()

    def turn(self) -> None:
        self.receiver.receive()
        self.rows |= {item.key.seq: item for item in self.receiver.mailboxes.take(100, lambda _: 100)}
        self.receiver.flush()

    @property
    def joined(self) -> dict[int, bool]:
        return {seq: not isinstance(item.payload, Tombstone) for seq, item in self.rows.items()}

    def finish(self, *seqs: int) -> None:
        for seq in seqs:
            self.receiver.credit(self.rows[seq])
            self.receiver.ack(self.rows[seq])


class Graph:
    """The three of them. What dies begins its next life at `next`, where its senders may attach before it is there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.src = Upstream()
        self.mid = Mid(self.folder, self.at("mid.1"), successor=False)
        self.both = Both(self.at("both.1"), successor=False)
        self.src.sender.connect({"mid.0": self.at("mid.1"), "both.0": self.at("both.1")})
        self.mid.sender.connect({"both.0": self.at("both.1")})

    def at(self, name: str) -> str:
        return f"ipc://{self.folder}/{name}"

    def mid_dies(self, *, threads: int = 1) -> None:
        self.mid.close()
        self.mid = Mid(self.folder, self.at("mid.2"), successor=True, threads=threads)

    def both_dies(self) -> None:
        self.both.receiver.close()
        self.both = Both(self.at("both.2"), successor=True)

    def turn(self) -> None:
        for one in (self.src, self.mid, self.both):
            one.turn()

    def close(self) -> None:
        self.src.sender.close()
        self.src.ring.close()
        self.mid.close()
        self.both.receiver.close()


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Graph]:
    graph = Graph(tmp_path)
    yield graph
    graph.close()


def test_an_ack_that_one_sender_received_is_no_loss(graph: Graph) -> None:
    """`src` knows that the second frame is done, `mid` does not: that frame comes again on one side only, between two
    frames that come on both."""
    graph.src.submit(1, 2)
    until(lambda: graph.turn() or len(graph.both.rows) == 2)
    graph.both.finish(2)
    graph.both.receiver.flush()
    graph.src.submit(3)
    until(lambda: graph.src.turn() or graph.src.sender.in_flight == 5)  # the second is left on the way down alone
    graph.both_dies()
    graph.src.sender.connect({"both.0": graph.at("both.2")})
    graph.mid.sender.connect({"both.0": graph.at("both.2")})
    until(lambda: graph.turn() or len(graph.both.rows) == 2)
    assert graph.both.joined == {1: True, 2: False}
    graph.both.finish(1, 2)
    until(lambda: graph.turn() or 3 in graph.both.rows)
    assert graph.both.joined[3]
    assert (graph.both.counters.get("dropped.unpaired", "a"), graph.both.counters.get("repeated", "a")) == (0, 1)


@pytest.mark.parametrize("attached", [False, True])
def test_no_drop_after_upstream_restart_either(graph: Graph, attached: bool) -> None:
    """The second frame comes from `src` alone. `mid` does not make it again, and reports that before it has taken all
    resent frames, because it waits until the join has finished those that it took. `attached`: `mid` knew the join
    before it took any."""
    graph.src.submit(1, 2)
    until(lambda: graph.turn() or len(graph.both.rows) == 2)
    graph.src.sender.connect({"both.0": graph.at("both.2")})  # and hears no more of the one that dies
    graph.both.finish(2)
    until(lambda: graph.turn() or graph.src.sender.in_flight == 3)  # the second on the way to the join alone
    graph.src.submit(3, 4)
    graph.mid_dies()
    graph.both_dies()
    if attached:
        graph.mid.sender.connect({"both.0": graph.at("both.2")})
        until(lambda: graph.mid.turn() or graph.both.hear() or graph.mid.sender.attached)
        until(lambda: graph.src.turn() or graph.both.hear() or graph.both.receiver.mailboxes.waiting() == 4)
    graph.src.sender.connect({"mid.0": graph.at("mid.2")})
    if not attached:
        # It has taken two.
        until(lambda: graph.src.turn() or graph.mid.turn() or graph.mid.receiver.mailboxes.waiting() == 1)
        graph.mid.sender.connect({"both.0": graph.at("both.2")})
    until(lambda: graph.turn() or len(graph.both.rows) == 3)
    assert graph.both.joined == {1: True, 2: False, 3: True}
    graph.both.finish(1, 2, 3)
    until(lambda: graph.turn() or 4 in graph.both.rows)
    assert (graph.both.counters.get("dropped.unpaired", "a"), graph.both.counters.get("repeated", "a")) == (0, 1)


def test_what_is_at_work_in_a_thread_is_waited_for(graph: Graph) -> None:
    """`mid` has taken all resent frames but still works on them: it must not report to the join that nothing comes."""
    graph.src.submit(1)
    until(lambda: graph.turn() or len(graph.both.rows) == 1)
    graph.mid_dies(threads=2)
    graph.both_dies()
    graph.mid.sender.connect({"both.0": graph.at("both.2")})
    graph.src.sender.connect({"mid.0": graph.at("mid.2"), "both.0": graph.at("both.2")})
    PassOn.gate.clear()
    try:
        until(lambda: graph.turn() or graph.mid.input_loop.working_since_ns)
        for _ in range(50):
            graph.turn()
        assert graph.both.rows == {}
    finally:
        PassOn.gate.set()
    until(lambda: graph.turn() or graph.both.rows)
    assert graph.both.joined == {1: True}


CHAIN = [EdgePlan("head", "tail", "", "note", "block", 8, inner=True), EdgePlan("tail", "out", "", "note", "block", 8)]
SIDES = [EdgePlan("head", side, "", "note", "block", 8, inner=True) for side in ("one", "other")]
JOIN = [EdgePlan(side, "tail", side, "note", "block", 8, inner=True) for side in ("one", "other")]
MERGE = [EdgePlan(side, "tail", "", "note", "block", 8, inner=True) for side in ("one", "other")]


@pytest.mark.parametrize("inner", [CHAIN[:1], [*SIDES, *JOIN], [*SIDES, *MERGE]])
def test_watermark_passes_in_process_joins_and_merges(tmp_path: Path, inner: list[EdgePlan]) -> None:
    """A reported key comes after all messages of the frames up to it, and before those of later frames."""
    names = list(dict.fromkeys(["head", *(edge.reader for edge in inner)]))
    stages = tuple(StagePlan(name, "pass_on", {}) for name in names)
    parts = process_parts()
    runners = {stage.name: pass_on(stage, tmp_path, parts) for stage in stages}
    process = StageChain(ProcessPlan("all.0", stages, ("a",), 8, (*inner, CHAIN[1]), {}), runners, parts.log)
    last = process.watermarks_behind(Key(0, 7, 0))[CHAIN[1].name]

    def made(seq: int) -> list[Key]:
        item = Item("a", Key(0, seq, 0), Note(stamp(seq, "a")))
        joined = any(edge.port for edge in inner)  # one of a frame; else as many as there may be
        rows = [[Note(item.stamp)] * (1 if joined else MOST_PARTS)]
        return [one.key for one in process.spread("head", [item], rows)]

    assert made(7)
    assert all(key <= last for key in made(7))
    assert all(key > last for key in made(8))
