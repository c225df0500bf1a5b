"""`sink_null`: takes any message and keeps none. For measuring a graph without the cost of its sinks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from camgraph.pipeline.messages import Message
from camgraph.pipeline.stage import Settings, Stage


class SinkNull(Stage[Settings]):
    """Anything -> nothing."""

    inputs = Message

    def process(self, items: Sequence[Any]) -> Iterable[Message]:
        return ()
