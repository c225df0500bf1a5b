"""Sinks that deliver events, driven as the runtime drives them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

from camgraph.pipeline.errors import Unavailable
from camgraph.pipeline.messages import Event
from camgraph.pipeline.testing import hand_in, letters, opened, refusal
from camgraph.stages.sinks.delivery.event_sink import EventSink

__all__ = ["delivering", "hand_in", "letters", "refusal", "refused_for_now"]
S = TypeVar("S", bound=EventSink[Any])


@contextmanager
def delivering(
    sink_class: type[S], settings: dict[str, Any], folder: Path, *, pauses_s: Sequence[float] = (0.0,), **more: Any
) -> Iterator[S]:
    """A sink that tries again each time, by default: the usual pauses are tested with the base."""
    with patch.object(sink_class, "pauses_s", pauses_s), opened(sink_class, settings, folder=folder, **more) as sink:
        yield sink


def refused_for_now(sink: EventSink[Any], events: Sequence[Event]) -> str:
    """Hand in once: why it is refused for now, "" while the sink is busy with it. Raises AssertionError if not."""
    try:
        sink.process(events)
    except Unavailable as error:
        return "" if error.patient else str(error)
    raise AssertionError("it is taken")
