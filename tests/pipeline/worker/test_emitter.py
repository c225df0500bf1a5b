"""Outputs that cannot be sent now are sent later, once; none is lost or doubled."""

from __future__ import annotations

from typing import Any

from camgraph_test_stages.parts import process_parts
from structlog.testing import capture_logs

from camgraph.pipeline.errors import EnvironmentProblem
from camgraph.pipeline.execution.stage_chain import Made
from camgraph.pipeline.items import Item, Key
from camgraph.pipeline.messages import Message
from camgraph.pipeline.monitoring.metrics import Counters
from camgraph.pipeline.plan import EdgePlan
from camgraph.pipeline.testing import stamp
from camgraph.pipeline.worker.emitter import Emitter


class Broken:
    """A sender that meets a message whose class has a bug."""

    def submit(self, edges: Any, camera: str, key: Key, message: Message, ticket: Any) -> None:
        raise AttributeError("'Pose' object has no attribute 'joints'")


class ShortOfMemory:
    """A sender whose shared memory is full the first three times."""

    def __init__(self) -> None:
        self.refusals = 3
        self.sent: list[Any] = []

    def submit(self, edges: Any, camera: str, key: Key, message: Message, ticket: Any) -> None:
        if self.refusals:
            self.refusals -= 1
            raise EnvironmentProblem("no room in shared memory")
        self.sent.append(key)


def test_lack_of_shared_memory_is_retried_and_sent_once() -> None:
    waits: list[float] = []
    sender = ShortOfMemory()
    parts = process_parts(pause=lambda seconds: bool(waits.append(seconds)))
    item = Item("cam", Key(0, 1, 0), Message(stamp(1)))
    edge = EdgePlan("model", "sink", "", "message", "block", 4)
    done: list[Item] = []
    emitter = Emitter(sender, parts)  # type: ignore[arg-type]
    emitter.submit([item], [Made([edge], item, Message(stamp(1)), item.key)], done.append)
    assert (sender.sent, len(waits), done) == ([item.key], 2, [item]), "it is tried again at once, then after pauses"
    assert (parts.retry.waits_for, parts.counters.snapshot()) == ("", [])


def test_a_bug_in_a_message_class_costs_that_message_alone() -> None:
    counters = Counters()
    item = Item("cam", Key(0, 1, 0), Message(stamp(1)))
    edge = EdgePlan("model", "sink", "", "message", "block", 4)
    done: list[Item] = []
    emitter = Emitter(Broken(), process_parts(counters))  # type: ignore[arg-type]
    with capture_logs() as logs:
        emitter.submit([item], [Made([edge], item, Message(stamp(1)), item.key)], done.append)
    assert [(line["event"], line["stage"]) for line in logs] == [("message_cannot_be_sent", "model")]
    assert counters.snapshot() == [("dropped.error", "cam", 1), ("failed.model", "cam", 1)]
    assert done == [item]
