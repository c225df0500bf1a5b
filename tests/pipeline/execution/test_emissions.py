"""Events that a sink emits by itself: `emit` returns once they are committed, and can be called again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from camgraph.pipeline.errors import Unavailable
from camgraph.pipeline.execution import emissions
from camgraph.pipeline.execution.emissions import Emissions
from camgraph.pipeline.messages import Event
from camgraph.pipeline.testing import stamp


def event(name: str = "clip") -> Event:
    return Event(stamp(), name)


class Way:
    """To an outbox that is slow: it keeps what it is given, and calls `then` with it."""

    def __init__(self, then: Callable[[Event], object] = lambda _: None) -> None:
        self.sent: list[tuple[str, str]] = []
        self.given = threading.Event()
        self._then = then
        self.emissions = Emissions(self.send)

    def send(self, stage: str, event: Event) -> None:
        self.sent.append((stage, event.id))
        self.given.set()
        self._then(event)


def test_an_event_that_is_committed_at_once_is_emitted() -> None:
    way = Way(lambda event: way.emissions.committed(event.id))
    way.emissions.emit("clips", event())
    assert way.sent == [("clips", "clip")]


def test_the_loop_does_not_wait_for_itself() -> None:
    """Its thread is the one that hears of the outbox: a wait there would end only with the limit."""
    way = Way()
    with pytest.raises(Unavailable) as error:
        way.emissions.emit("clips", event())
    assert error.value.patient
    way.emissions.committed("clip")
    way.emissions.emit("clips", event())
    assert way.sent == [("clips", "clip")], "a known event is not sent again"


def test_a_thread_waits_until_the_outbox_has_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emissions, "_WITHIN_S", 60.0)
    way = Way()
    with ThreadPoolExecutor(1) as pool:
        emitted = pool.submit(way.emissions.emit, "clips", event())
        assert way.given.wait(20)
        way.emissions.committed("other")
        assert not emitted.done()
        way.emissions.committed("clip")
        emitted.result(20)


def test_a_thread_waits_no_longer_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emissions, "_WITHIN_S", 0.01)
    way = Way()
    with ThreadPoolExecutor(1) as pool:
        for _ in range(2):
            with pytest.raises(Unavailable) as error:
                pool.submit(way.emissions.emit, "clips", event()).result(20)
            assert not error.value.patient
    assert way.sent == [("clips", "clip")] * 2, "the first may be lost on its way"


def test_the_oldest_committed_events_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emissions, "_MOST_KNOWN", 2)
    way = Way(lambda event: way.emissions.committed(event.id))
    for name in ("a", "b", "c", "c", "b", "a"):
        way.emissions.emit("clips", event(name))
    assert [name for _, name in way.sent] == ["a", "b", "c", "a"]
