"""Batches leave in the order in which they went in, whichever is finished first."""

from __future__ import annotations

import threading

from camgraph_test_stages.waiting import until

from camgraph.pipeline.execution.pool import Batch, Pool
from camgraph.pipeline.items import Item, Key
from camgraph.pipeline.messages import Message
from camgraph.pipeline.testing import stamp


def batch(number: int, *, mark: bool = False) -> Batch:
    return Batch([Item("cam", Key(0, number, 0), Message(stamp(number)))], mark=mark)


def test_order_holds_though_the_second_is_finished_first() -> None:
    gates = {0: threading.Event(), 1: threading.Event()}
    ran: list[int] = []

    def work(one: Batch) -> None:
        number = one.items[0].key.seq
        gates[number].wait(20)
        ran.append(number)

    pool = Pool(2, work, lambda: None)
    batches = [batch(0), batch(1), batch(2, mark=True)]
    for one in batches:
        pool.put(one)
    gates[1].set()
    until(lambda: ran == [1])
    assert pool.finished() == []
    assert pool.working_since_ns > 0
    gates[0].set()
    until(lambda: pool.unfinished == 0)
    assert pool.finished() == batches
    assert pool.empty
    pool.close(5)


def test_an_error_stays_with_its_batch() -> None:
    def work(one: Batch) -> None:
        if one.items[0].key.seq == 1:
            raise RuntimeError("told to")

    woken = threading.Semaphore(0)
    pool = Pool(1, work, woken.release)
    for number in range(3):
        pool.put(batch(number))
    for _ in range(3):
        assert woken.acquire(timeout=60)
    assert [str(one.error or "") for one in pool.finished()] == ["", "told to", ""]
    pool.close(5)
