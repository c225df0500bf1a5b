"""However a reader behaves and however often it is lost: every message arrives, in order, and is forgotten once."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camgraph.pipeline.items import Key
from camgraph.pipeline.monitoring.metrics import Counters
from camgraph.pipeline.plan import EdgePlan, Policy
from camgraph.pipeline.transport.in_flight import Delivery, InFlight, Queue, Ticket
from camgraph.pipeline.transport.protocol import Signals

DEPTH = 3
Place = tuple[str, int]


def edge(policy: Policy = "block") -> EdgePlan:
    return EdgePlan("src", "model", "", "number", policy, DEPTH)


class Talk:
    """What a sender has in flight, and the reader that it is for; checks each message as it arrives."""

    def __init__(self) -> None:
        self.in_flight = InFlight(Counters(), lambda slot: None)
        self.queues = {camera: self.in_flight.queue(edge(), camera) for camera in ("a", "b")}
        self.made: Counter[str] = Counter()
        self.done: set[Place] = set()
        self.forgotten: list[Place] = []
        self.attach(same_reader=False)

    def attach(self, *, same_reader: bool) -> None:
        self.in_flight.pause()
        self.arrived: dict[int, Place] = {}
        self.credited: set[int] = set()
        self.in_flight.begin(self._arrive, same_reader=same_reader)

    def _arrive(self, n: int, delivery: Delivery) -> None:
        camera, seq = delivery.queue.camera, delivery.key.seq
        before = {(camera, earlier) for earlier in range(seq)} - self.done
        assert before <= set(self.arrived.values()), "nothing is overtaken"
        assert (camera, seq) not in self.arrived.values(), "nothing comes twice on one connection"
        assert n == len(self.arrived) + 1, "numbers count from 1 on each connection"
        self.arrived[n] = (camera, seq)
        uncredited = [m for m, place in self.arrived.items() if place[0] == camera and m not in self.credited]
        assert len(uncredited) <= DEPTH, "never more than there are credits"

    def submit(self, number: int) -> None:
        camera = "ab"[number % 2]
        place = (camera, self.made[camera])
        self.made[camera] += 1
        ticket = Ticket(lambda: self.forgotten.append(place))
        deliver(self.in_flight, self.queues[camera], place[1], ticket)
        ticket.closed()

    def credit(self, n: int) -> None:
        self.credited.add(n)
        self.in_flight.receive(Signals([n], [], []))

    def finish(self, n: int) -> None:
        self.credited.add(n)
        self.done |= {self.arrived[n]} if n in self.arrived else set()
        self.in_flight.receive(Signals([], [n], []))  # the ack implies the credit

    def lose(self, _: int) -> None:
        self.attach(same_reader=True)

    def die(self, _: int) -> None:
        self.attach(same_reader=False)


def deliver(in_flight: InFlight, queue: Queue, seq: int, ticket: Ticket | None = None) -> Delivery:
    if ticket:
        ticket.opened()
    delivery = Delivery(queue, Key(0, seq, 0), b"", None, ticket, is_mark=False)
    in_flight.submit(delivery)
    return delivery


steps = st.tuples(
    st.sampled_from(["submit", "submit", "submit", "credit", "finish", "lose", "die"]), st.integers(1, 12)
)


@given(st.lists(steps, max_size=80))
def test_every_message_arrives_in_order_and_is_forgotten_once(steps: list[tuple[str, int]]) -> None:
    talk = Talk()
    for step, number in steps:
        # A reader's answers about messages that have not arrived are ignored: it cannot free them in advance.
        if step in ("credit", "finish") and number not in talk.arrived:
            talk.in_flight.receive(Signals([number + 100], [number + 100], [number + 100]))
        else:
            getattr(talk, step)(number)
        assert sorted(talk.forgotten) == sorted(talk.done)
    n = 1
    while n <= len(talk.arrived):
        talk.finish(n)
        n += 1
    assert sorted(talk.forgotten) == [(camera, seq) for camera in ("a", "b") for seq in range(talk.made[camera])]
    assert len(talk.in_flight) == 0


def test_nothing_is_sent_while_there_is_nobody() -> None:
    in_flight = InFlight(Counters(), lambda slot: None)
    queue = in_flight.queue(edge(), "a")
    deliver(in_flight, queue, 0)
    assert (queue.blocked, len(in_flight)) == (True, 1)
    sent: list[int] = []
    in_flight.begin(lambda n, delivery: sent.append(n), same_reader=False)
    assert (sent, queue.blocked) == ([1], False)


@pytest.mark.parametrize("same_reader", [True, False])
def test_messages_come_again_in_their_order_before_others(same_reader: bool) -> None:
    in_flight = InFlight(Counters(), lambda slot: None)
    queue = in_flight.queue(edge(), "a")
    in_flight.begin(lambda n, delivery: None, same_reader=False)
    for seq in range(DEPTH + 2):
        deliver(in_flight, queue, seq)
    in_flight.pause()
    sent: list[int] = []
    in_flight.begin(lambda n, delivery: sent.append(delivery.key.seq), same_reader=same_reader)
    in_flight.receive(Signals([], [1, 2], []))
    assert sent == [*range(DEPTH + 2)]


@pytest.mark.parametrize("credited_before", [True, False])
def test_an_ack_gives_the_credit_back_once(credited_before: bool) -> None:
    in_flight = InFlight(Counters(), lambda slot: None)
    queue = in_flight.queue(edge(), "a")
    sent: list[int] = []
    in_flight.begin(lambda n, delivery: sent.append(n), same_reader=False)
    for seq in range(2 * DEPTH):
        deliver(in_flight, queue, seq)
    assert (sent, queue.credits) == ([1, 2, 3], 0)
    if credited_before:
        in_flight.receive(Signals([1], [], []))
    in_flight.receive(Signals([], [1], []))
    assert (sent, queue.credits) == ([1, 2, 3, 4], 0)
    assert len(in_flight) == 2 * DEPTH - 1


@pytest.mark.parametrize(("same_reader", "deaths", "tries"), [(True, 0, 0), (False, 1, 1)])
def test_only_a_death_counts_as_one(same_reader: bool, deaths: int, tries: int) -> None:
    in_flight = InFlight(Counters(), lambda slot: None)
    queue = in_flight.queue(edge(), "a")
    in_flight.begin(lambda n, delivery: None, same_reader=False)
    tried, other = deliver(in_flight, queue, 0), deliver(in_flight, queue, 1)
    in_flight.receive(Signals([], [], [1]))
    in_flight.pause()
    in_flight.begin(lambda n, delivery: None, same_reader=same_reader)
    assert (tried.deaths, tried.tries) == (deaths, tries)
    assert (other.deaths, other.tries) == (deaths, 0)


def test_on_an_edge_that_drops_nothing_is_kept_for_a_dead_reader() -> None:
    counters = Counters()
    in_flight = InFlight(counters, lambda slot: None)
    queue = in_flight.queue(edge("drop_oldest"), "a")
    in_flight.begin(lambda n, delivery: None, same_reader=False)
    for seq in range(3):
        deliver(in_flight, queue, seq)
    in_flight.pause()
    assert in_flight.begin(lambda n, delivery: None, same_reader=False) == 0
    assert counters.get("dropped.reader_lost", "a") == 3


@pytest.mark.parametrize(("policy", "kept"), [("drop_oldest", 9), ("drop_newest", 0)])
def test_on_an_edge_that_drops_one_message_waits(policy: Policy, kept: int) -> None:
    counters = Counters()
    in_flight = InFlight(counters, lambda slot: None)
    queue = in_flight.queue(edge(policy), "a")
    for seq in range(10):
        deliver(in_flight, queue, seq)
    assert [delivery.key.seq for delivery in queue.waiting] == [kept]
    assert counters.get("dropped.queue_full", "a") == 9
