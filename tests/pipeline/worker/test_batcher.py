"""When a batch is closed, by a clock that is moved by hand; and how fresh and how fairly shared its frames are.

A device is simulated: frames arrive at their times, and each batch takes as long as it takes. Mailboxes and batcher
are the real ones.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from camgraph_test_stages.parts import process_parts
from hypothesis import example, given
from hypothesis import strategies as st

from camgraph.pipeline.items import Key
from camgraph.pipeline.messages import Message
from camgraph.pipeline.monitoring.metrics import Counters
from camgraph.pipeline.plan import EdgePlan, ProcessPlan, StagePlan
from camgraph.pipeline.testing import stamp
from camgraph.pipeline.transport.mailbox import Gone
from camgraph.pipeline.transport.mailboxes import Mailboxes
from camgraph.pipeline.transport.partition import Received
from camgraph.pipeline.transport.wire import Header
from camgraph.pipeline.worker.batcher import Batcher
from camgraph.tools.lab.benchmarks.live import Camera, fair_rates


@dataclass(frozen=True, eq=False)
class Note(Message):
    TYPE: ClassVar[str] = "note"


LIVE = EdgePlan("src", "model", "", "note", "drop_oldest", 1)
FILE = EdgePlan("src", "model", "", "note", "block", 4)
LIVE_LEFT = EdgePlan("left", "model", "left", "note", "drop_oldest", 2)
LIVE_RIGHT = EdgePlan("right", "model", "right", "note", "drop_oldest", 1)


class Device:
    """A stage in a thread of its own, with its mailboxes; `now_ms` is its clock. `edges`: one, or those of a join."""

    def __init__(self, *edges: EdgePlan, most: int, wait_ms: float = 0, priorities: Mapping[str, int] = {}) -> None:
        self.now_ms = 0.0
        self.edges = edges
        self.busy = False
        counters = Counters()
        self.mailboxes = Mailboxes(
            edges,
            {edge.name: [Note] for edge in edges},
            Gone(counters, lambda _: None, lambda *_: None),
            window=6,
            priorities=priorities,
            clock=self.seconds,
        )
        head = StagePlan("model", "null_model", {}, batch_max=most, wait_ms=wait_ms)
        device: Any = self
        chain: Any = SimpleNamespace(
            plan=ProcessPlan("model.0", (head,), (), 6, edges, {}),
            head=SimpleNamespace(plan=head, stage=SimpleNamespace(thread_safe=True)),
        )
        self.batcher = Batcher(chain, device, device, device, process_parts(counters), clock=self.seconds)

    def seconds(self) -> float:
        return self.now_ms / 1e3

    # ---- as the batcher sees its pool and its sender

    threads = 1
    empty = True
    cannot_send = ""

    @property
    def unfinished(self) -> int:
        return int(self.busy)

    def blocked(self, camera: str) -> bool:
        return camera == self.cannot_send

    # ---- what a test does

    def arrive(self, camera: str, seq: int, *edges: EdgePlan, deaths: int = 0, tries: int = 0) -> None:
        for edge in edges or self.edges:
            partition = self.mailboxes.partition(edge.name, camera)
            header = Header("note", stamp(seq, camera), {}, None, [])
            self.mailboxes.put(
                Received(partition, Key(0, seq, 0), header, None, [(b"src.0#1#1", seq)], 1, deaths, tries)
            )

    def wait(self) -> None:
        """As long as the batcher says."""
        while left_ms := self.batcher.wait_ms():
            self.now_ms += left_ms

    def begin(self) -> list[tuple[str, int]]:
        """The batch that begins now, if one does."""
        batch = self.batcher.next()
        if batch is None:
            return []
        self.busy = True
        for item in batch.items:
            self.batcher.finished(item)
        return [(item.camera, item.key.seq) for item in batch.items]


@dataclass
class Ran:
    """What a simulated run has shown. `batches`: when each began, and what was in it."""

    made: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    batches: list[tuple[float, list[tuple[str, int]]]] = field(default_factory=list)

    @property
    def got(self) -> Counter[str]:
        return Counter(camera for _, batch in self.batches for camera, _ in batch)


def simulate(device: Device, fps: Mapping[str, float], cost_ms: float, seconds: float) -> Ran:
    """Let cameras film at their rates, out of step, and the device work without a pause."""
    ran = Ran()
    due = [(1000 / rate * (number + 1) / len(fps), camera) for number, (camera, rate) in enumerate(fps.items())]
    heapq.heapify(due)
    until = float("inf")
    while device.now_ms < 1000 * seconds:
        wait_ms = device.batcher.wait_ms() if not device.busy else 0
        device.now_ms = min(due[0][0], until, device.now_ms + wait_ms if wait_ms else float("inf"))
        while due[0][0] <= device.now_ms:
            at, camera = heapq.heappop(due)
            device.arrive(camera, len(ran.made[camera]))
            ran.made[camera].append(at)
            heapq.heappush(due, (at + 1000 / fps[camera], camera))
        if device.now_ms >= until:
            device.busy, until = False, float("inf")
        if batch := device.begin():
            ran.batches.append((device.now_ms, batch))
            until = device.now_ms + cost_ms
    return ran


EVEN = {f"c{n}": 10.0 for n in range(8)}
MIXED = {"quick": 30.0, "quicker": 60.0, "slow": 5.0, "slower": 2.0, "p": 12.0, "q": 12.0, "r": 12.0, "s": 12.0}


@pytest.mark.parametrize("edges", [(LIVE,), (LIVE_LEFT, LIVE_RIGHT)], ids=["one edge", "a join"])
@pytest.mark.parametrize("most", [1, 2, 4])
@pytest.mark.parametrize(
    ("load", "fps", "priorities"),
    [
        (1.5, EVEN, {}),
        (4.0, EVEN, {}),
        (1.5, EVEN, {"c0": 3, "c5": 2}),
        (4.0, EVEN, {"c0": 3, "c5": 2}),
        (2.0, MIXED, {}),  # at less, too few have something for batches of 4 to be full
        (4.0, MIXED, {}),
        (2.0, MIXED, {"quick": 3}),
        (4.0, MIXED, {"quick": 3}),
    ],
)
@pytest.mark.slow
def test_every_camera_has_its_share(
    edges: Sequence[EdgePlan], most: int, load: float, fps: Mapping[str, float], priorities: Mapping[str, int]
) -> None:
    rate = sum(fps.values()) / load
    seconds = 40
    ran = simulate(Device(*edges, most=most, priorities=priorities), fps, 1000 * most / rate, seconds)
    assert len(ran.batches) >= 0.98 * seconds * rate / most
    cameras = {name: Camera(film, priorities.get(name, 1)) for name, film in fps.items()}
    for camera, share in fair_rates(cameras, rate, rate / most).items():
        assert ran.got[camera] / seconds == pytest.approx(share, rel=0.1, abs=2 / seconds), camera


@given(
    st.lists(st.floats(1, 60), min_size=1, max_size=6),
    st.integers(1, 8),
    st.floats(5, 400),
    st.sampled_from([(LIVE,), (LIVE_LEFT, LIVE_RIGHT)]),
)
def test_what_begins_is_the_newest_that_had_come(
    rates: list[float], most: int, cost_ms: float, edges: Sequence[EdgePlan]
) -> None:
    fps = {f"c{n}": rate for n, rate in enumerate(rates)}
    ran = simulate(Device(*edges, most=most), fps, cost_ms, 4)
    for began_ms, batch in ran.batches:
        for camera, seq in batch:
            assert seq == sum(at <= began_ms for at in ran.made[camera]) - 1
            assert began_ms - ran.made[camera][seq] <= 1000 / fps[camera] + 1e-6


@example(arrivals=[("a", 0.0), ("a", 1.5), ("a", 48.5)], most=2)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.floats(0, 90)), min_size=1, max_size=30), st.integers(2, 6))
def test_idle_device_begins_when_full_or_waited(arrivals: list[tuple[str, float]], most: int) -> None:
    device = Device(LIVE, most=most, wait_ms=50)
    first_ms: dict[str, float] = {}
    for seq, (camera, after_ms) in enumerate(arrivals):
        later_ms = device.now_ms + after_ms
        if (left_ms := device.batcher.wait_ms()) and device.now_ms + left_ms <= later_ms:
            device.now_ms += left_ms
            device.wait()
            assert device.now_ms <= min(first_ms.values()) + 50 + 1, "it is asked in whole milliseconds"
            assert sorted(camera for camera, _ in device.begin()) == sorted(first_ms)
            first_ms.clear()
            device.busy = False
        device.now_ms = max(device.now_ms, later_ms)
        device.arrive(camera, seq)
        first_ms.setdefault(camera, device.now_ms)
        batch = device.begin()
        has_waited = math.ceil(50 - (device.now_ms - min(first_ms.values()))) <= 0
        assert bool(batch) == (len(first_ms) == most or has_waited)
        if batch:
            first_ms.clear()
            device.busy = False


def test_what_came_while_the_device_was_busy_has_waited_already() -> None:
    device = Device(LIVE, most=4, wait_ms=50)
    device.arrive("a", 0)
    device.now_ms = 50
    assert device.begin() == [("a", 0)]
    device.now_ms = 60
    device.arrive("b", 0)
    device.now_ms = 100
    device.arrive("b", 1)
    assert device.batcher.wait_ms() == 10
    device.now_ms = 120
    assert device.begin() == []
    device.busy = False
    assert device.begin() == [("b", 1)]


def test_item_to_be_tried_alone_is_in_hand_until_sent() -> None:
    device = Device(FILE, most=4)
    device.empty = False
    device.arrive("a", 0, deaths=5, tries=2)
    assert device.batcher.next() is None, "others are at work"
    assert (device.mailboxes.waiting(), device.batcher.has_in_hand("a")) == (0, True)
    device.empty = True
    batch = device.batcher.next()
    assert batch is not None
    assert device.batcher.has_in_hand("a")
    device.batcher.sent_on(batch.items)
    assert not device.batcher.has_in_hand("a")


def test_blocked_camera_keeps_no_one_waiting() -> None:
    device = Device(LIVE, most=2, wait_ms=50)
    device.cannot_send = "a"
    device.arrive("a", 0)
    device.now_ms = 40
    device.arrive("b", 0)
    assert device.batcher.wait_ms() == 50, "a cannot be taken, so that b is alone"
    device.wait()
    assert device.begin() == [("b", 0)]
