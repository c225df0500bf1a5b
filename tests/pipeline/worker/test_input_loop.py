"""The loop of a process that others send to: batches go through its stages, and signals go back in time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import structlog
from camgraph_test_stages.parts import process_parts
from camgraph_test_stages.waiting import until

from camgraph.pipeline.execution.runner import StageRunner
from camgraph.pipeline.execution.stage_chain import StageChain
from camgraph.pipeline.items import Item, Key
from camgraph.pipeline.messages import End, Message, Tombstone
from camgraph.pipeline.monitoring.metrics import Counters
from camgraph.pipeline.plan import EdgePlan, ProcessPlan, StagePlan
from camgraph.pipeline.stage import Settings, Stage
from camgraph.pipeline.testing import HandContext, stamp
from camgraph.pipeline.transport.mailbox import Gone
from camgraph.pipeline.transport.mailboxes import Mailboxes
from camgraph.pipeline.transport.partition import Received
from camgraph.pipeline.transport.protocol import Watermark
from camgraph.pipeline.transport.wire import Header
from camgraph.pipeline.worker.input_loop import InputLoop

LOG = structlog.get_logger()
FILE = EdgePlan("src", "model", "", Message.TYPE, "block", 8)
OUT = EdgePlan("model", "sink", "", Message.TYPE, "block", 8)


class Step(Stage[Settings]):
    """Notes its batches. `failure`: raised by the next call."""

    inputs = Message
    outputs = (Message,)

    def __init__(self) -> None:
        super().__init__(Settings(), HandContext(Path(), Path()))
        self.batches: list[list[int]] = []

    def process(self, items: Sequence[Any]) -> Iterable[Message]:
        self.batches.append([item.stamp.seq for item in items])
        return [Message(item.stamp) for item in items]


class Beside(Step):
    """A stage that takes long: it works in a thread."""

    own_thread = True


class Process:
    """An input loop with real mailboxes, batcher and stages. It notes what it sends, credits and acknowledges."""

    def __init__(self, step: Step, *, batch_max: int = 4) -> None:
        self.calls: list[str] = []
        self.watermarks: list[tuple[dict[str, Key], bool]] = []
        self.open: list[tuple[Item, Callable[[Item], None]]] = []
        self.ended: list[str] = []
        self.wakes: list[bool] = []
        self.counters = Counters()
        head = StagePlan("model", "", {}, batch_max=batch_max)
        plan = ProcessPlan("model.0", (head,), ("cam",), 64, (FILE, OUT), {OUT.name: {"cam": "sink.0"}})
        parts = process_parts(self.counters, log=LOG, wake=lambda: self.wakes.append(True))
        chain = StageChain(plan, {"model": StageRunner(head, step, parts)}, LOG)
        gone = Gone(self.counters, lambda _: None, lambda *_: None)
        self.mailboxes = Mailboxes((FILE,), {FILE.name: [Message]}, gone, window=64)
        receiver: Any = SimpleNamespace(
            mailboxes=self.mailboxes,
            credit=lambda item: self.calls.append(f"credit {item.stamp.seq}"),
            ack=lambda item: self.calls.append(f"ack {item.stamp.seq}"),
            survived=lambda item: self.calls.append(f"survived {item.stamp.seq}"),
            trying=lambda item: self.calls.append(f"trying {item.stamp.seq}"),
            flush=lambda: None,
        )
        sender: Any = SimpleNamespace(
            blocked=lambda camera: False, flush=lambda: None, raise_watermarks=self._raise_watermarks
        )
        emitter: Any = SimpleNamespace(submit=self._submit)
        self.loop = InputLoop(
            chain,
            receiver,
            sender,
            emitter,
            parts,
            on_end=lambda item: self.ended.append(item.camera),
        )

    def _raise_watermarks(self, keys: Sequence[tuple[str, dict[str, Key]]], *, final: bool) -> None:
        self.watermarks += [(by_edge, final) for _, by_edge in keys]

    def _submit(self, items: Sequence[Item], made: Sequence[Any], on_done: Callable[[Item], None]) -> None:
        self.calls += [f"send {one.message.stamp.seq}" for one in made if not isinstance(one.message, Tombstone)]
        self.open += [(item, on_done) for item in items]

    def put(self, *seqs: int, kind: str = Message.TYPE, deaths: int = 0) -> None:
        partition = self.mailboxes.partition(FILE.name, "cam")
        fields = {"reason": "end", "error": "", "status": 0, "error_id": ""} if kind == End.TYPE else {}
        for seq in seqs:
            header = Header(kind, stamp(seq), fields, None, [])
            key, origins = Key(0, seq, 0), [(b"src.0#1#1", seq)]
            self.mailboxes.put(Received(partition, key, header, None, origins, deaths=deaths))

    def finish_all(self) -> None:
        """All that was made of the items is done further down."""
        for item, on_done in self.open:
            on_done(item)
        self.open.clear()

    def turn_until_idle(self) -> None:
        while self.loop.turn():
            pass


def test_waiting_messages_are_processed_in_full_batches() -> None:
    step = Step()
    process = Process(step, batch_max=3)
    process.put(*range(7))
    process.turn_until_idle()
    assert step.batches == [[0, 1, 2], [3, 4, 5], [6]]


def test_a_credit_goes_back_after_sending_and_an_ack_at_the_end() -> None:
    process = Process(Step())
    process.put(1, 2)
    process.turn_until_idle()
    assert process.calls == ["send 1", "send 2", "credit 1", "credit 2"]
    process.finish_all()
    assert process.calls[4:] == ["ack 1", "ack 2"]


def test_outputs_of_changed_memory_are_thrown_away(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process(Step())
    process.put(1, 2)
    monkeypatch.setattr(Item, "intact", lambda item: item.stamp.seq != 1)
    process.turn_until_idle()
    assert process.calls == ["send 2", "credit 1", "credit 2"]
    assert process.counters.get("dropped.torn", "cam") == 1


def test_an_end_follows_all_frames_and_is_reported_when_done() -> None:
    process = Process(Step())
    process.put(1)
    process.put(2, kind=End.TYPE)
    process.turn_until_idle()
    assert process.calls[0] == "send 1"
    assert process.ended == []
    process.finish_all()
    assert process.ended == ["cam"]


def test_a_suspect_is_tried_alone_and_reported_as_survived() -> None:
    step = Step()
    process = Process(step)
    process.put(1, deaths=3)
    process.put(2)
    process.turn_until_idle()
    assert step.batches == [[1], [2]]
    assert process.calls[0] == "trying 1"
    assert process.calls.index("survived 1") > process.calls.index("send 1")
    assert "survived 2" not in process.calls


def test_readers_learn_of_keys_that_will_not_come() -> None:
    process = Process(Step())
    process.put(1)
    process.mailboxes.raise_watermark(Watermark(FILE.name, "cam", Key(0, 5, 0), None, final=True))
    process.turn_until_idle()
    final = [by_edge[OUT.name] for by_edge, is_final in process.watermarks if is_final]
    assert [key.seq for key in final] == [5]
    assert final[0] > Key(0, 5, 0), "above every output that was made of that message"


def test_a_stage_with_its_own_thread_leaves_the_loop_free() -> None:
    step = Beside()
    process = Process(step, batch_max=2)
    process.put(1, 2)
    process.loop.turn()
    until(lambda: process.wakes)
    assert process.calls == [], "outputs are sent by the loop"
    process.turn_until_idle()
    assert process.calls == ["send 1", "send 2", "credit 1", "credit 2"]
    assert process.loop.working_since_ns == 0
    assert process.loop.close(30)


def test_an_error_in_a_thread_is_raised_in_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process(Beside())
    monkeypatch.setattr(StageChain, "run_head", _fail)
    process.put(1)
    process.loop.turn()
    until(lambda: process.wakes)
    with pytest.raises(ZeroDivisionError):
        process.loop.turn()
    assert process.loop.close(30)


def _fail(chain: StageChain, items: Sequence[Item]) -> list[list[Message]]:
    raise ZeroDivisionError
