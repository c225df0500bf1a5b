"""Sinks that deliver events, driven as the runtime drives them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from camgraph.pipeline.errors import Unavailable
from camgraph.pipeline.messages import Event
from camgraph.pipeline.stage import Stage
from camgraph.pipeline.testing import opened
from camgraph.stages.sinks.delivery.event_sink import EventSink
from camgraph_test_stages.waiting import until

S = TypeVar("S", bound=EventSink[Any])


@contextmanager
def delivering(sink_class: type[S], settings: dict[str, Any], folder: Path, **more: Any) -> Iterator[S]:
    """A sink that tries again each time: the pauses themselves are tested elsewhere."""
    with opened(sink_class, settings, folder=folder, **more) as sink:
        assert isinstance(sink, sink_class)
        sink._attempts._pauses_s = (0.01,)
        yield sink


def hand_in(
    sink: Stage[Any], events: Sequence[Event], *, batch: int = 10, at: Callable[[int], None] = lambda _: None
) -> list[str]:
    """Hand in batches, again and again until they are taken. Returns why they were not, each time it was not patience.

    `at` is called before each batch with the number of its first event.
    """
    reasons: list[str] = []
    for first in range(0, len(events), batch):
        at(first)

        def is_taken(first: int = first) -> bool:
            try:
                list(sink.process(events[first : first + batch]))
            except Unavailable as error:
                if not error.patient:
                    reasons.append(str(error))
                return False
            return True

        until(is_taken, every_s=0.01)
    return reasons


def refused_for_now(sink: EventSink[Any], events: Sequence[Event]) -> str:
    """Hand in once: why it is refused for now, "" while the sink is busy with it. Raises AssertionError if not."""
    try:
        sink.process(events)
    except Unavailable as error:
        return "" if error.patient else str(error)
    raise AssertionError("it is taken")


def refusal(sink: EventSink[Any], events: Sequence[Event]) -> str:
    """Why they are refused for now, once the sink is not just busy."""
    return until(lambda: refused_for_now(sink, events), every_s=0.01)


def letters(sink: EventSink[Any]) -> dict[str, str]:
    """The dead letters: id of the event -> why."""
    return {letter.event.id: letter.why for letter in sink.context.dead_letters}
